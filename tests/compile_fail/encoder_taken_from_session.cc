// E2: nor can a program get at what the session keeps it in.
#include "assay/gpu.h"

const void* Use(const assay::gpu::Session& session) {
#ifdef ASSAY_MISUSE
  return &session.state_;
#else
  return &session.counters();
#endif
}
