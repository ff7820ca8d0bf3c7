// What a compute shader does with its bindings, by SPIRV-Cross, against what the ops declare of
// their dispatches.
#ifndef ASSAY_KERNELS_VULKAN_SHADER_ACCESS_H_
#define ASSAY_KERNELS_VULKAN_SHADER_ACCESS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "assay/base.h"

namespace assay::kernels::testing {

// What a module says of itself.
struct ShaderInterface {
  struct Use {
    bool reads = false;
    bool writes = false;
    // Declared so by a shader that reads back what its own workgroup wrote.
    bool coherent = false;
  };
  std::vector<std::string> entry_points;  // Of compute shaders.
  Extent3 workgroup = {0, 0, 0};
  // By binding of descriptor set 0: what the shader may do with a storage buffer that it uses. A
  // buffer that is declared several times, as words and as vectors say, may be used in each way in
  // which one of them may.
  std::map<uint32_t, Use> bindings;
  uint32_t push_bytes = 0;
  // What no kernel has: other descriptor sets and kinds of resource.
  std::vector<std::string> strangers;
};

// Error kFormat for words that SPIRV-Cross does not read.
Result<ShaderInterface> ReflectShader(std::span<const uint32_t> words);

// A kernel as it is registered and as the ops dispatch it.
struct DeclaredKernel {
  std::string name;
  Extent3 workgroup;
  uint32_t binding_count = 0;
  uint32_t constant_bytes = 0;
  std::span<const uint32_t> words;
  // The different lists of accesses, one a binding, of its dispatches; empty: no op dispatched it.
  std::vector<std::vector<Access>> dispatches;
};

// What the ops ask of a device whose code is SPIR-V, for all op cases (ops_cases.h). By name.
Result<std::vector<DeclaredKernel>> DeclareKernels();

// A sentence for each thing in which the two do not agree. A buffer that the shader reads may be
// declared as written alone when it is coherent: that nothing but its own writes is read is for the
// tests that fill it with other bytes (ops_access_test.cc).
std::vector<std::string> Disagreements(const DeclaredKernel& declared,
                                       const ShaderInterface& shader);

}  // namespace assay::kernels::testing

#endif  // ASSAY_KERNELS_VULKAN_SHADER_ACCESS_H_
