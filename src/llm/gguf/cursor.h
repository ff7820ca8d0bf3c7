// Cursor: reads a GGUF header front to back, little-endian, never past the end of the file.
#ifndef ASSAY_LLM_GGUF_CURSOR_H_
#define ASSAY_LLM_GGUF_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "assay/base.h"

#include "llm/gguf/byte_source.h"

namespace assay::gguf {

// One thread. Borrows the source.
class Cursor final {
 public:
  // Reads [0, min(size of source, limit_bytes)).
  Cursor(const ByteSource* source, uint64_t limit_bytes);

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return end_ - offset_; }

  // An error of `code` about the byte at `offset`: `Byte 24 of "m.gguf": <sentence>`.
  tl::unexpected<Error> FailAt(uint64_t offset, std::string_view sentence,
                               ErrorCode code = ErrorCode::kFormat) const;
  // kFormat unless `bytes` more can be read; `what` is the subject of the sentence.
  Status Require(uint64_t bytes, std::string_view what) const;

  // A number of 1, 2, 4 or 8 bytes, integer or floating point.
  template <typename T>
  Result<T> Read(std::string_view what) {
    std::byte raw[sizeof(T)];
    ASSAY_TRY(ReadBytes(raw, what));
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<uint64_t>(raw[i]) << (8 * i);
    if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    } else if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<double>(bits);
    } else {
      return static_cast<T>(bits);
    }
  }
  // A length (uint64) and that many bytes; more than `max_bytes` is refused before any is read.
  Result<std::string> ReadString(uint64_t max_bytes, std::string_view what);

 private:
  Status ReadBytes(std::span<std::byte> out, std::string_view what);

  const ByteSource* source_;
  uint64_t end_;
  bool end_is_limit_;
  uint64_t offset_ = 0;
  // The bytes from buffer_begin_ on that were read ahead.
  std::vector<std::byte> buffer_;
  uint64_t buffer_begin_ = 0;
};

}  // namespace assay::gguf

#endif  // ASSAY_LLM_GGUF_CURSOR_H_
