// E2: an encoder comes from a queue, which makes one for each command buffer.
#include "gpu/command_encoder.h"

assay::Result<assay::gpu::CommandEncoder> Make(assay::gpu::BackendQueue* queue,
                                               assay::gpu::Counters* counters) {
#ifdef ASSAY_MISUSE
  (void)queue;
  return assay::gpu::CommandEncoder(nullptr, counters);
#else
  return assay::gpu::CommandEncoder::Open(queue, counters);
#endif
}
