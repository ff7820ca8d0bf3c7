// Where the bytes of a trace come from: a file or memory, decompressed where they are zstd.
#ifndef ASSAY_TRACE_SOURCE_H_
#define ASSAY_TRACE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "assay/base.h"

namespace assay::trace {

// Gives bytes in order, in memory that does not grow with their number. One thread.
class Source {
 public:
  virtual ~Source() = default;
  // Puts up to `capacity` (at least 1) bytes at `out` and returns how many; 0 only at the end.
  virtual Result<size_t> Read(char* out, size_t capacity) = 0;
};

// The text behind a file's bytes: themselves, or what they decompress to when they begin as a zstd
// frame does. A file is read, not mapped, so that one that shrinks meanwhile is an error and no
// signal. `compressed`, unless null, says which it was. Errors: kNotFound, kIo, kAllocation; later
// kFormat for compressed data that is damaged, cut short or needs a window above 128 MiB.
Result<std::unique_ptr<Source>> OpenPathSource(const std::string& path, bool* compressed = nullptr);
// The same for `bytes`, which must outlive the source; `name` is used in messages.
Result<std::unique_ptr<Source>> OpenMemorySource(std::string_view bytes, const std::string& name);

}  // namespace assay::trace

#endif  // ASSAY_TRACE_SOURCE_H_
