// A kernel's id comes from the registry, not from arithmetic.
#include "assay/gpu.h"

void Use(assay::gpu::Dispatch& dispatch, assay::gpu::KernelId id) {
#ifdef ASSAY_MISUSE
  (void)id;
  dispatch.kernel = 3;
#else
  dispatch.kernel = id;
#endif
}
