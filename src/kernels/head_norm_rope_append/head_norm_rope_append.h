// head_norm_rope_append: head_norm_rope of each row of k, and kv_append of the result and of v. k
// itself stays as it was.
//
// Bindings: k (f32, read), weight (f32 of head_dim, read), v (f32, read), the written rows of the k
// cache and of the v cache (write). The bits are those of the two ops. Tolerance against float64:
// that of head_norm_rope; an f16 cache adds its rounding.
#ifndef ASSAY_KERNELS_HEAD_NORM_ROPE_APPEND_HEAD_NORM_ROPE_APPEND_H_
#define ASSAY_KERNELS_HEAD_NORM_ROPE_APPEND_HEAD_NORM_ROPE_APPEND_H_

#include <cstdint>

#include "assay/kernels.h"

#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/launch.h"

namespace assay::kernels {

struct HeadNormRopeAppendConstants {
  HeadNormRopeConstants head;
};

Launch LaunchHeadNormRopeAppend(DType cache_type, uint32_t rows, uint32_t cols, uint32_t head_dim,
                                float eps, uint32_t first_position, float base,
                                Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickHeadNormRopeAppendF32(Isa isa);
gpu::CpuWorkgroupFn PickHeadNormRopeAppendF16(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_HEAD_NORM_ROPE_APPEND_HEAD_NORM_ROPE_APPEND_H_
