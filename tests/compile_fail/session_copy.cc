// E2: a session owns its encoder, so that there is one of it.
#include "assay/gpu.h"

void Use(assay::gpu::Session& session) {
#ifdef ASSAY_MISUSE
  assay::gpu::Session other = session;
  other.Reset();
#else
  session.Reset();
#endif
}
