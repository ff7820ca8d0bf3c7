// E2: an encoder has one holder.
#include <utility>

#include "gpu/command_encoder.h"

assay::gpu::CommandEncoder Hand(assay::gpu::CommandEncoder& encoder) {
#ifdef ASSAY_MISUSE
  return encoder;
#else
  return std::move(encoder);
#endif
}
