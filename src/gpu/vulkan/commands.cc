#include "gpu/vulkan/commands.h"

namespace assay::gpu::vulkan {

Result<Commands> Commands::Create(const LogicalDevice& device, std::string_view subject,
                                  std::string_view doing) {
  Commands commands;
  commands.device_ = &device;
  VkCommandPoolCreateInfo pool = {};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device.physical().queue_family;
  ASSAY_ASSIGN_OR_RETURN(commands.pool_,
                         Make<VkCommandPool>(device, device.api().vkCreateCommandPool, pool,
                                             "vkCreateCommandPool", subject, doing));
  VkCommandBufferAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = commands.pool_.get();
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  ASSAY_TRY(device.Try("vkAllocateCommandBuffers", subject, doing, [&] {
    return device.api().vkAllocateCommandBuffers(device.handle(), &info, &commands.handle_);
  }));
  return commands;
}

Status Commands::Begin(std::string_view subject, std::string_view doing) {
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  return device_->Try("vkBeginCommandBuffer", subject, doing,
                      [&] { return device_->api().vkBeginCommandBuffer(handle_, &info); });
}

void Commands::Barrier(const StageAccess& from, const StageAccess& to) {
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = from.access;
  barrier.dstAccessMask = to.access;
  device_->api().vkCmdPipelineBarrier(handle_, from.stages, to.stages, 0, 1, &barrier, 0, nullptr,
                                      0, nullptr);
}

Status Commands::End(std::string_view subject, std::string_view doing) {
  return device_->Try("vkEndCommandBuffer", subject, doing,
                      [&] { return device_->api().vkEndCommandBuffer(handle_); });
}

}  // namespace assay::gpu::vulkan
