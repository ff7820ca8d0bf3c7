// E2: an encoder is handed on, never held twice.
#include <utility>

#include "gpu/command_encoder.h"

void Hand(assay::gpu::CommandEncoder& from, assay::gpu::CommandEncoder& to) {
#ifdef ASSAY_MISUSE
  to = from;
#else
  to = std::move(from);
#endif
}
