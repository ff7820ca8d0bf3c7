// BoundBytes: one binding of a dispatch as the host sees it.
#ifndef ASSAY_GPU_CHECK_BOUND_BYTES_H_
#define ASSAY_GPU_CHECK_BOUND_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "assay/base.h"

namespace assay::gpu {

struct BoundBytes {
  std::byte* allocation = nullptr;  // The first byte of the buffer.
  ByteRange range;
  Access access = Access::kRead;
  const std::string* label = nullptr;  // Lives as long as the buffer.
  uint64_t allocation_bytes = 0;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CHECK_BOUND_BYTES_H_
