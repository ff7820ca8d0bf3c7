// The kernels that there are as compute shaders (spirv_table.cc).
#ifndef ASSAY_KERNELS_VULKAN_SPIRV_TABLE_H_
#define ASSAY_KERNELS_VULKAN_SPIRV_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "assay/gpu.h"

#include "gpu/vulkan/spirv_kernel.h"
#include "kernels/kernel_table.h"

namespace assay::kernels {

struct SpirvRow {
  KernelIndex kernel = KernelIndex::kCount;
  uint32_t threads = 0;  // Invocations of a workgroup.
  const gpu::SpirvKernel* code = nullptr;
  // Of the shader's file and of those that it may include.
  std::string_view source_digest;
};

// Name, bindings and constants are those of the kernel's row in KernelTable().
std::span<const SpirvRow> SpirvTable();
// What a registry takes of row `index` of SpirvTable().
gpu::KernelDesc SpirvDesc(size_t index);

// False for the forms with a kQ8 output: weights of every type take f32 activations there.
bool HasSpirv(KernelIndex kernel);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_VULKAN_SPIRV_TABLE_H_
