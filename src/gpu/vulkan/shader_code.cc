#include "gpu/vulkan/shader_code.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace assay::gpu::vulkan {
namespace {

// Numbers of the SPIR-V specification, section 3 "Binary Form".
constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;
constexpr uint32_t kOpCapability = 17;
constexpr uint32_t kOpExecutionMode = 16;
constexpr uint32_t kModeLocalSize = 17;
constexpr uint32_t kOpArrayLength = 68;

// What a device must have for a capability.
struct Need {
  uint32_t capability;
  std::string_view name;
  bool (*met)(const PhysicalDevice& device);
  // The one that gives it, where one does.
  std::optional<OptionalPath> path = {};
};

template <OptionalPath kPath>
bool Uses(const PhysicalDevice& device) {
  return Has(device.paths, kPath);
}
template <OptionalPath kPath>
constexpr Need Gives(uint32_t capability, std::string_view name) {
  return {capability, name, Uses<kPath>, kPath};
}
template <VkSubgroupFeatureFlagBits kOperation>
bool Operates(const PhysicalDevice& device) {
  return (device.subgroup_operations & kOperation) != 0;
}
bool Always(const PhysicalDevice&) { return true; }

constexpr std::array kNeeds = {
    Need{0, "Matrix", Always},
    Need{1, "Shader", Always},
    Gives<OptionalPath::kFloat16>(9, "Float16"),
    Need{10, "Float64", [](const PhysicalDevice& device) { return device.float64; }},
    Need{11, "Int64", [](const PhysicalDevice& device) { return device.int64; }},
    Need{22, "Int16", [](const PhysicalDevice& device) { return device.int16; }},
    Gives<OptionalPath::kInt8>(39, "Int8"),
    Need{61, "GroupNonUniform", Operates<VK_SUBGROUP_FEATURE_BASIC_BIT>},
    Need{62, "GroupNonUniformVote", Operates<VK_SUBGROUP_FEATURE_VOTE_BIT>},
    Need{63, "GroupNonUniformArithmetic", Operates<VK_SUBGROUP_FEATURE_ARITHMETIC_BIT>},
    Need{64, "GroupNonUniformBallot", Operates<VK_SUBGROUP_FEATURE_BALLOT_BIT>},
    Need{65, "GroupNonUniformShuffle", Operates<VK_SUBGROUP_FEATURE_SHUFFLE_BIT>},
    Need{66, "GroupNonUniformShuffleRelative", Operates<VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT>},
    Need{67, "GroupNonUniformClustered", Operates<VK_SUBGROUP_FEATURE_CLUSTERED_BIT>},
    Need{68, "GroupNonUniformQuad", Operates<VK_SUBGROUP_FEATURE_QUAD_BIT>},
    Gives<OptionalPath::kStorage16>(4433, "StorageBuffer16BitAccess"),
    Gives<OptionalPath::kStorage8>(4448, "StorageBuffer8BitAccess"),
    Need{5345, "VulkanMemoryModel",
         [](const PhysicalDevice& device) { return device.memory_model; }},
    Gives<OptionalPath::kCooperativeMatrix>(5357, "CooperativeMatrixNV"),
    Gives<OptionalPath::kIntegerDotProduct>(6016, "DotProductInputAll"),
    Gives<OptionalPath::kIntegerDotProduct>(6017, "DotProductInput4x8Bit"),
    Gives<OptionalPath::kIntegerDotProduct>(6018, "DotProductInput4x8BitPacked"),
    Gives<OptionalPath::kIntegerDotProduct>(6019, "DotProduct"),
};

}  // namespace

Status CheckShader(std::span<const uint32_t> words, const PhysicalDevice& device,
                   std::string_view kernel, Extent3 workgroup) {
  const auto broken = [&](std::string_view what) {
    return Fail(
        ErrorCode::kKernelCompile, std::string(kernel),
        fmt::format("The SPIR-V ({} words) of kernel \"{}\" {}.", words.size(), kernel, what));
  };
  if (words.size() < kHeaderWords || words[0] != kMagic) return broken("is not a module");
  for (size_t at = kHeaderWords; at < words.size();) {
    const uint32_t length = words[at] >> 16;
    const uint32_t operation = words[at] & 0xffff;
    if (length == 0 || length > words.size() - at) return broken("is cut short");
    if (operation == kOpCapability && length == 2) {
      const auto* const need = std::ranges::find(kNeeds, words[at + 1], &Need::capability);
      if (need == kNeeds.end() || !need->met(device)) {
        const bool known = need != kNeeds.end();
        const std::string capability =
            known ? std::string(need->name) : std::to_string(words[at + 1]);
        if (known && need->path) {
          return Fail(ErrorCode::kUnsupported, std::string(kernel),
                      fmt::format("Kernel \"{}\" needs the SPIR-V capability {}, for which the "
                                  "optional path \"{}\" is turned off or not there on the Vulkan "
                                  "device \"{}\".",
                                  kernel, capability, PathName(*need->path), device.name));
        }
        return Fail(ErrorCode::kUnsupported, std::string(kernel),
                    fmt::format("Kernel \"{}\" needs the SPIR-V capability {}, which the backend "
                                "does not use on the Vulkan device \"{}\".",
                                kernel, capability, device.name));
      }
    }
    if (operation == kOpExecutionMode && length == 6 && words[at + 2] == kModeLocalSize) {
      const Extent3 size{words[at + 3], words[at + 4], words[at + 5]};
      if (size != workgroup) {
        return broken(
            fmt::format("has workgroups of ({}, {}, {}), not of ({}, {}, {}) as its "
                        "description says",
                        size.x, size.y, size.z, workgroup.x, workgroup.y, workgroup.z));
      }
    }
    at += length;
  }
  return {};
}

bool AsksLengths(std::span<const uint32_t> words) {
  for (size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffff) == kOpArrayLength) return true;
  }
  return false;
}

}  // namespace assay::gpu::vulkan
