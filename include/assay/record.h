// Record: a backend that writes all it is asked to do into a trace and hands it on.
#ifndef ASSAY_RECORD_H_
#define ASSAY_RECORD_H_

#include <memory>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/trace.h"

namespace assay::record {

// Wraps `inner`. `writer` is borrowed and must outlive the returned backend; the caller closes it
// after the device is gone, so that the frees of the last buffers are in the trace. A program that
// does not record never passes through here.
std::unique_ptr<gpu::Backend> MakeRecordingBackend(std::unique_ptr<gpu::Backend> inner,
                                                   trace::TraceWriter* writer);

}  // namespace assay::record

#endif  // ASSAY_RECORD_H_
