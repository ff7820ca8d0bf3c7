// A graph holds its buffers alive; a copy would hold them twice.
#include <utility>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"

assay::gpu::Graph Take(assay::gpu::Graph& graph) {
#ifdef ASSAY_MISUSE
  return graph;
#else
  return std::move(graph);
#endif
}
