#include "gpu/vulkan/glsl_compiler.h"

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <shaderc/shaderc.h>

namespace assay::gpu::vulkan {
namespace {

// Deletes an object of shaderc's by the function that releases it.
template <auto kRelease>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};
template <typename T, auto kRelease>
using Shaderc = std::unique_ptr<T, Releaser<kRelease>>;

// One answer to an #include: the embedded file, or the words that it is not there.
struct Include {
  shaderc_include_result result = {};
  std::string missing;
};

shaderc_include_result* ResolveInclude(void* user_data, const char* requested, int, const char*,
                                       size_t) {
  const auto& kernel = *static_cast<const SpirvKernel*>(user_data);
  auto include = std::make_unique<Include>();
  const auto found =
      std::ranges::find(kernel.includes, std::string_view(requested), &ShaderFile::name);
  shaderc_include_result& result = include->result;
  if (found == kernel.includes.end()) {
    include->missing = fmt::format("no embedded file is called \"{}\"", requested);
    result.content = include->missing.data();
    result.content_length = include->missing.size();
  } else {
    result.source_name = found->name.data();
    result.source_name_length = found->name.size();
    result.content = found->text.data();
    result.content_length = found->text.size();
  }
  result.user_data = include.get();
  return &include.release()->result;
}

void ReleaseInclude(void*, shaderc_include_result* result) {
  const std::unique_ptr<Include> owner(static_cast<Include*>(result->user_data));
}

}  // namespace

Result<std::vector<uint32_t>> CompileGlsl(const SpirvKernel& kernel, std::string_view name) {
  const Shaderc<shaderc_compiler, shaderc_compiler_release> compiler(shaderc_compiler_initialize());
  const Shaderc<shaderc_compile_options, shaderc_compile_options_release> options(
      shaderc_compile_options_initialize());
  if (compiler == nullptr || options == nullptr) {
    return Fail(ErrorCode::kAllocation, std::string(name),
                fmt::format("The shader compiler cannot be started for kernel \"{}\".", name));
  }
  // The same as ASSAY_GLSLC_OPTIONS in cmake/EmbedSpirv.cmake.
  shaderc_compile_options_set_target_env(options.get(), shaderc_target_env_vulkan,
                                         shaderc_env_version_vulkan_1_2);
  shaderc_compile_options_set_optimization_level(options.get(),
                                                 shaderc_optimization_level_performance);
  for (const std::string_view define : kernel.defines) {
    const size_t equals = std::min(define.find('='), define.size());
    const std::string_view value = define.substr(std::min(equals + 1, define.size()));
    shaderc_compile_options_add_macro_definition(options.get(), define.data(), equals, value.data(),
                                                 value.size());
  }
  SpirvKernel source = kernel;
  shaderc_compile_options_set_include_callbacks(options.get(), ResolveInclude, ReleaseInclude,
                                                &source);
  const std::string file(name);
  const Shaderc<shaderc_compilation_result, shaderc_result_release> result(
      shaderc_compile_into_spv(compiler.get(), kernel.source.data(), kernel.source.size(),
                               shaderc_compute_shader, file.c_str(), "main", options.get()));
  if (result == nullptr ||
      shaderc_result_get_compilation_status(result.get()) != shaderc_compilation_status_success) {
    std::string message = result == nullptr ? "" : shaderc_result_get_error_message(result.get());
    while (message.ends_with('\n')) message.pop_back();
    return Fail(ErrorCode::kKernelCompile, file,
                fmt::format("The GLSL of kernel \"{}\" does not compile: {}", name, message));
  }
  const char* const bytes = shaderc_result_get_bytes(result.get());
  const size_t length = shaderc_result_get_length(result.get());
  std::vector<uint32_t> words(length / sizeof(uint32_t));
  std::copy_n(bytes, words.size() * sizeof(uint32_t), reinterpret_cast<char*>(words.data()));
  return words;
}

}  // namespace assay::gpu::vulkan
