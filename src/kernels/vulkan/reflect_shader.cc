#include <fmt/format.h>
#include <spirv_cross/spirv_cross.hpp>

#include "kernels/vulkan/shader_access.h"

namespace assay::kernels::testing {
namespace {

using spirv_cross::Compiler;
using spirv_cross::Resource;
using spirv_cross::ShaderResources;

// Numbers of the SPIR-V specification, sections 2.3 and 3.
constexpr size_t kHeaderWords = 5;
constexpr uint32_t kTypeVector = 23;
constexpr uint32_t kTypeCooperativeMatrix = 5358;

// SPIRV-Cross knows no cooperative matrices. A vector in the place of their type says as much of
// which buffers a shader uses, and how.
std::vector<uint32_t> WithVectorsForMatrices(std::span<const uint32_t> words) {
  std::vector<uint32_t> result(words.begin(), words.end());
  for (size_t at = kHeaderWords; at < words.size();) {
    const uint32_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) break;
    if (words[at] == (6U << 16 | kTypeCooperativeMatrix)) {
      // The result and the type of a component stay; four of them, and two words that do nothing.
      result[at] = 4U << 16 | kTypeVector;
      result[at + 3] = 4;
      result[at + 4] = result[at + 5] = 1U << 16;
    }
    at += length;
  }
  return result;
}

void AddBuffer(const Compiler& compiler, const Resource& buffer, ShaderInterface* shader) {
  const uint32_t set = compiler.get_decoration(buffer.id, spv::DecorationDescriptorSet);
  const uint32_t binding = compiler.get_decoration(buffer.id, spv::DecorationBinding);
  if (set != 0) {
    shader->strangers.push_back(fmt::format("binding {} of descriptor set {}", binding, set));
    return;
  }
  const spirv_cross::Bitset flags = compiler.get_buffer_block_flags(buffer.id);
  ShaderInterface::Use& use = shader->bindings[binding];
  use.reads |= !flags.get(spv::DecorationNonReadable);
  use.writes |= !flags.get(spv::DecorationNonWritable);
  use.coherent |= flags.get(spv::DecorationCoherent);
}

ShaderInterface Reflect(const Compiler& compiler) {
  ShaderInterface shader;
  for (const auto& entry : compiler.get_entry_points_and_stages()) {
    if (entry.execution_model == spv::ExecutionModelGLCompute) {
      shader.entry_points.push_back(entry.name);
    } else {
      shader.strangers.push_back(fmt::format("entry point {} of another stage", entry.name));
    }
  }
  const auto size = [&](uint32_t axis) {
    return compiler.get_execution_mode_argument(spv::ExecutionModeLocalSize, axis);
  };
  shader.workgroup = {size(0), size(1), size(2)};
  const ShaderResources used =
      compiler.get_shader_resources(compiler.get_active_interface_variables());
  for (const Resource& buffer : used.storage_buffers) AddBuffer(compiler, buffer, &shader);
  const ShaderResources all = compiler.get_shader_resources();
  for (const Resource& block : all.push_constant_buffers) {
    shader.push_bytes += static_cast<uint32_t>(
        compiler.get_declared_struct_size(compiler.get_type(block.base_type_id)));
  }
  for (const auto* others : {&all.uniform_buffers, &all.storage_images, &all.sampled_images,
                             &all.separate_images, &all.separate_samplers, &all.atomic_counters,
                             &all.acceleration_structures, &all.subpass_inputs}) {
    for (const Resource& other : *others) {
      shader.strangers.push_back(
          fmt::format("binding {}, which is no storage buffer",
                      compiler.get_decoration(other.id, spv::DecorationBinding)));
    }
  }
  return shader;
}

}  // namespace

Result<ShaderInterface> ReflectShader(std::span<const uint32_t> words) {
  try {
    return Reflect(Compiler(WithVectorsForMatrices(words)));
  } catch (const spirv_cross::CompilerError& error) {
    return Fail(ErrorCode::kFormat, "SPIR-V",
                fmt::format("SPIRV-Cross does not read the shader: {}.", error.what()));
  }
}

}  // namespace assay::kernels::testing
