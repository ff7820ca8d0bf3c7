#include "gpu/vulkan/transfer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gpu/vulkan/commands.h"

namespace assay::gpu::vulkan {
namespace {

// Enough that threads which load weights do not wait for each other, and large enough that a copy
// costs more than its submission.
constexpr size_t kSlots = 4;
constexpr uint64_t kSlotBytes = uint64_t{8} << 20;

}  // namespace

// One staging piece with the command buffer that copies from or to it.
struct Transfer::Slot {
  bool used = false;
  uint64_t value = 0;  // Of its last submission; 0: none.
  MemoryPiece memory;
  Owned<VkBuffer> buffer;
  Commands commands;
};

class Transfer::SlotScope final {
 public:
  SlotScope(Transfer* transfer, Slot* slot) : transfer_(transfer), slot_(slot) {}
  SlotScope(const SlotScope&) = delete;
  SlotScope& operator=(const SlotScope&) = delete;
  ~SlotScope() { transfer_->Release(slot_); }

 private:
  Transfer* transfer_;
  Slot* slot_;
};

Transfer::Transfer(const LogicalDevice* device, MemoryAllocator* memory, SubmitQueue* queue)
    : device_(device), memory_(memory), queue_(queue) {
  for (size_t i = 0; i < kSlots; ++i) slots_.push_back(std::make_unique<Slot>());
}

Transfer::~Transfer() {
  for (const std::unique_ptr<Slot>& slot : slots_) queue_->Drain(slot->value);
}

Result<Transfer::Slot*> Transfer::Acquire(std::string_view label) {
  Slot* slot = nullptr;
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] {
      // The one whose last copy is the oldest.
      for (const std::unique_ptr<Slot>& other : slots_) {
        if (!other->used && (slot == nullptr || other->value < slot->value)) slot = other.get();
      }
      return slot != nullptr;
    });
    slot->used = true;
  }
  Status ready = Open(slot, label);
  if (ready && slot->value != 0) ready = queue_->Wait(slot->value);
  if (ready) return slot;
  Release(slot);
  return Fail(std::move(ready).error());
}

void Transfer::Release(Slot* slot) {
  {
    const std::lock_guard lock(mutex_);
    slot->used = false;
  }
  freed_.notify_one();
}

Status Transfer::Open(Slot* slot, std::string_view label) {
  if (slot->commands.handle() != VK_NULL_HANDLE) return {};
  const DeviceApi& api = device_->api();
  const std::string doing = fmt::format("Staging memory for \"{}\" cannot be made", label);
  VkBufferCreateInfo buffer_info = {};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = kSlotBytes;
  buffer_info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  ASSAY_ASSIGN_OR_RETURN(slot->buffer, Make<VkBuffer>(*device_, api.vkCreateBuffer, buffer_info,
                                                      "vkCreateBuffer", label, doing));
  VkMemoryRequirements wanted = {};
  api.vkGetBufferMemoryRequirements(device_->handle(), slot->buffer.get(), &wanted);
  ASSAY_ASSIGN_OR_RETURN(slot->memory, memory_->Allocate(wanted, MemoryUse::kStaging, label));
  ASSAY_TRY(device_->Try("vkBindBufferMemory", label, doing, [&] {
    return api.vkBindBufferMemory(device_->handle(), slot->buffer.get(), slot->memory.memory(),
                                  slot->memory.offset());
  }));
  ASSAY_ASSIGN_OR_RETURN(slot->commands, Commands::Create(*device_, label, doing));
  return {};
}

Status Transfer::Submit(Slot* slot, const CopyTarget& target,
                        const std::function<void(VkCommandBuffer)>& record) {
  const std::string_view label = target.label;
  const std::string doing = fmt::format("A copy for buffer \"{}\" cannot be recorded", label);
  ASSAY_TRY(slot->commands.Begin(label, doing));
  slot->commands.Barrier(
      {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
       VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT},
      {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  record(slot->commands.handle());
  slot->commands.Barrier({VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
                         {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT});
  ASSAY_TRY(slot->commands.End(label, doing));
  ASSAY_ASSIGN_OR_RETURN(
      slot->value,
      queue_->Submit(slot->commands.handle(), fmt::format("A copy for buffer \"{}\"", label)));
  target.last->Note(slot->value);
  return {};
}

Status Transfer::FillWithZeros(const CopyTarget& target) {
  ASSAY_ASSIGN_OR_RETURN(Slot* const slot, Acquire(target.label));
  const SlotScope scope(this, slot);
  return Submit(slot, target, [&](VkCommandBuffer commands) {
    device_->api().vkCmdFillBuffer(commands, target.buffer, 0, VK_WHOLE_SIZE, 0);
  });
}

Status Transfer::Write(const CopyTarget& target, uint64_t offset,
                       std::span<const std::byte> bytes) {
  for (uint64_t done = 0; done < bytes.size();) {
    const uint64_t length = std::min<uint64_t>(kSlotBytes, bytes.size() - done);
    ASSAY_ASSIGN_OR_RETURN(Slot* const slot, Acquire(target.label));
    const SlotScope scope(this, slot);
    std::memcpy(slot->memory.mapped(), bytes.data() + done, length);
    const VkBufferCopy copy = {0, offset + done, length};
    ASSAY_TRY(Submit(slot, target, [&](VkCommandBuffer commands) {
      device_->api().vkCmdCopyBuffer(commands, slot->buffer.get(), target.buffer, 1, &copy);
    }));
    done += length;
  }
  return {};
}

Status Transfer::Read(const CopyTarget& target, uint64_t offset, std::span<std::byte> bytes) {
  for (uint64_t done = 0; done < bytes.size();) {
    const uint64_t length = std::min<uint64_t>(kSlotBytes, bytes.size() - done);
    ASSAY_ASSIGN_OR_RETURN(Slot* const slot, Acquire(target.label));
    const SlotScope scope(this, slot);
    const VkBufferCopy copy = {offset + done, 0, length};
    ASSAY_TRY(Submit(slot, target, [&](VkCommandBuffer commands) {
      device_->api().vkCmdCopyBuffer(commands, target.buffer, slot->buffer.get(), 1, &copy);
    }));
    ASSAY_TRY(queue_->Wait(slot->value));
    std::memcpy(bytes.data() + done, slot->memory.mapped(), length);
    done += length;
  }
  return {};
}

}  // namespace assay::gpu::vulkan
