// embedding: out[i] = table[ids[i]] as f32.
//
// Bindings: table (read, inexact: data picks the rows), ids (int32, read), out (write). An id that
// is not below table_rows gives a row of zeros. Exact: a value of a float type is converted, one of
// a quantised type is float(integer) * scale, rounded once.
#ifndef ASSAY_KERNELS_EMBEDDING_EMBEDDING_H_
#define ASSAY_KERNELS_EMBEDDING_EMBEDDING_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct EmbeddingConstants {
  uint32_t table_rows = 0;
  uint32_t cols = 0;
};

Launch LaunchEmbedding(DType table_type, uint32_t table_rows, uint32_t cols, uint32_t tokens);

gpu::CpuWorkgroupFn PickEmbeddingF32(Isa isa);
gpu::CpuWorkgroupFn PickEmbeddingF16(Isa isa);
gpu::CpuWorkgroupFn PickEmbeddingBF16(Isa isa);
gpu::CpuWorkgroupFn PickEmbeddingQ8_0(Isa isa);
gpu::CpuWorkgroupFn PickEmbeddingQ4_0(Isa isa);

void ReferenceEmbedding(std::span<const double> table, std::span<const int32_t> ids, uint32_t cols,
                        std::span<double> out);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_EMBEDDING_EMBEDDING_H_
