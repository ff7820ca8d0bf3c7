// E2: what the release hands out has one holder too.
#include <memory>
#include <utility>

#include "gpu/backend.h"

using Held = std::unique_ptr<assay::gpu::BackendCommandBuffer>;

assay::Result<assay::gpu::Serial> Commit(assay::gpu::BackendQueue& queue, Held& held) {
#ifdef ASSAY_MISUSE
  return queue.Commit(held);
#else
  return queue.Commit(std::move(held));
#endif
}
