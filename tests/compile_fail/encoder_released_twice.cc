// E2: releasing an encoder gives it up, so that nobody who still holds it can release it again.
#include <utility>

#include "gpu/command_encoder.h"

void Release(assay::gpu::CommandEncoder encoder) {
  (void)std::move(encoder).EndEncoder();
#ifdef ASSAY_MISUSE
  (void)encoder.EndEncoder();
#endif
}
