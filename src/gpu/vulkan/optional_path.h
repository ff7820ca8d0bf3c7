// The optional paths of the vulkan backend: what it uses where the driver has it, each of which can
// be turned off by name, so that both sides can be tested on one driver.
#ifndef ASSAY_GPU_VULKAN_OPTIONAL_PATH_H_
#define ASSAY_GPU_VULKAN_OPTIONAL_PATH_H_

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "assay/base.h"

namespace assay::gpu::vulkan {

enum class OptionalPath : uint8_t {
  kPushDescriptors,     // Bindings are pushed into the command buffer; else descriptor pools.
  kTimelineSemaphores,  // One semaphore counts what has finished; else a fence a submission.
  kUnifiedMemory,       // Buffers lie in memory that the host maps; else copies through staging.
  kMappedHostBuffers,   // Small buffers of the host's lie in device memory that it maps as well.
  kSubgroupSize,        // Pipelines ask for full subgroups of 32; else the driver chooses.
  kStorage8,            // Shaders may load and store 8-bit values.
  kStorage16,           // Shaders may load and store 16-bit values.
  kFloat16,             // Shaders may compute in 16-bit floats.
  kInt8,                // Shaders may compute in 8-bit integers.
  kIntegerDotProduct,   // Shaders may multiply and add packed bytes.
  kCooperativeMatrix,   // Shaders may multiply matrices by subgroup: cooperative_matrix.h.
  kCount,
};

using OptionalPaths = std::bitset<static_cast<size_t>(OptionalPath::kCount)>;

inline bool Has(const OptionalPaths& paths, OptionalPath path) {
  return paths.test(static_cast<size_t>(path));
}

// "push-descriptors", ...
std::string_view PathName(OptionalPath path);

// The paths that `names` stand for. Error kInvalidArgument for an unknown one, with those known.
Result<OptionalPaths> ParsePaths(std::span<const std::string> names);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_OPTIONAL_PATH_H_
