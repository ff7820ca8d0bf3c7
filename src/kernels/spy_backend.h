// A backend for tests that hands everything on and keeps the bindings of every dispatch.
#ifndef ASSAY_KERNELS_SPY_BACKEND_H_
#define ASSAY_KERNELS_SPY_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "support/forwarding_backend.h"

namespace assay::kernels::testing {

struct SeenDispatch {
  std::string kernel;
  std::vector<gpu::BackendBinding> bindings;
  std::vector<std::byte> constants;
  Extent3 grid;
  uint32_t shared_bytes = 0;
};

// Of one session at a time.
class SpyBackend final : public assay::testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::vector<SeenDispatch>& seen() { return seen_; }
  // In the order of creation.
  const std::vector<gpu::BackendBuffer*>& buffers() const { return buffers_; }

  Result<std::unique_ptr<gpu::BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    auto buffer = ForwardingBackend::CreateBuffer(desc);
    if (buffer) buffers_.push_back(buffer->get());
    return buffer;
  }
  Status OnDispatch(gpu::BackendCommandBuffer& inner,
                    const gpu::BackendDispatch& dispatch) override {
    seen_.push_back({std::string(dispatch.kernel->info().name),
                     {dispatch.bindings.begin(), dispatch.bindings.end()},
                     {dispatch.constants.begin(), dispatch.constants.end()},
                     dispatch.grid,
                     dispatch.shared_bytes});
    return inner.Dispatch(dispatch);
  }

 private:
  std::vector<SeenDispatch> seen_;
  std::vector<gpu::BackendBuffer*> buffers_;
};

}  // namespace assay::kernels::testing

#endif  // ASSAY_KERNELS_SPY_BACKEND_H_
