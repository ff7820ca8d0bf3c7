#include "gpu/vulkan/buffer.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu::vulkan {
namespace {

// Shaders read whole 32-bit words, so that a buffer ends with one.
constexpr uint64_t kWordBytes = 4;
// The host reads device memory slowly; up to here that takes less than a copy through staging.
constexpr uint64_t kMappedHostBytes = 4096;

}  // namespace

// --- VulkanBuffer

VulkanBuffer::~VulkanBuffer() {
  const uint64_t last = last_copy_.value();
  if (last != 0) maker_->Retire(last, std::move(storage_));
}

// --- BufferMaker

BufferMaker::BufferMaker(const LogicalDevice* device, SubmitQueue* queue)
    : device_(device), queue_(queue), memory_(device), transfer_(device, &memory_, queue) {}

BufferMaker::~BufferMaker() {
  for (const Retired& retired : retired_) queue_->Drain(retired.value);
}

MemoryUse BufferMaker::UseFor(const BufferDesc& desc) const {
  const bool small = desc.kind == BufferKind::kHost && desc.size_bytes <= kMappedHostBytes;
  if (device_->uses(OptionalPath::kUnifiedMemory) ||
      (small && device_->uses(OptionalPath::kMappedHostBuffers))) {
    return MemoryUse::kUnified;
  }
  return map_everything_ ? MemoryUse::kStaging : MemoryUse::kDevice;
}

Result<std::unique_ptr<VulkanBuffer>> BufferMaker::Make(const BufferDesc& desc) {
  FreeRetired();
  const DeviceApi& api = device_->api();
  const std::string doing =
      fmt::format("Buffer \"{}\" ({} bytes) cannot be made", desc.label, desc.size_bytes);
  std::unique_ptr<VulkanBuffer> buffer(new VulkanBuffer(this, desc));
  VulkanBuffer::Storage& storage = buffer->storage_;
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = (desc.size_bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  ASSAY_ASSIGN_OR_RETURN(
      storage.buffer, vulkan::Make<VkBuffer>(*device_, api.vkCreateBuffer, info, "vkCreateBuffer",
                                             desc.label, doing));
  VkMemoryRequirements wanted = {};
  api.vkGetBufferMemoryRequirements(device_->handle(), storage.buffer.get(), &wanted);
  auto memory = memory_.Allocate(wanted, UseFor(desc), desc.label);
  if (!memory) return Fail(std::move(memory).error().While(doing));
  storage.memory = *std::move(memory);
  ASSAY_TRY(device_->Try("vkBindBufferMemory", desc.label, doing, [&] {
    return api.vkBindBufferMemory(device_->handle(), storage.buffer.get(), storage.memory.memory(),
                                  storage.memory.offset());
  }));
  if (buffer->mapped() != nullptr) {
    std::memset(buffer->mapped(), 0, info.size);
  } else {
    ASSAY_TRY(transfer_.FillWithZeros(buffer->target()));
  }
  return buffer;
}

Status BufferMaker::Write(VulkanBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) {
  if (buffer->mapped() != nullptr) {
    std::memcpy(buffer->mapped() + offset, bytes.data(), bytes.size());
    return {};
  }
  return transfer_.Write(buffer->target(), offset, bytes);
}

Status BufferMaker::Read(VulkanBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) {
  if (buffer->mapped() != nullptr) {
    std::memcpy(bytes.data(), buffer->mapped() + offset, bytes.size());
    return {};
  }
  return transfer_.Read(buffer->target(), offset, bytes);
}

void BufferMaker::Retire(uint64_t value, VulkanBuffer::Storage storage) {
  {
    const std::lock_guard lock(mutex_);
    retired_.push_back({value, std::move(storage)});
  }
  FreeRetired();
}

void BufferMaker::FreeRetired() {
  std::deque<Retired> free;
  const std::lock_guard lock(mutex_);
  if (retired_.empty()) return;
  const uint64_t passed = queue_->Passed();
  while (!retired_.empty() && retired_.front().value <= passed) {
    free.push_back(std::move(retired_.front()));
    retired_.pop_front();
  }
}

}  // namespace assay::gpu::vulkan
