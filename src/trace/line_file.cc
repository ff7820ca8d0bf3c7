#include "trace/line_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "trace/format.h"

namespace assay::trace {

LineFile::BlockPointer LineFile::MakeBlock(size_t bytes) {
  return BlockPointer(
      static_cast<char*>(::operator new (bytes, std::align_val_t{AtomicFile::kBlockAlignment})));
}

void LineFile::FreeBlock::operator()(char* block) const {
  ::operator delete (block, std::align_val_t{AtomicFile::kBlockAlignment});
}

LineFile::LineFile(std::unique_ptr<Sink> sink, size_t block_bytes)
    : sink_(std::move(sink)), block_bytes_(block_bytes), block_(MakeBlock(block_bytes)) {}

LineFile::~LineFile() { StopWriter(); }

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
    if (filled_ == block_bytes_) WriteFullBlock();
  }
}

void LineFile::WriteFullBlock() {
  filled_ = 0;
  if (!writer_.joinable()) {
    handed_over_ = MakeBlock(block_bytes_);
    try {
      writer_ = std::thread([this] { RunWriter(); });
    } catch (const std::system_error&) {
      // Without another thread the block is written here, and the next one tries again.
      hasher_.Update(std::string_view(block_.get(), block_bytes_));
      Write({block_.get(), block_bytes_});
      return;
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !block_waits_; });
  std::swap(block_, handed_over_);
  block_waits_ = true;
  changed_.notify_all();
}

void LineFile::RunWriter() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return block_waits_ || stop_; });
    if (!block_waits_) return;
    lock.unlock();
    // The caller does not touch this block before block_waits_ is false again.
    hasher_.Update(std::string_view(handed_over_.get(), block_bytes_));
    if (ok()) Write({handed_over_.get(), block_bytes_});
    lock.lock();
    block_waits_ = false;
    changed_.notify_all();
  }
}

void LineFile::StopWriter() {
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

void LineFile::Write(std::string_view bytes) {
  Status written = sink_->Write(bytes);
  if (!written) Fail(std::move(written).error());
}

void LineFile::Fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!status_) return;
  status_ = assay::Fail(std::move(error));
  ok_.store(false, std::memory_order_release);
}

void LineFile::FailForMemory() noexcept {
  out_of_memory_.store(true, std::memory_order_relaxed);
  ok_.store(false, std::memory_order_release);
}

Status LineFile::Finish() {
  StopWriter();
  if (out_of_memory_.load(std::memory_order_relaxed)) {
    Fail({ErrorCode::kAllocation, "trace", "There was no memory for an event of the trace."});
  }
  if (ok()) {
    hasher_.Update(std::string_view(block_.get(), filled_));
    const std::string end = EndLine(lines_, hasher_.HexDigest()) + "\n";
    if (filled_ > 0) Write({block_.get(), filled_});
    if (ok()) Write(end);
  }
  if (ok()) {
    Status committed = sink_->Commit();
    if (!committed) Fail(std::move(committed).error());
  }
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace assay::trace
