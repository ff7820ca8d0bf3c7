// DescriptorSets: descriptor sets of one command buffer, where they cannot be pushed.
#ifndef ASSAY_GPU_VULKAN_DESCRIPTORS_H_
#define ASSAY_GPU_VULKAN_DESCRIPTORS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/vulkan/device.h"

namespace assay::gpu::vulkan {

// One thread. Pools are added as they fill up and used again after Reset.
class DescriptorSets final {
 public:
  explicit DescriptorSets(const LogicalDevice* device) : device_(device) {}

  // A set that lives until Reset.
  Result<VkDescriptorSet> Allocate(VkDescriptorSetLayout layout, uint32_t bindings,
                                   std::string_view kernel);
  // Takes back all sets; no command buffer that uses one may run.
  void Reset();

 private:
  struct Pool {
    Owned<VkDescriptorPool> handle;
    uint32_t sets_left = 0;
    uint32_t bindings_left = 0;
  };
  Status AddPool(uint32_t bindings, std::string_view kernel);

  const LogicalDevice* device_;
  std::vector<Pool> pools_;
  size_t current_ = 0;  // The pool that sets come from; those before are full.
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_DESCRIPTORS_H_
