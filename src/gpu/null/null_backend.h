// A backend that runs nothing and records nothing: for the cost of encoding alone, for fuzzing the
// front end, and as the pattern that a new backend starts from.
#ifndef ASSAY_GPU_NULL_NULL_BACKEND_H_
#define ASSAY_GPU_NULL_NULL_BACKEND_H_

#include <memory>

#include "gpu/backend.h"

namespace assay::gpu {

// Buffers have no memory: writes vanish and reads give zeros. Work has finished as soon as it is
// committed.
std::unique_ptr<Backend> MakeNullBackend();

}  // namespace assay::gpu

#endif  // ASSAY_GPU_NULL_NULL_BACKEND_H_
