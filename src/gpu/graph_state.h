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
  // Those past binding_count are left from an earlier capture: binding the same buffers again, as
  // the next token does, then costs no reference counting.
  std::vector<Binding> bindings;
  size_t binding_count = 0;
  std::vector<std::byte> constants;

  // Empties it for another capture.
  void Restart();
  void Add(const Dispatch& dispatch);
  void AddBarrier() { steps.emplace_back(); }
  // Lets go of what an earlier capture has left.
  void Finish() { bindings.resize(binding_count); }
  // The dispatch of `step`, borrowing from this graph.
  Dispatch DispatchOf(const Step& step) const;
  // Counted from 0, barriers left out.
  Dispatch DispatchAt(uint32_t index) const { return DispatchOf(steps[dispatches[index]]); }
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_STATE_H_
