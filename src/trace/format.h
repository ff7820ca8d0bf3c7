// The bytes of a line: what FormatEvent and the writer's fast path share, so that the grammar of
// docs/trace-format.md has one owner on the writing side (parse.h owns the reading side).
//
// The Put functions write at `p` without a bounds check and return the end; the callers reserve
// the bound of the line first.
#ifndef ASSAY_TRACE_FORMAT_H_
#define ASSAY_TRACE_FORMAT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "assay/trace.h"

namespace assay::trace {

// A longer line is neither written nor, unless ReaderLimits says otherwise, read.
inline constexpr uint64_t kMaxLineBytes = uint64_t{1} << 20;
inline constexpr std::string_view kMagic = "assay-trace ";

// A growing run of characters that is written through raw pointers.
class TextBuffer {
 public:
  // Room for `bytes` more; the pointer is good until the next call.
  char* Reserve(size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return data_.get() + size_;
  }
  // Takes over what was written from the pointer of Reserve up to `end`.
  void CommitTo(const char* end) { size_ = static_cast<size_t>(end - data_.get()); }
  void Append(std::string_view text) {
    std::memcpy(Reserve(text.size()), text.data(), text.size());
    size_ += text.size();
  }
  void Clear() { size_ = 0; }
  // The `bytes` from `at` on become `text`; returns by how many more bytes there are now.
  ptrdiff_t Replace(size_t at, size_t bytes, std::string_view text);
  // Where text()[at] stands, to write over it.
  char* At(size_t at) { return data_.get() + at; }
  size_t size() const { return size_; }
  std::string_view text() const { return {data_.get(), size_}; }

 private:
  void Grow(size_t bytes);

  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

namespace format_internal {

constexpr std::array<char, 200> MakeDecimalPairs() {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}
inline constexpr std::array<char, 200> kDecimalPairs = MakeDecimalPairs();

// The last two, four and eight digits, with leading zeros.
inline char* PutTwoDigits(char* p, uint32_t value) {
  std::memcpy(p, &kDecimalPairs[2 * value], 2);
  return p + 2;
}
inline char* PutFourDigits(char* p, uint32_t value) {
  return PutTwoDigits(PutTwoDigits(p, value / 100), value % 100);
}
inline char* PutEightDigits(char* p, uint32_t value) {
  return PutFourDigits(PutFourDigits(p, value / 10000), value % 10000);
}

// A number below 10^4, and one below 10^8, without leading zeros.
inline char* PutUpToFourDigits(char* p, uint32_t value) {
  if (value >= 100) {
    if (value < 1000) {
      *p = static_cast<char>('0' + value / 100);
      return PutTwoDigits(p + 1, value % 100);
    }
    return PutFourDigits(p, value);
  }
  if (value >= 10) return PutTwoDigits(p, value);
  *p = static_cast<char>('0' + value);
  return p + 1;
}
inline char* PutUpToEightDigits(char* p, uint32_t value) {
  if (value < 10000) return PutUpToFourDigits(p, value);
  return PutFourDigits(PutUpToFourDigits(p, value / 10000), value % 10000);
}

// The eight hex digits of four bytes, the first byte's first.
inline char* PutHexOfFour(char* p, const std::byte* bytes) {
  const auto at = [&](size_t i) { return std::to_integer<uint64_t>(bytes[i]); };
  const uint64_t spread = at(0) | at(1) << 16 | at(2) << 32 | at(3) << 48;
  const uint64_t nibbles = (spread >> 4 & 0x000F000F000F000F) | (spread & 0x000F000F000F000F) << 8;
  // 6 more carries into the upper half exactly for a nibble above 9; the letters are 39 further.
  const uint64_t letters = (nibbles + 0x0606060606060606) >> 4 & 0x0101010101010101;
  uint64_t text = nibbles + 0x3030303030303030 + letters * ('a' - '0' - 10);
  if constexpr (std::endian::native == std::endian::big) text = __builtin_bswap64(text);
  std::memcpy(p, &text, 8);
  return p + 8;
}

}  // namespace format_internal

inline char* PutText(char* p, std::string_view text) {
  std::memcpy(p, text.data(), text.size());
  return p + text.size();
}

// At most 20 characters.
inline char* PutDecimal(char* p, uint64_t value) {
  using format_internal::PutEightDigits;
  using format_internal::PutUpToEightDigits;
  constexpr uint64_t kEightDigits = 100000000;
  if (value < kEightDigits) return PutUpToEightDigits(p, static_cast<uint32_t>(value));
  const uint64_t upper = value / kEightDigits;
  if (upper < kEightDigits) {
    p = PutUpToEightDigits(p, static_cast<uint32_t>(upper));
  } else {
    p = PutUpToEightDigits(p, static_cast<uint32_t>(upper / kEightDigits));
    p = PutEightDigits(p, static_cast<uint32_t>(upper % kEightDigits));
  }
  return PutEightDigits(p, static_cast<uint32_t>(value % kEightDigits));
}

// Two characters a byte.
inline char* PutHex(char* p, std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  size_t done = 0;
  for (; done + 4 <= bytes.size(); done += 4) {
    p = format_internal::PutHexOfFour(p, &bytes[done]);
  }
  for (; done < bytes.size(); ++done) {
    *p++ = kDigits[std::to_integer<size_t>(bytes[done] >> 4)];
    *p++ = kDigits[std::to_integer<size_t>(bytes[done] & std::byte{15})];
  }
  return p;
}

// `#n`, or `#?` for kUnnamedBuffer; at most 21 characters.
inline char* PutBufferName(char* p, BufferId buffer) {
  *p++ = '#';
  if (buffer != kUnnamedBuffer) return PutDecimal(p, buffer.value());
  *p++ = '?';
  return p;
}

inline constexpr char kRangeEnd = ')';

// `[begin,end)`; at most 43 characters.
inline char* PutRange(char* p, ByteRange range) {
  *p++ = '[';
  p = PutDecimal(p, range.begin);
  *p++ = ',';
  p = PutDecimal(p, range.end);
  *p++ = kRangeEnd;
  return p;
}

// `x,y,z`; at most 32 characters.
inline char* PutExtent(char* p, const Extent3& extent) {
  p = PutDecimal(p, extent.x);
  *p++ = ',';
  p = PutDecimal(p, extent.y);
  *p++ = ',';
  return PutDecimal(p, extent.z);
}

// What PutDispatchLine may need for its fixed part, and for one access, with room to write a name
// 16 bytes at a time.
inline constexpr size_t kDispatchHeadBound = 96;
inline constexpr size_t kAccessBound = 72;
inline size_t DispatchBound(size_t arg_bytes, size_t accesses) {
  return kDispatchHeadBound + 2 * arg_bytes + kAccessBound * accesses;
}

// Writes a dispatch line, newline included. `Binding` has range, access and exact;
// put_kernel(p) writes `N` of `kN`, put_buffer(p, binding) writes the buffer's name. `hex`, unless
// null, gets the place where the hex of `args` begins, if there are any.
template <typename Binding, typename PutKernel, typename PutBuffer>
char* PutDispatchLine(char* p, const Extent3& grid, uint32_t shared_bytes,
                      std::span<const std::byte> args, std::span<const Binding> bindings,
                      PutKernel&& put_kernel, PutBuffer&& put_buffer, char** hex = nullptr) {
  p = PutText(p, "dispatch k");
  p = put_kernel(p);
  p = PutText(p, " grid=");
  p = PutExtent(p, grid);
  if (shared_bytes != 0) {
    p = PutText(p, " shared=");
    p = PutDecimal(p, shared_bytes);
  }
  if (!args.empty()) {
    p = PutText(p, " args=");
    if (hex != nullptr) *hex = p;
    p = PutHex(p, args);
  }
  for (const Binding& binding : bindings) {
    *p++ = ' ';
    if (Reads(binding.access)) *p++ = 'r';
    if (Writes(binding.access)) *p++ = 'w';
    p = put_buffer(p, binding);
    p = PutRange(p, binding.range);
    if (!binding.exact) *p++ = '?';
  }
  *p++ = '\n';
  return p;
}

// The parts of lines behind the name, which the writer keeps until the name is known.
// ` size=... kind=...` and so on, of a buffer line.
std::string BufferBody(const BufferRecord& record);
// ` name=... digest=...` and so on, of a kernel line.
std::string KernelBody(const KernelRecord& record);
std::string MetaLine(std::string_view key, std::string_view value);
std::string RefusedLine(Refusal reason, uint64_t count);
// The last line, without a newline.
std::string EndLine(uint64_t lines, std::string_view digest);

}  // namespace assay::trace

#endif  // ASSAY_TRACE_FORMAT_H_
