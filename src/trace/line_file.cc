#include "trace/line_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/format.h"

namespace assay::trace {

LineFile::LineFile(std::unique_ptr<Sink> sink, size_t block_bytes)
    : sink_(std::move(sink)),
      block_bytes_(block_bytes),
      block_(std::make_unique_for_overwrite<char[]>(block_bytes)) {}

void LineFile::Append(std::string_view text, uint64_t lines) {
  lines_ += lines;
  Buffer(text);
}

void LineFile::Buffer(std::string_view text) {
  while (!text.empty() && ok()) {
    const size_t taken = std::min(text.size(), block_bytes_ - filled_);
    std::memcpy(block_.get() + filled_, text.data(), taken);
    filled_ += taken;
    text.remove_prefix(taken);
    if (filled_ == block_bytes_) {
      hasher_.Update(std::string_view(block_.get(), filled_));
      WriteBlock();
    }
  }
}

void LineFile::WriteBlock() {
  Status written = sink_->Write({block_.get(), filled_});
  if (!written) Fail(std::move(written).error());
  filled_ = 0;
}

void LineFile::Fail(Error error) {
  if (ok()) status_ = assay::Fail(std::move(error));
}

Status LineFile::Finish() {
  if (ok()) {
    hasher_.Update(std::string_view(block_.get(), filled_));
    // The hasher goes on taking blocks that hold the end line; its digest was taken before.
    const std::string digest = hasher_.HexDigest();
    Buffer(EndLine(lines_, digest) + "\n");
  }
  if (ok() && filled_ > 0) WriteBlock();
  if (!ok()) return status_;
  status_ = sink_->Commit();
  return status_;
}

}  // namespace assay::trace
