// E12: nobody passes over an error by mistake.
#include "assay/gpu.h"

void Use(assay::gpu::Session& session) {
#ifdef ASSAY_MISUSE
  session.Commit();
#else
  (void)session.Commit();
#endif
}
