// The names of buffers and kernels within the line of an event, found without parsing the rest.
#ifndef ASSAY_COMPARE_LINE_NAMES_H_
#define ASSAY_COMPARE_LINE_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::compare {

struct LineName {
  bool is_kernel = false;
  uint64_t number = 0;
  // Of the digits, behind `#` or `k`.
  size_t begin = 0;
  size_t end = 0;
};

// Gives the names of a line from left to right. The line is one that the trace format allows;
// on any other line it gives some names or none and reads nothing outside.
class LineNames final {
 public:
  explicit LineNames(std::string_view line);
  bool Next(LineName* name);

 private:
  bool ReadNumber(LineName* name);

  enum class Rest : uint8_t { kNone, kKernelThenBuffers, kBuffers, kOneBuffer, kOneKernel };
  std::string_view line_;
  size_t at_ = 0;
  Rest rest_ = Rest::kNone;
};

// What a line begins with.
inline bool IsBufferLine(std::string_view line) { return line.starts_with("buffer "); }
inline bool IsKernelLine(std::string_view line) { return line.starts_with("kernel "); }
inline bool IsDispatchLine(std::string_view line) { return line.starts_with("dispatch "); }
// True for lines whose one name says which buffer they are about and which stand outside command
// buffers: free, write and read.
inline bool IsHostUseLine(std::string_view line) {
  return line.starts_with("free ") || line.starts_with("write ") || line.starts_with("read ");
}

// A map from the numbers of names, which are mostly dense, to values.
class NumberMap final {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  void Set(uint64_t number, uint64_t value) {
    if (number >= dense_.size() && number < 2 * dense_.size() + kDenseSlack) {
      dense_.resize(number + 1, kNone);
    }
    if (number < dense_.size()) {
      dense_[number] = value;
    } else {
      sparse_[number] = value;
    }
  }
  // kNone where nothing was set.
  uint64_t Find(uint64_t number) const {
    if (number < dense_.size() && dense_[number] != kNone) return dense_[number];
    if (sparse_.empty()) return kNone;
    const auto found = sparse_.find(number);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  static constexpr uint64_t kDenseSlack = 4096;
  std::vector<uint64_t> dense_;
  std::unordered_map<uint64_t, uint64_t> sparse_;
};

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_LINE_NAMES_H_
