// Sessions come from a device.
#include <memory>

#include "assay/gpu.h"

#include "gpu/session_state.h"

std::unique_ptr<assay::gpu::Session> Make(assay::gpu::Device& device) {
#ifdef ASSAY_MISUSE
  (void)device;
  return std::unique_ptr<assay::gpu::Session>(new assay::gpu::Session(nullptr));
#else
  return device.CreateSession().value_or(nullptr);
#endif
}
