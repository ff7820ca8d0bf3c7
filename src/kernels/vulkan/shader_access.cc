#include "kernels/vulkan/shader_access.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gpu/vulkan/spirv_kernel.h"
#include "kernels/ops_cases.h"
#include "kernels/spy_backend.h"

namespace assay::kernels::testing {
namespace {

// Runs nothing, takes SPIR-V, and keeps the descriptions of the kernels that are built.
class SpirvNullBackend final : public assay::testing::ForwardingBackend {
 public:
  SpirvNullBackend(std::unique_ptr<gpu::Backend> inner,
                   std::map<std::string, DeclaredKernel>* kernels)
      : ForwardingBackend(std::move(inner)), kernels_(kernels) {}

  gpu::DeviceInfo info() const override {
    gpu::DeviceInfo info = ForwardingBackend::info();
    info.code_format = gpu::kSpirvCodeFormat;
    info.features.emplace_back(gpu::kCooperativeMatrixPath);
    return info;
  }
  Result<std::unique_ptr<gpu::BackendKernel>> CreateKernel(const gpu::KernelDesc& desc) override {
    DeclaredKernel& kernel = (*kernels_)[std::string(desc.name)];
    kernel.name = desc.name;
    kernel.workgroup = desc.workgroup;
    kernel.binding_count = desc.binding_count;
    kernel.constant_bytes = desc.constant_bytes;
    for (const gpu::KernelCode& code : desc.code) {
      if (code.format != gpu::kSpirvCodeFormat) continue;
      kernel.words = static_cast<const gpu::SpirvKernel*>(code.data)->words;
    }
    return ForwardingBackend::CreateKernel(desc);
  }

 private:
  std::map<std::string, DeclaredKernel>* kernels_;
};

std::string_view UseName(bool reads, bool writes) {
  if (reads && writes) return "reads and writes";
  if (reads) return "reads";
  return writes ? "writes" : "does not use";
}

std::string Shown(const Extent3& extent) {
  return fmt::format("({}, {}, {})", extent.x, extent.y, extent.z);
}

void CompareBinding(const DeclaredKernel& declared, const ShaderInterface& shader, uint32_t binding,
                    std::vector<std::string>* sentences) {
  const auto found = shader.bindings.find(binding);
  const ShaderInterface::Use use =
      found == shader.bindings.end() ? ShaderInterface::Use{} : found->second;
  for (const std::vector<Access>& dispatch : declared.dispatches) {
    const bool reads = Reads(dispatch[binding]);
    const bool writes = Writes(dispatch[binding]);
    if (writes == use.writes && (reads == use.reads || (writes && !reads && use.coherent)))
      continue;
    sentences->push_back(
        fmt::format("Binding {}: the op declares that the kernel {} it, and the shader {} it.",
                    binding, UseName(reads, writes), UseName(use.reads, use.writes)));
  }
}

}  // namespace

Result<std::vector<DeclaredKernel>> DeclareKernels() {
  std::map<std::string, DeclaredKernel> kernels;
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<gpu::Backend> null, gpu::MakeBackend("null"));
  auto backend =
      std::make_unique<SpyBackend>(std::make_unique<SpirvNullBackend>(std::move(null), &kernels));
  SpyBackend* const spy = backend.get();
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<gpu::Device> device,
                         gpu::Device::Create(std::move(backend)));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Ops> ops,
                         Ops::Create(device.get(), {.cooperative_matrix = true}));
  for (const std::string& name : device->kernels().Names()) {
    ASSAY_TRY(device->kernels().Get(name));
  }
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<gpu::Session> session,
                         device->CreateSession({.barriers = gpu::BarrierMode::kManual}));
  Operands operands(device.get(), 1);
  for (const OpCase& op : AllOpCases()) {
    const Status encoded = op.encode(*ops, *session, operands);
    // A form that has no shader.
    if (!encoded && encoded.error().code() == ErrorCode::kUnsupported) continue;
    ASSAY_TRY_WHILE(encoded, fmt::format("encoding {}", op.name));
  }
  for (const SeenDispatch& seen : spy->seen()) {
    std::vector<Access> accesses;
    for (const gpu::BackendBinding& binding : seen.bindings) accesses.push_back(binding.access);
    std::vector<std::vector<Access>>& known = kernels[seen.kernel].dispatches;
    if (std::ranges::find(known, accesses) == known.end()) known.push_back(std::move(accesses));
  }
  std::vector<DeclaredKernel> result;
  for (auto& [name, kernel] : kernels) result.push_back(std::move(kernel));
  return result;
}

std::vector<std::string> Disagreements(const DeclaredKernel& declared,
                                       const ShaderInterface& shader) {
  std::vector<std::string> sentences;
  if (shader.entry_points != std::vector<std::string>{"main"}) {
    sentences.push_back(fmt::format("The entry points are ({}); there must be one, \"main\".",
                                    fmt::join(shader.entry_points, ", ")));
  }
  if (shader.workgroup != declared.workgroup) {
    sentences.push_back(fmt::format("The workgroup is {} in the table and {} in the shader.",
                                    Shown(declared.workgroup), Shown(shader.workgroup)));
  }
  const uint32_t wanted =
      declared.constant_bytes + declared.binding_count * static_cast<uint32_t>(sizeof(uint32_t));
  if (shader.push_bytes != wanted) {
    sentences.push_back(
        fmt::format("The push constants are {} bytes in the shader; the op's {} and "
                    "a distance for each of {} bindings are {}.",
                    shader.push_bytes, declared.constant_bytes, declared.binding_count, wanted));
  }
  for (const std::string& stranger : shader.strangers) {
    sentences.push_back(fmt::format("The shader has {}.", stranger));
  }
  for (const auto& [binding, use] : shader.bindings) {
    if (binding >= declared.binding_count) {
      sentences.push_back(fmt::format("The shader uses binding {}; the kernel has {} bindings.",
                                      binding, declared.binding_count));
    }
  }
  if (declared.dispatches.empty()) {
    sentences.push_back("No op case dispatches it: its accesses are unknown. Add a case.");
  }
  for (uint32_t i = 0; i < declared.binding_count; ++i) {
    CompareBinding(declared, shader, i, &sentences);
  }
  return sentences;
}

}  // namespace assay::kernels::testing
