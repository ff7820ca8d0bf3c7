// The cpu backend: a concurrent device on a resident pool of worker threads.
#ifndef ASSAY_GPU_CPU_CPU_BACKEND_H_
#define ASSAY_GPU_CPU_CPU_BACKEND_H_

#include <memory>

#include "gpu/backend.h"

namespace assay::gpu {

// Errors: kInvalidArgument for a number of threads outside [0, 1024]; kDevice when a worker thread
// cannot be started.
Result<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_CPU_BACKEND_H_
