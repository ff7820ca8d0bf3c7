#include "gpu/vulkan/memory.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu::vulkan {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{64} << 20;

// The properties that a use needs, and those that make a type better or worse among the fitting.
struct TypeWish {
  VkMemoryPropertyFlags needed;
  VkMemoryPropertyFlags liked;
  VkMemoryPropertyFlags disliked;
};

constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

TypeWish WishFor(MemoryUse use) {
  switch (use) {
    case MemoryUse::kDevice:
      return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    case MemoryUse::kUnified:
      return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kMapped, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 0};
    case MemoryUse::kStaging:
      return {kMapped, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
  }
  return {};
}

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

struct MemoryBlock {
  Owned<VkDeviceMemory> memory;
  uint32_t type = 0;
  uint64_t size_bytes = 0;
  std::byte* mapped = nullptr;
  std::map<uint64_t, uint64_t> free;  // From offset to size; neighbours are always joined.

  bool whole() const { return free.size() == 1 && free.begin()->second == size_bytes; }

  // Takes the smallest free range that fits.
  std::optional<uint64_t> Take(uint64_t wanted, uint64_t alignment) {
    auto best = free.end();
    for (auto range = free.begin(); range != free.end(); ++range) {
      const uint64_t lost = AlignUp(range->first, alignment) - range->first;
      if (range->second < lost || range->second - lost < wanted) continue;
      if (best == free.end() || range->second < best->second) best = range;
    }
    if (best == free.end()) return std::nullopt;
    const auto [begin, length] = *best;
    const uint64_t offset = AlignUp(begin, alignment);
    free.erase(best);
    if (offset > begin) free.emplace(begin, offset - begin);
    if (offset + wanted < begin + length) {
      free.emplace(offset + wanted, begin + length - offset - wanted);
    }
    return offset;
  }

  void Give(uint64_t offset, uint64_t length) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && next->first == offset + length) {
      length += next->second;
      next = free.erase(next);
    }
    if (next != free.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += length;
        return;
      }
    }
    free.emplace(offset, length);
  }
};

// --- MemoryPiece

MemoryPiece::MemoryPiece(MemoryPiece&& other) noexcept
    : allocator_(other.allocator_),
      block_(std::exchange(other.block_, nullptr)),
      offset_(other.offset_),
      size_bytes_(other.size_bytes_) {}

MemoryPiece& MemoryPiece::operator=(MemoryPiece&& other) noexcept {
  if (this != &other) {
    Free();
    allocator_ = other.allocator_;
    block_ = std::exchange(other.block_, nullptr);
    offset_ = other.offset_;
    size_bytes_ = other.size_bytes_;
  }
  return *this;
}

VkDeviceMemory MemoryPiece::memory() const { return block_->memory.get(); }

std::byte* MemoryPiece::mapped() const {
  return block_->mapped == nullptr ? nullptr : block_->mapped + offset_;
}

void MemoryPiece::Free() {
  if (block_ != nullptr) allocator_->Free(std::exchange(block_, nullptr), offset_, size_bytes_);
}

// --- MemoryAllocator

MemoryAllocator::MemoryAllocator(const LogicalDevice* device) : device_(device) {}
MemoryAllocator::~MemoryAllocator() = default;

Result<uint32_t> MemoryAllocator::PickType(uint32_t allowed, MemoryUse use,
                                           std::string_view label) const {
  const TypeWish wish = WishFor(use);
  const VkPhysicalDeviceMemoryProperties& memory = device_->physical().memory;
  std::optional<uint32_t> best;
  int best_score = 0;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((allowed & (1U << i)) == 0 || (flags & wish.needed) != wish.needed) continue;
    const int score = ((flags & wish.liked) != 0 ? 1 : 0) - ((flags & wish.disliked) != 0 ? 1 : 0);
    if (!best || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  if (best) return *best;
  return Fail(ErrorCode::kDevice, std::string(label),
              fmt::format("The Vulkan device \"{}\" has no memory of the kind that \"{}\" needs.",
                          device_->physical().name, label));
}

Result<MemoryBlock*> MemoryAllocator::AddBlock(uint32_t type, uint64_t size_bytes, bool map,
                                               std::string_view label) {
  VkMemoryAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = size_bytes;
  info.memoryTypeIndex = type;
  const std::string doing =
      fmt::format("A block of {} bytes for \"{}\" cannot be allocated", size_bytes, label);
  auto block = std::make_unique<MemoryBlock>();
  ASSAY_ASSIGN_OR_RETURN(block->memory,
                         Make<VkDeviceMemory>(*device_, device_->api().vkAllocateMemory, info,
                                              "vkAllocateMemory", label, doing));
  if (map) {
    void* mapped = nullptr;
    ASSAY_TRY(device_->Try("vkMapMemory", label, doing, [&] {
      return device_->api().vkMapMemory(device_->handle(), block->memory.get(), 0, VK_WHOLE_SIZE, 0,
                                        &mapped);
    }));
    block->mapped = static_cast<std::byte*>(mapped);
  }
  block->type = type;
  block->size_bytes = size_bytes;
  block->free.emplace(0, size_bytes);
  blocks_.push_back(std::move(block));
  return blocks_.back().get();
}

Result<MemoryPiece> MemoryAllocator::Allocate(const VkMemoryRequirements& wanted, MemoryUse use,
                                              std::string_view label) {
  ASSAY_ASSIGN_OR_RETURN(const uint32_t type, PickType(wanted.memoryTypeBits, use, label));
  const std::lock_guard lock(mutex_);
  const bool map = use != MemoryUse::kDevice;
  const bool alone = wanted.size > kBlockBytes / 2;
  if (!alone) {
    for (const std::unique_ptr<MemoryBlock>& block : blocks_) {
      if (block->type != type || block->size_bytes != kBlockBytes) continue;
      // One type may serve uses that map it and such that do not.
      if ((block->mapped != nullptr) != map) continue;
      if (const auto offset = block->Take(wanted.size, wanted.alignment)) {
        return MemoryPiece(this, block.get(), *offset, wanted.size);
      }
    }
  }
  Result<MemoryBlock*> block = AddBlock(type, alone ? wanted.size : kBlockBytes, map, label);
  // What is left of the memory may be less than a block.
  if (!block && !alone && block.error().code() == ErrorCode::kAllocation) {
    block = AddBlock(type, wanted.size, map, label);
  }
  if (!block) return Fail(std::move(block).error());
  return MemoryPiece(this, *block, *(*block)->Take(wanted.size, 1), wanted.size);
}

void MemoryAllocator::Free(MemoryBlock* block, uint64_t offset, uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  block->Give(offset, size_bytes);
  if (!block->whole()) return;
  const bool keep = block->size_bytes == kBlockBytes &&
                    std::ranges::none_of(blocks_, [&](const std::unique_ptr<MemoryBlock>& other) {
                      return other.get() != block && other->type == block->type &&
                             (other->mapped != nullptr) == (block->mapped != nullptr) &&
                             other->size_bytes == kBlockBytes && other->whole();
                    });
  if (!keep) std::erase_if(blocks_, [&](const auto& other) { return other.get() == block; });
}

uint64_t MemoryAllocator::block_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const std::unique_ptr<MemoryBlock>& block : blocks_) sum += block->size_bytes;
  return sum;
}

}  // namespace assay::gpu::vulkan
