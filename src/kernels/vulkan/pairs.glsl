// The pairs of matmul_by_expert (its header says what they are): where their buffers `ids`, x and
// `out_values` have them.
#ifndef ASSAY_KERNELS_VULKAN_PAIRS_GLSL
#define ASSAY_KERNELS_VULKAN_PAIRS_GLSL

#include "kernels/vulkan/common.glsl"

// As unsigned, a negative id is as large as one past the end.
uint IdOf(uint pair) { return ids[c.ids_at / 4u + pair]; }

// In floats.
uint TokenAt(uint pair) { return c.x_at / 4u + pair / c.fan * c.cols; }
void StorePair(uint row, uint pair, float value) {
  if (row < c.rows) out_values[c.out_at / 4u + pair * c.rows + row] = value;
}

// Zeros in the workgroup's rows of the pairs of no expert.
void ClearUnknown() {
  for (uint pair = Thread(); pair < c.pairs; pair += THREADS) {
    if (IdOf(pair) < c.experts) continue;
    for (uint r = 0u; r < c.rows_per_group; ++r) {
      StorePair(gl_WorkGroupID.x * c.rows_per_group + r, pair, 0.0);
    }
  }
}

#endif
