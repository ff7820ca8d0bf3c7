#include "trace/quick_dispatch.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace assay::trace {
namespace {

constexpr uint64_t kEvery = 0x0101010101010101;
constexpr uint64_t kHigh = 0x80 * kEvery;

// Reads on at `p`, which stays where it is when what is asked for does not stand there. No function
// passes a line feed, so that none leaves the line.
class QuickCursor {
 public:
  explicit QuickCursor(const char* p) : p_(p) {}

  const char* at() const { return p_; }
  bool Skip(char c) {
    if (*p_ != c) return false;
    ++p_;
    return true;
  }
  // At most 16 characters.
  bool Skip(std::string_view text) {
    if (std::memcmp(p_, text.data(), text.size()) != 0) return false;
    p_ += text.size();
    return true;
  }

  // A number without a leading zero. Of a number of more than 19 digits the rest is left, which
  // whatever must follow refuses; so it is behind a leading zero.
  bool Number(uint64_t* value) {
    uint64_t sum = static_cast<unsigned char>(*p_) - uint64_t{'0'};
    if (sum > 9) return false;
    ++p_;
    if (sum != 0) {
      for (int i = 1; i < 19; ++i) {
        const uint64_t digit = static_cast<unsigned char>(*p_) - uint64_t{'0'};
        if (digit > 9) break;
        sum = 10 * sum + digit;
        ++p_;
      }
    }
    *value = sum;
    return true;
  }
  bool Number32(uint64_t* value) {
    return Number(value) && *value <= std::numeric_limits<uint32_t>::max();
  }

  // Pairs of hex digits, one at least.
  bool HexPairs() {
    const char* const start = p_;
    uint64_t eight = 0;
    while (std::memcpy(&eight, p_, 8), AllHex(eight)) p_ += 8;
    while (IsHex(*p_)) ++p_;
    return p_ != start && (p_ - start) % 2 == 0;
  }

 private:
  static bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
  // Whether each of eight bytes is a hex digit. The sums stay within their bytes, since a byte with
  // its high bit set is refused.
  static bool AllHex(uint64_t eight) {
    const uint64_t low = eight & ~kHigh;
    const auto from = [&](unsigned char c) { return low + (0x80 - uint64_t{c}) * kEvery; };
    const uint64_t digits = from('0') & ~from('9' + 1);
    const uint64_t letters = from('a') & ~from('f' + 1);
    return ((digits | letters) & ~eight & kHigh) == kHigh;
  }

  const char* p_;
};

bool Range(QuickCursor& in) {
  uint64_t begin = 0, end = 0;
  return in.Skip('[') && in.Number(&begin) && in.Skip(',') && in.Number(&end) && in.Skip(')') &&
         begin <= end;
}

}  // namespace

const char* QuickDispatch(const char* line, const NumberSet& kernels, const NumberSet& buffers) {
  QuickCursor in(line);
  uint64_t kernel = 0, x = 0, y = 0, z = 0;
  if (!(in.Skip("dispatch k") && in.Number32(&kernel) && in.Skip(" grid=") && in.Number32(&x) &&
        in.Skip(',') && in.Number32(&y) && in.Skip(',') && in.Number32(&z) &&
        kernels.Contains(kernel))) {
    return nullptr;
  }
  uint64_t shared_bytes = 0;
  if (in.Skip(" shared=") && !(in.Number32(&shared_bytes) && shared_bytes != 0)) return nullptr;
  if (in.Skip(" args=") && !in.HexPairs()) return nullptr;
  while (in.Skip(' ')) {
    uint64_t buffer = 0;
    const bool reads = in.Skip('r');
    const bool writes = in.Skip('w');
    if (!((reads || writes) && in.Skip('#') && in.Number(&buffer) && buffers.Contains(buffer) &&
          Range(in))) {
      return nullptr;
    }
    in.Skip('?');
  }
  return in.Skip('\n') ? in.at() : nullptr;
}

}  // namespace assay::trace
