// E2: a session lends its encoder to nobody, so that none outlives it.
#include <memory>

#include "gpu/session_state.h"

assay::gpu::Counters Use(std::unique_ptr<assay::gpu::SessionState> session) {
#ifdef ASSAY_MISUSE
  assay::gpu::CommandEncoder& borrowed = session->encoder_;
  session.reset();
  (void)borrowed.Barrier();
  return {};
#else
  return session->counters();
#endif
}
