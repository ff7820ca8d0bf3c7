// The table of backends. A new backend adds one row.
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "assay/gpu.h"
#include "assay/gpu_devices.h"

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
  Result<std::vector<DeviceListing>> (*list)();
};

// The listing of a backend that always has one device.
std::vector<DeviceListing> ListOnly(const Backend& backend, std::string_view type) {
  DeviceListing listing;
  listing.info = backend.info();
  listing.type = type;
  listing.memory_bytes = backend.memory().total_bytes;
  return {std::move(listing)};
}

Result<std::vector<DeviceListing>> ListCpu() {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeCpuBackend({}));
  return ListOnly(*backend, "cpu");
}

Result<std::vector<DeviceListing>> ListNull() { return ListOnly(*MakeNullBackend(), "none"); }

Result<std::unique_ptr<Backend>> MakeVulkan(const BackendOptions& options) {
  return MakeVulkanBackend(options);
}

constexpr std::array kBackends = {
    BackendRow{"cpu", MakeCpuBackend, ListCpu},
    BackendRow{"vulkan", MakeVulkan, ListVulkanDevices},
    BackendRow{
        "null",
        [](const BackendOptions&) -> Result<std::unique_ptr<Backend>> { return MakeNullBackend(); },
        ListNull},
};

Result<const BackendRow*> FindBackend(std::string_view name) {
  std::string known;
  for (const BackendRow& row : kBackends) {
    if (row.name == name) return &row;
    if (!known.empty()) known += ", ";
    known += row.name;
  }
  return Fail(ErrorCode::kNotFound, std::string(name),
              fmt::format("No backend is called \"{}\"; the known ones are: {}.", name, known));
}

}  // namespace

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const BackendRow& row : kBackends) names.emplace_back(row.name);
  return names;
}

Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name, const BackendOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const BackendRow* const row, FindBackend(name));
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, row->make(options));
  return MakeScheduledBackend(std::move(backend), options.schedule);
}

Result<std::vector<DeviceListing>> ListDevices(std::string_view backend) {
  ASSAY_ASSIGN_OR_RETURN(const BackendRow* const row, FindBackend(backend));
  return row->list();
}

}  // namespace assay::gpu
