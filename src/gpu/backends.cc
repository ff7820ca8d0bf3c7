// The table of backends. A new backend adds one row.
#include <array>
#include <utility>

#include <fmt/format.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/cpu/cpu_backend.h"
#include "gpu/null/null_backend.h"
#include "gpu/schedule/scheduled_backend.h"
#include "gpu/vulkan/vulkan_backend.h"

void std::default_delete<assay::gpu::Backend>::operator()(assay::gpu::Backend* backend) const {
  // As its base, since deleting a Backend by std::unique_ptr is what this defines.
  const std::unique_ptr<assay::gpu::BackendObject> owner(backend);
}

namespace assay::gpu {
namespace {

struct BackendRow {
  std::string_view name;
  Result<std::unique_ptr<Backend>> (*make)(const BackendOptions& options);
};

constexpr std::array kBackends = {
    BackendRow{"cpu", [](const BackendOptions& options) { return MakeCpuBackend(options); }},
    BackendRow{"vulkan", [](const BackendOptions& options) { return MakeVulkanBackend(options); }},
    BackendRow{"null",
               [](const BackendOptions&) -> Result<std::unique_ptr<Backend>> {
                 return MakeNullBackend();
               }},
};

}  // namespace

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const BackendRow& row : kBackends) names.emplace_back(row.name);
  return names;
}

Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name, const BackendOptions& options) {
  std::string known;
  for (const BackendRow& row : kBackends) {
    if (row.name == name) {
      ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, row.make(options));
      return MakeScheduledBackend(std::move(backend), options.schedule);
    }
    if (!known.empty()) known += ", ";
    known += row.name;
  }
  return Fail(ErrorCode::kNotFound, std::string(name),
              fmt::format("No backend is called \"{}\"; the known ones are: {}.", name, known));
}

}  // namespace assay::gpu
