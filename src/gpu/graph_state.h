// What a captured graph holds.
#ifndef ASSAY_GPU_GRAPH_STATE_H_
#define ASSAY_GPU_GRAPH_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"

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
  std::vector<Step> steps;
  std::vector<uint32_t> dispatches;  // The steps that are.
  std::vector<Binding> bindings;
  std::vector<std::byte> constants;

  void Add(const Dispatch& dispatch);
  void AddBarrier() { steps.emplace_back(); }
  // Puts another dispatch of the same kernel in the place of dispatch `index`. False when the
  // kernel is another one.
  bool Replace(uint32_t index, const Dispatch& dispatch);
  // The dispatch of `step`, borrowing from this graph.
  Dispatch DispatchOf(const Step& step) const;
  // Counted from 0, barriers left out.
  Dispatch DispatchAt(uint32_t index) const { return DispatchOf(steps[dispatches[index]]); }
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_STATE_H_
