#include "llm/gguf/cursor.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace assay::gguf {
namespace {

constexpr uint64_t kReadAheadBytes = 1 << 18;

}  // namespace

Cursor::Cursor(const ByteSource* source, uint64_t limit_bytes)
    : source_(source),
      end_(std::min(source->size(), limit_bytes)),
      end_is_limit_(limit_bytes < source->size()) {}

tl::unexpected<Error> Cursor::FailAt(uint64_t offset, std::string_view sentence,
                                     ErrorCode code) const {
  return Fail(code, source_->name(),
              fmt::format("Byte {} of \"{}\": {}", offset, source_->name(), sentence));
}

Status Cursor::Require(uint64_t bytes, std::string_view what) const {
  if (bytes <= remaining()) return {};
  if (end_is_limit_) {
    return FailAt(offset_, fmt::format("{} needs {} bytes, but only {} are left of the {} bytes "
                                       "that a header may take (max_header_bytes).",
                                       what, bytes, remaining(), end_));
  }
  return FailAt(offset_, fmt::format("{} needs {} bytes, but the file has only {} more: it is cut "
                                     "short or corrupt; fetch it again.",
                                     what, bytes, remaining()));
}

Result<std::string> Cursor::ReadString(uint64_t max_bytes, std::string_view what) {
  const uint64_t at = offset_;
  ASSAY_ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>(what));
  if (size > max_bytes) {
    return FailAt(at, fmt::format("{} has a length of {} bytes, more than the {} allowed.", what,
                                  size, max_bytes));
  }
  ASSAY_TRY(Require(size, what));
  std::string text(static_cast<size_t>(size), '\0');
  ASSAY_TRY(ReadBytes(std::as_writable_bytes(std::span(text)), what));
  return text;
}

Status Cursor::ReadBytes(std::span<std::byte> out, std::string_view what) {
  ASSAY_TRY(Require(out.size(), what));
  const uint64_t buffered_end = buffer_begin_ + buffer_.size();
  if (offset_ + out.size() > buffered_end) {
    if (out.size() >= kReadAheadBytes) {
      ASSAY_TRY(source_->ReadAt(offset_, out));
      offset_ += out.size();
      return {};
    }
    buffer_.resize(static_cast<size_t>(std::min(kReadAheadBytes, remaining())));
    buffer_begin_ = offset_;
    ASSAY_TRY(source_->ReadAt(offset_, buffer_));
  }
  if (!out.empty()) {
    std::memcpy(out.data(), buffer_.data() + (offset_ - buffer_begin_), out.size());
  }
  offset_ += out.size();
  return {};
}

}  // namespace assay::gguf
