// The form in which a kernel's SPIR-V reaches the vulkan backend: KernelCode{"spirv",
// &spirv_kernel, sizeof(SpirvKernel)}. cmake/EmbedSpirv.cmake makes one from a GLSL file.
//
// Binding i of the dispatch is storage buffer i of descriptor set 0. Its bound range begins up to
// an alignment of the device before the view and ends up to 3 bytes behind it. The push constants
// are the dispatch's constants and then one uint a binding: the bytes from the start of the bound
// range to the view's first byte.
#ifndef ASSAY_GPU_VULKAN_SPIRV_KERNEL_H_
#define ASSAY_GPU_VULKAN_SPIRV_KERNEL_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace assay::gpu {

inline constexpr std::string_view kSpirvCodeFormat = "spirv";

// The optional path, as DeviceInfo::features names it, without which no shader may multiply
// matrices of f16 by subgroup.
inline constexpr std::string_view kCooperativeMatrixPath = "cooperative-matrix";

// A file that a shader includes, under the name by which #include asks for it.
struct ShaderFile {
  std::string_view name;
  std::string_view text;
};

// A compute shader with the entry point "main". All spans are constant tables.
struct SpirvKernel {
  // What glslc made of `source` when the program was built; spirv-val has accepted it.
  std::span<const uint32_t> words;
  // The same shader as GLSL, for compilation at run time.
  std::string_view source;
  std::span<const ShaderFile> includes;
  // "NAME=VALUE" each.
  std::span<const std::string_view> defines;
  // Values of the specialization constants 0, 1, ...; 32 bits each.
  std::span<const uint32_t> specialization;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_VULKAN_SPIRV_KERNEL_H_
