// Run by the build: fails it when a shader does anything else than what its op declares.
#include <fmt/format.h>

#include "kernels/vulkan/shader_access.h"

int main() {
  using assay::kernels::testing::DeclaredKernel;
  using assay::kernels::testing::DeclareKernels;
  using assay::kernels::testing::ReflectShader;
  using assay::kernels::testing::ShaderInterface;
  const assay::Result<std::vector<DeclaredKernel>> kernels = DeclareKernels();
  if (!kernels) {
    fmt::print(stderr, "check_shaders: {}\n", kernels.error().ToString());
    return 1;
  }
  size_t wrong = 0;
  for (const DeclaredKernel& kernel : *kernels) {
    const assay::Result<ShaderInterface> shader = ReflectShader(kernel.words);
    const std::vector<std::string> sentences =
        shader ? Disagreements(kernel, *shader)
               : std::vector<std::string>{shader.error().ToString()};
    for (const std::string& sentence : sentences) {
      fmt::print(stderr, "check_shaders: kernel {}: {}\n", kernel.name, sentence);
      ++wrong;
    }
  }
  if (wrong == 0 && !kernels->empty()) return 0;
  fmt::print(stderr, "check_shaders: {} disagreements in {} kernels.\n", wrong, kernels->size());
  return 1;
}
