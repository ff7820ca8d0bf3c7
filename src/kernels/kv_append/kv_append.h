// kv_append: copies the rows of k and v to rows first_position, first_position + 1, ... of their
// caches.
//
// Bindings: k, v (f32, read), the written rows of the k cache and of the v cache (write). f16
// rounds to the nearest, ties to even; f32 copies.
#ifndef ASSAY_KERNELS_KV_APPEND_KV_APPEND_H_
#define ASSAY_KERNELS_KV_APPEND_KV_APPEND_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct KvAppendConstants {
  uint32_t cols = 0;
};

// The cache bindings begin at the first row written.
Launch LaunchKvAppend(DType cache_type, uint32_t rows, uint32_t cols);

gpu::CpuWorkgroupFn PickKvAppendF32(Isa isa);
gpu::CpuWorkgroupFn PickKvAppendF16(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_KV_APPEND_KV_APPEND_H_
