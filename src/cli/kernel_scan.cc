#include "cli/kernel_scan.h"

#include <cstdint>
#include <memory>

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

Scan Failed(std::string_view method, std::string reason) {
  return {.method = std::string(method), .failed = std::move(reason), .rows = {}};
}

// ScanKernels; `why` gets the code of the error that it fails by.
Scan ScanBy(std::string_view method, ErrorCode* why) {
  Scan scan{.method = std::string(method), .failed = {}, .rows = {}};
  std::unique_ptr<prove::ProgramCode> code;
  if (method == kCodeMethod) {
    Result<std::unique_ptr<prove::ProgramCode>> opened = prove::ProgramCode::OpenRunning();
    if (!opened) {
      *why = opened.error().code();
      return Failed(method, opened.error().ToString());
    }
    code = std::move(*opened);
  } else if (method != kSourceMethod) {
    *why = ErrorCode::kInvalidArgument;
    return Failed(method, fmt::format("There is no method \"{}\".", method));
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
          *why = added.error().code();
          return Failed(method, fmt::format("Kernel \"{}\" for {}: {}", kernel.name, target,
                                            added.error().ToString()));
        }
      }
      scan.rows.push_back(std::move(row));
    }
  }
  return scan;
}

}  // namespace

prove::Scan ScanKernels(std::string_view method) {
  ErrorCode why = {};
  return ScanBy(method, &why);
}

prove::Scan ScanBackend(std::string_view backend) {
  if (backend == "vulkan") return ScanShaders();
  ErrorCode why = {};
  Scan scan = ScanBy(kCodeMethod, &why);
  // What fails for other reasons, as for want of memory, would be another scan the next time.
  const bool unreadable = !scan.failed.empty() && why == ErrorCode::kUnsupported;
  return unreadable ? ScanKernels(kSourceMethod) : scan;
}

}  // namespace assay::cli
