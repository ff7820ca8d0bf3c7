// The pairs of matmul_by_expert (its header says what they are): where their buffers `ids`, x and
// `out_values` have them, and a list of those of one expert, in shared memory.
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

// The pairs are looked through in windows, of which each invocation takes a run.
#ifndef WINDOW
#define WINDOW 4096
#endif
#define RUN (WINDOW / THREADS)
shared uint list[WINDOW];
shared uint counts[THREADS];
shared uint of_sixteen[THREADS / 16];

// Lists the pairs of the expert from `first` on, in their order, and says how many they are.
uint ListPairs(uint expert, uint first) {
  const uint begin = first + Thread() * RUN;
  uint found = 0u;
  for (uint i = 0u; i < RUN && begin + i < c.pairs; ++i) {
    if (IdOf(begin + i) == expert) found |= 1u << i;
  }
  counts[Thread()] = bitCount(found);
  barrier();
  const uint sixteen = Thread() / 16u;
  if (Thread() < THREADS / 16) {
    uint sum = 0u;
    for (uint i = 0u; i < 16u; ++i) sum += counts[Thread() * 16u + i];
    of_sixteen[Thread()] = sum;
  }
  barrier();
  uint at = 0u;
  uint all = 0u;
  for (uint i = 0u; i < THREADS / 16; ++i) {
    if (i < sixteen) at += of_sixteen[i];
    all += of_sixteen[i];
  }
  for (uint i = sixteen * 16u; i < Thread(); ++i) at += counts[i];
  for (uint i = 0u; i < RUN; ++i) {
    if ((found >> i & 1u) != 0u) list[at++] = begin + i;
  }
  barrier();
  return all;
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
