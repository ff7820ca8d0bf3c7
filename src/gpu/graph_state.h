// What a Graph holds: dispatches with everything they borrow, and hand-placed barriers.
#ifndef ASSAY_GPU_GRAPH_STATE_H_
#define ASSAY_GPU_GRAPH_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "assay/gpu.h"

namespace assay::gpu {

struct Graph::State {
  // A barrier when `kernel` is 0. Bindings and constants lie in the vectors below.
  struct Step {
    KernelId kernel;
    Extent3 grid;
    uint32_t shared_bytes = 0;
    size_t first_binding = 0;
    size_t binding_count = 0;
    size_t first_constant = 0;
    size_t constant_bytes = 0;
    bool is_barrier() const { return kernel == KernelId(); }
  };
  const DeviceState* device = nullptr;  // Compared, never followed.
  size_t dispatch_count = 0;
  std::vector<Step> steps;
  std::vector<Binding> bindings;
  std::vector<std::byte> constants;

  void Add(const Dispatch& dispatch);
  void AddBarrier() { steps.emplace_back(); }
  // The dispatch of `step`, borrowing from this graph.
  Dispatch DispatchOf(const Step& step) const;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_STATE_H_
