#include "gpu/vulkan/descriptors.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace assay::gpu::vulkan {
namespace {

constexpr uint32_t kSetsPerPool = 256;
constexpr uint32_t kBindingsPerPool = 2048;

}  // namespace

Status DescriptorSets::AddPool(uint32_t bindings, std::string_view kernel) {
  const uint32_t room = std::max(kBindingsPerPool, bindings);
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, room};
  VkDescriptorPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = kSetsPerPool;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  ASSAY_ASSIGN_OR_RETURN(
      Owned<VkDescriptorPool> pool,
      Make<VkDescriptorPool>(*device_, device_->api().vkCreateDescriptorPool, info,
                             "vkCreateDescriptorPool", kernel,
                             fmt::format("Descriptors for kernel \"{}\" cannot be made", kernel)));
  pools_.push_back({std::move(pool), kSetsPerPool, room});
  return {};
}

Result<VkDescriptorSet> DescriptorSets::Allocate(VkDescriptorSetLayout layout, uint32_t bindings,
                                                 std::string_view kernel) {
  while (current_ < pools_.size() &&
         (pools_[current_].sets_left == 0 || pools_[current_].bindings_left < bindings)) {
    ++current_;
  }
  if (current_ == pools_.size()) ASSAY_TRY(AddPool(bindings, kernel));
  Pool& pool = pools_[current_];
  VkDescriptorSetAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = pool.handle.get();
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  ASSAY_TRY(device_->Try(
      "vkAllocateDescriptorSets", kernel,
      fmt::format("Descriptors for kernel \"{}\" cannot be made", kernel),
      [&] { return device_->api().vkAllocateDescriptorSets(device_->handle(), &info, &set); }));
  --pool.sets_left;
  pool.bindings_left -= bindings;
  return set;
}

void DescriptorSets::Reset() {
  for (size_t i = 0; i < pools_.size() && i <= current_; ++i) {
    // It can only succeed, by the specification.
    device_->api().vkResetDescriptorPool(device_->handle(), pools_[i].handle.get(), 0);
    pools_[i].sets_left = kSetsPerPool;
    pools_[i].bindings_left = kBindingsPerPool;
  }
  current_ = 0;
}

}  // namespace assay::gpu::vulkan
