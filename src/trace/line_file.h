// The lines of a trace on their way to a sink: cut into blocks of one size, counted and digested,
// and ended by the line that says both.
#ifndef ASSAY_TRACE_LINE_FILE_H_
#define ASSAY_TRACE_LINE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "assay/base.h"

#include "base/hash.h"
#include "trace/sink.h"

namespace assay::trace {

inline constexpr size_t kBlockBytes = size_t{1} << 20;

// The first failure sticks: nothing is written after it and Finish returns it. One thread.
class LineFile final {
 public:
  explicit LineFile(std::unique_ptr<Sink> sink, size_t block_bytes = kBlockBytes);

  // Takes whole lines, each with its newline. They are written when a block is full.
  void Append(std::string_view text, uint64_t lines);
  void Fail(Error error);
  bool ok() const { return status_.has_value(); }

  // Writes the end line and commits the sink.
  Status Finish();

 private:
  void Buffer(std::string_view text);
  void WriteBlock();

  std::unique_ptr<Sink> sink_;
  const size_t block_bytes_;
  std::unique_ptr<char[]> block_;
  size_t filled_ = 0;
  uint64_t lines_ = 0;
  Hasher hasher_;
  Status status_;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_LINE_FILE_H_
