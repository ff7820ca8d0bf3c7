#include "gpu/vulkan/optional_path.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "assay/gpu_devices.h"

#include "base/nearest.h"
#include "gpu/vulkan/spirv_kernel.h"

namespace assay::gpu::vulkan {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(OptionalPath::kCount)> kNames = {
    "push-descriptors",
    "timeline-semaphores",
    "unified-memory",
    "mapped-host-buffers",
    "subgroup-size",
    "8-bit-storage",
    "16-bit-storage",
    "float16",
    "int8",
    "integer-dot",
    kCooperativeMatrixPath};

}  // namespace

std::string_view PathName(OptionalPath path) { return kNames[static_cast<size_t>(path)]; }

Result<OptionalPaths> ParsePaths(std::span<const std::string> names) {
  OptionalPaths paths;
  for (const std::string& name : names) {
    const auto* const found = std::ranges::find(kNames, name);
    if (found == kNames.end()) {
      const std::vector<std::string> known(kNames.begin(), kNames.end());
      return Fail(
          ErrorCode::kInvalidArgument, name,
          SuggestNearest(
              fmt::format("No optional path of the vulkan backend is called \"{}\"", name), name,
              known, "\"\"", fmt::format("the known ones are: {}", fmt::join(known, ", "))));
    }
    paths.set(static_cast<size_t>(found - kNames.begin()));
  }
  return paths;
}

}  // namespace assay::gpu::vulkan

namespace assay::gpu {

Status CheckVulkanPaths(std::span<const std::string> names) {
  ASSAY_TRY(vulkan::ParsePaths(names));
  return {};
}

}  // namespace assay::gpu
