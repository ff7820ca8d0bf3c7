#include "gpu/vulkan/command_buffer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "gpu/vulkan/buffer.h"

namespace assay::gpu::vulkan {
namespace {

constexpr uint64_t kWordBytes = 4;
constexpr StageAccess kShaderWrites = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                       VK_ACCESS_SHADER_WRITE_BIT};
constexpr StageAccess kShaderAccess = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                       VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
constexpr std::string_view kRecording = "A command buffer cannot be recorded";

}  // namespace

// --- SpareSlots

Result<std::unique_ptr<CommandSlot>> SpareSlots::Take() {
  if (!slots_.empty()) {
    std::unique_ptr<CommandSlot> slot = std::move(slots_.back());
    slots_.pop_back();
    slot->descriptors.Reset();
    return slot;
  }
  auto slot = std::make_unique<CommandSlot>(device_);
  ASSAY_ASSIGN_OR_RETURN(slot->commands,
                         Commands::Create(*device_, device_->physical().name, kRecording));
  return slot;
}

Status CheckGrid(const LogicalDevice& device, const BackendDispatch& dispatch) {
  const uint32_t(&most)[3] = device.physical().limits.maxComputeWorkGroupCount;
  if (dispatch.grid.x > most[0] || dispatch.grid.y > most[1] || dispatch.grid.z > most[2]) {
    return Fail(ErrorCode::kUnsupported, dispatch.kernel->info().name,
                fmt::format("The grid ({}, {}, {}) of kernel \"{}\" is larger than the device's "
                            "limit ({}, {}, {}).",
                            dispatch.grid.x, dispatch.grid.y, dispatch.grid.z,
                            dispatch.kernel->info().name, most[0], most[1], most[2]));
  }
  return {};
}

// --- VulkanCommandBuffer

Result<std::unique_ptr<VulkanCommandBuffer>> VulkanCommandBuffer::Begin(const LogicalDevice* device,
                                                                        SpareSlots* spare,
                                                                        uint64_t slice_workgroups) {
  std::unique_ptr<VulkanCommandBuffer> buffer(
      new VulkanCommandBuffer(device, spare, slice_workgroups));
  ASSAY_TRY(buffer->BeginSlice());
  return buffer;
}

VulkanCommandBuffer::~VulkanCommandBuffer() {
  for (std::unique_ptr<CommandSlot>& slot : slots_) spare_->Put(std::move(slot));
}

Status VulkanCommandBuffer::BeginSlice() {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<CommandSlot> slot, spare_->Take());
  slots_.push_back(std::move(slot));
  slot_ = slots_.back().get();
  slot_->last = false;
  bound_ = VK_NULL_HANDLE;
  workgroups_ = 0;
  ASSAY_TRY(slot_->commands.Begin(device_->physical().name, kRecording));
  slot_->commands.Barrier({VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT},
                          kShaderAccess);
  return {};
}

Status VulkanCommandBuffer::TranslateBindings(const BackendDispatch& dispatch,
                                              const VulkanKernel& kernel) {
  const VkPhysicalDeviceLimits& limits = device_->physical().limits;
  const size_t count = dispatch.bindings.size();
  infos_.resize(count);
  push_.resize(
      PushBytes(static_cast<uint32_t>(dispatch.constants.size()), static_cast<uint32_t>(count)));
  if (!dispatch.constants.empty()) {
    std::memcpy(push_.data(), dispatch.constants.data(), dispatch.constants.size());
  }
  for (size_t i = 0; i < count; ++i) {
    const BackendBinding& binding = dispatch.bindings[i];
    const auto* buffer = static_cast<const VulkanBuffer*>(binding.buffer);
    const uint64_t alignment = limits.minStorageBufferOffsetAlignment;
    const uint64_t behind = kernel.asks_lengths() ? 0 : margin_bytes_;
    const uint64_t begin = (binding.range.begin - margin_bytes_) / alignment * alignment;
    // An empty view binds one word, which the shader has no reason to touch.
    const uint64_t end =
        std::max((binding.range.end + behind + kWordBytes - 1) / kWordBytes * kWordBytes,
                 begin + kWordBytes);
    if (end - begin > limits.maxStorageBufferRange) {
      return Fail(ErrorCode::kUnsupported, kernel.info().name,
                  fmt::format("Binding {} of kernel \"{}\", the bytes [{}, {}) of buffer \"{}\", "
                              "needs {} bytes to be bound, more than the device's limit ({}).",
                              i, kernel.info().name, binding.range.begin, binding.range.end,
                              buffer->label(), end - begin, limits.maxStorageBufferRange));
    }
    const auto skip = static_cast<uint32_t>(binding.range.begin - begin);
    std::memcpy(push_.data() + dispatch.constants.size() + i * sizeof(skip), &skip, sizeof(skip));
    infos_[i] = {buffer->handle(), begin, end - begin};
  }
  return {};
}

Status VulkanCommandBuffer::Bind(const VulkanKernel& kernel) {
  const DeviceApi& api = device_->api();
  const auto count = static_cast<uint32_t>(infos_.size());
  if (count == 0) return {};
  if (device_->uses(OptionalPath::kPushDescriptors)) {
    api.push_descriptors(slot_->commands.handle(), kernel.push_template(), kernel.layout(), 0,
                         infos_.data());
    return {};
  }
  ASSAY_ASSIGN_OR_RETURN(
      const VkDescriptorSet set,
      slot_->descriptors.Allocate(kernel.set_layout(), count, kernel.info().name));
  writes_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    writes_[i] = {};
    writes_[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes_[i].dstSet = set;
    writes_[i].dstBinding = i;
    writes_[i].descriptorCount = 1;
    writes_[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes_[i].pBufferInfo = &infos_[i];
  }
  api.vkUpdateDescriptorSets(device_->handle(), count, writes_.data(), 0, nullptr);
  api.vkCmdBindDescriptorSets(slot_->commands.handle(), VK_PIPELINE_BIND_POINT_COMPUTE,
                              kernel.layout(), 0, 1, &set, 0, nullptr);
  return {};
}

Status VulkanCommandBuffer::Dispatch(const BackendDispatch& dispatch) {
  const auto& kernel = *static_cast<const VulkanKernel*>(dispatch.kernel);
  ASSAY_TRY(CheckGrid(*device_, dispatch));
  ASSAY_TRY(TranslateBindings(dispatch, kernel));
  if (slice_workgroups_ != 0 && workgroups_ >= slice_workgroups_) {
    ASSAY_TRY(slot_->commands.End(device_->physical().name, kRecording));
    ASSAY_TRY(BeginSlice());
  }
  ASSAY_TRY(Bind(kernel));
  const DeviceApi& api = device_->api();
  if (bound_ != kernel.pipeline()) {
    bound_ = kernel.pipeline();
    api.vkCmdBindPipeline(slot_->commands.handle(), VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
  }
  if (!push_.empty()) {
    api.vkCmdPushConstants(slot_->commands.handle(), kernel.layout(), VK_SHADER_STAGE_COMPUTE_BIT,
                           0, static_cast<uint32_t>(push_.size()), push_.data());
  }
  api.vkCmdDispatch(slot_->commands.handle(), dispatch.grid.x, dispatch.grid.y, dispatch.grid.z);
  workgroups_ += uint64_t{dispatch.grid.x} * dispatch.grid.y * dispatch.grid.z;
  if (slice_workgroups_ != 0 && spare_->IsFirstUse(kernel.pipeline())) {
    workgroups_ = slice_workgroups_;
  }
  return {};
}

Status VulkanCommandBuffer::Barrier() {
  slot_->commands.Barrier(kShaderWrites, kShaderAccess);
  return {};
}

Status VulkanCommandBuffer::EndEncoding() {
  slot_->last = true;
  // The host reads mapped memory as soon as the work has passed.
  slot_->commands.Barrier(kShaderWrites, {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT});
  return slot_->commands.End(device_->physical().name, kRecording);
}

}  // namespace assay::gpu::vulkan
