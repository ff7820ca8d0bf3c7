#include <cstdint>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "cli/kernel_scan.h"
#include "gpu/shader_statistics.h"
#include "gpu/spirv/module.h"
#include "kernels/vulkan/spirv_table.h"

namespace assay::cli {
namespace {

using prove::Scan;
using prove::ScanRow;

std::string ShownSpecialization(std::span<const uint32_t> values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? "" : ",", i, values[i]);
  }
  return text;
}

Result<ScanRow> RowOfShader(const gpu::KernelDesc& desc, const gpu::SpirvKernel& code) {
  ASSAY_ASSIGN_OR_RETURN(gpu::spirv::ModuleFacts facts,
                         gpu::spirv::ReadModule(code.words, code.specialization));
  if (facts.shared_bytes > std::numeric_limits<uint32_t>::max()) {
    return Fail(ErrorCode::kUnsupported, std::string(desc.name),
                fmt::format("The shared memory ({} bytes) is more than a scan can tell ({}).",
                            facts.shared_bytes, std::numeric_limits<uint32_t>::max()));
  }
  return ScanRow{.kernel = std::string(desc.name),
                 .target = std::string(gpu::kSpirvCodeFormat),
                 .digest = std::move(facts.digest),
                 .workgroup = facts.workgroup,
                 .shared_bytes = static_cast<uint32_t>(facts.shared_bytes),
                 .bindings = desc.binding_count,
                 .constant_bytes = desc.constant_bytes,
                 .spec = ShownSpecialization(code.specialization),
                 .code_bytes = facts.code_bytes,
                 .instructions = std::move(facts.instructions)};
}

// With `statistics`, a second row for each kernel.
Scan ScanAll(std::string_view method, gpu::ShaderStatistics* statistics) {
  Scan scan{.method = std::string(method), .failed = {}, .rows = {}};
  for (size_t i = 0; i < kernels::SpirvTable().size(); ++i) {
    const gpu::KernelDesc desc = kernels::SpirvDesc(i);
    const auto failed = [&](const Error& error) {
      return Scan{.method = std::string(method),
                  .failed = fmt::format("Kernel \"{}\": {}", desc.name, error.ToString()),
                  .rows = {}};
    };
    Result<ScanRow> row = RowOfShader(desc, *kernels::SpirvTable()[i].code);
    if (!row) return failed(row.error());
    scan.rows.push_back(*row);
    if (statistics == nullptr) continue;
    auto figures = statistics->Ask(desc);
    if (!figures) return failed(figures.error());
    row->target = statistics->device_name();
    row->code_bytes = 0;
    row->instructions.clear();
    row->figures = *std::move(figures);
    scan.rows.push_back(*std::move(row));
  }
  return scan;
}

}  // namespace

prove::Scan ScanShaders() { return ScanAll(kSpirvMethod, nullptr); }

prove::Scan ScanShadersOn(const std::string& device) {
  const Result<std::unique_ptr<gpu::ShaderStatistics>> statistics =
      gpu::OpenShaderStatistics({.device = device, .disabled = {}, .validation = {}});
  if (!statistics) {
    return {
        .method = std::string(kDriverMethod), .failed = statistics.error().ToString(), .rows = {}};
  }
  return ScanAll(kDriverMethod, statistics->get());
}

}  // namespace assay::cli
