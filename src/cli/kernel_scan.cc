#include "cli/kernel_scan.h"

#include <cstdint>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "kernels/kernel_table.h"
#include "prove/program_code.h"

namespace assay::cli {
namespace {

using prove::Scan;
using prove::ScanRow;

Status AddCode(prove::ProgramCode* code, gpu::CpuWorkgroupFn run, ScanRow* row) {
  ASSAY_ASSIGN_OR_RETURN(prove::CodeDigest digest, code->DigestOf(reinterpret_cast<uint64_t>(run)));
  row->digest = std::move(digest.digest);
  row->code_bytes = digest.code_bytes;
  row->instructions = std::move(digest.instructions);
  return {};
}

Result<Scan> ScanBy(std::string_view method) {
  Scan scan{.method = std::string(method), .failed = {}, .rows = {}};
  std::unique_ptr<prove::ProgramCode> code;
  if (method == kCodeMethod) {
    ASSAY_ASSIGN_OR_RETURN(code, prove::ProgramCode::OpenRunning());
  } else if (method != kSourceMethod) {
    return Fail(ErrorCode::kInvalidArgument, "", fmt::format("There is no method \"{}\".", method));
  }
  for (const kernels::KernelRow& kernel : kernels::KernelTable()) {
    for (size_t i = 0; i < kernels::kIsaCount; ++i) {
      const auto isa = static_cast<kernels::Isa>(i);
      const gpu::CpuWorkgroupFn run = kernel.pick(isa);
      if (run == nullptr) continue;
      const std::string target(kernels::IsaName(isa));
      ScanRow row{.kernel = std::string(kernel.name),
                  .target = target,
                  .digest = HexDigest(std::string(kernel.source_digest) + target),
                  .workgroup = {1, 1, 1},
                  .bindings = kernel.binding_count,
                  .constant_bytes = kernel.constant_bytes};
      if (code != nullptr) {
        if (const Status added = AddCode(code.get(), run, &row); !added) {
          return Fail(added.error().code(), "",
                      fmt::format("Kernel \"{}\" for {}: {}", kernel.name, target,
                                  added.error().ToString()));
        }
      }
      scan.rows.push_back(std::move(row));
    }
  }
  return scan;
}

Scan MadeOrFailed(std::string_view method, Result<Scan> scan) {
  if (scan) return std::move(*scan);
  return {.method = std::string(method), .failed = scan.error().ToString(), .rows = {}};
}

}  // namespace

prove::Scan ScanKernels(std::string_view method) { return MadeOrFailed(method, ScanBy(method)); }

prove::Scan ScanBackend(std::string_view backend) {
  if (backend == "vulkan") return ScanShaders();
  Result<Scan> scan = ScanBy(kCodeMethod);
  // What fails for reasons of the moment, as for want of memory, would be another scan next time.
  const bool again = !scan && (scan.error().code() == ErrorCode::kIo ||
                               scan.error().code() == ErrorCode::kAllocation);
  return scan || again ? MadeOrFailed(kCodeMethod, std::move(scan)) : ScanKernels(kSourceMethod);
}

}  // namespace assay::cli
