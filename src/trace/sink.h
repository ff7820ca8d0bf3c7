// Where the bytes of a trace go: a file that appears whole or not at all, a string, and
// compression on the way to either.
#ifndef ASSAY_TRACE_SINK_H_
#define ASSAY_TRACE_SINK_H_

#include <memory>
#include <string>
#include <string_view>

#include "assay/base.h"

namespace assay::trace {

// Takes bytes in order, from one thread at a time. After a failure nothing more is written to it,
// and Commit is not called. Destruction without Commit abandons what was written.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status Write(std::string_view bytes) = 0;
  // Everything is written: makes it last.
  virtual Status Commit() = 0;
};

// A file at `path`, through AtomicFile, past the system's cache where that can be. Errors: kIo,
// naming the path.
Result<std::unique_ptr<Sink>> MakeFileSink(const std::string& path);
// `out` must outlive the sink.
std::unique_ptr<Sink> MakeStringSink(std::string* out);
// Compresses as one zstd frame with a checksum. Errors: kAllocation.
Result<std::unique_ptr<Sink>> MakeZstdSink(std::unique_ptr<Sink> inner);
// MakeFileSink, compressed where the path ends in `.zst`.
Result<std::unique_ptr<Sink>> MakePathSink(const std::string& path);

}  // namespace assay::trace

#endif  // ASSAY_TRACE_SINK_H_
