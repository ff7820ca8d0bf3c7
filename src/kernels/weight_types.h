// The weight types by number, for launches.
#ifndef ASSAY_KERNELS_WEIGHT_TYPES_H_
#define ASSAY_KERNELS_WEIGHT_TYPES_H_

#include <cstdint>

#include "assay/kernels.h"

#include "kernels/kernel_table.h"

namespace assay::kernels {

constexpr bool IsQuantised(DType type) { return type == DType::kQ8_0 || type == DType::kQ4_0; }

inline uint64_t WeightRowBytes(DType type, uint32_t cols) {
  return uint64_t{cols} / DTypeBlockSize(type) * DTypeBlockBytes(type);
}

// The kernel for `type` of an op whose F32 form is `first`.
constexpr KernelIndex WeightKernel(KernelIndex first, DType type) {
  uint8_t offset = 0;
  switch (type) {
    case DType::kF16:
      offset = 1;
      break;
    case DType::kBF16:
      offset = 2;
      break;
    case DType::kQ8_0:
      offset = 3;
      break;
    case DType::kQ4_0:
      offset = 4;
      break;
    case DType::kF32:
    case DType::kI32:
      break;
  }
  return static_cast<KernelIndex>(static_cast<uint8_t>(first) + offset);
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_WEIGHT_TYPES_H_
