// The part of DeviceState that makes buffers and lets the host at them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gpu/device_state.h"

namespace assay::gpu {

// --- Buffers

Status DeviceState::CheckBufferDesc(const BufferDesc& desc) const {
  if (desc.size_bytes == 0) {
    return Fail(
        ErrorCode::kInvalidArgument, desc.label,
        fmt::format("The size (0 bytes) of buffer \"{}\" is below the least (1).", desc.label));
  }
  if (desc.size_bytes > info_.max_buffer_bytes) {
    return Fail(ErrorCode::kUnsupported, desc.label,
                fmt::format("The size ({} bytes) of buffer \"{}\" is larger than the device's "
                            "limit ({} bytes).",
                            desc.size_bytes, desc.label, info_.max_buffer_bytes));
  }
  return {};
}

Result<Buffer> DeviceState::CreateBuffer(const BufferDesc& desc) {
  ASSAY_TRY(CheckBufferDesc(desc));
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendBuffer> memory, backend_->CreateBuffer(desc));
  return Adopt(desc, /*imported=*/false, std::move(memory));
}

Result<Buffer> DeviceState::ImportHostMemory(const BufferDesc& desc,
                                             std::span<const std::byte> memory) {
  ASSAY_TRY(CheckBufferDesc(desc));
  if (!info_.host_visible) {
    return Fail(ErrorCode::kUnsupported, desc.label,
                fmt::format("Backend {} cannot use host memory for buffer \"{}\": it is not "
                            "host-visible.",
                            info_.backend, desc.label));
  }
  if (memory.size() != desc.size_bytes) {
    return Fail(ErrorCode::kInvalidArgument, desc.label,
                fmt::format("The memory ({} bytes) for buffer \"{}\" differs from its size ({} "
                            "bytes).",
                            memory.size(), desc.label, desc.size_bytes));
  }
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendBuffer> imported,
                         backend_->ImportHostMemory(desc, memory));
  return Adopt(desc, /*imported=*/true, std::move(imported));
}

Result<Buffer> DeviceState::Adopt(const BufferDesc& desc, bool imported,
                                  std::unique_ptr<BackendBuffer> memory) {
  uint32_t index = 0;
  std::shared_ptr<Allocation> allocation;
  {
    const std::lock_guard lock(mutex_);
    if (free_indices_.empty()) {
      index = static_cast<uint32_t>(allocations_.size());
      allocations_.push_back(nullptr);
      // So that Forget, which destructors call, needs no memory.
      free_indices_.reserve(allocations_.capacity());
    } else {
      index = free_indices_.back();
      free_indices_.pop_back();
    }
    allocation =
        std::make_shared<Allocation>(shared_from_this(), desc, index, imported, std::move(memory));
    allocations_[index] = allocation.get();
    ++live_buffers_;
    live_bytes_ += desc.size_bytes;
  }
  return Buffer(std::make_shared<BufferState>(std::move(allocation)));
}

void DeviceState::Forget(Allocation* allocation) {
  const std::lock_guard lock(mutex_);
  allocations_[allocation->index()] = nullptr;
  free_indices_.push_back(allocation->index());
  --live_buffers_;
  live_bytes_ -= allocation->desc().size_bytes;
}

uint64_t DeviceState::live_buffers() const {
  const std::lock_guard lock(mutex_);
  return live_buffers_;
}

uint64_t DeviceState::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

// --- Host access

Result<std::shared_ptr<Allocation>> DeviceState::CheckHostView(const BufferView& view,
                                                               Access access,
                                                               std::string_view verb) {
  if (!view) {
    return Fail(ErrorCode::kInvalidArgument, "",
                fmt::format("The host cannot {} an empty view.", verb));
  }
  const std::shared_ptr<Allocation>& allocation = view.buffer().state_->allocation();
  const BufferDesc& desc = allocation->desc();
  if (allocation->device().get() != this) {
    return Fail(ErrorCode::kInvalidArgument, desc.label,
                fmt::format("The host cannot {} the {} here: it belongs to another device.", verb,
                            Describe(desc)));
  }
  if (allocation->released()) return Fail(ReleasedError(desc));
  if (Writes(access) && allocation->imported()) return Fail(ImportedError(desc));
  return allocation;
}

Status DeviceState::BeginHostAccess(const std::shared_ptr<Allocation>& allocation, ByteRange range,
                                    Access access, std::string_view verb) {
  if (!allocation->TryPin()) return Fail(ReleasedError(allocation->desc()));
  const std::lock_guard lock(mutex_);
  for (const CommandRecord* record : in_flight_) {
    if (!record->Conflicts(allocation.get(), range, access)) continue;
    allocation->Unpin();
    return Fail(ErrorCode::kCommandBuffer, allocation->desc().label,
                fmt::format("The host cannot {} bytes [{}, {}) of the {} while a command buffer "
                            "that binds them in conflict is in flight; call Wait before.",
                            verb, range.begin, range.end, Describe(allocation->desc())));
  }
  host_accesses_.push_back({allocation.get(), range, access});
  return {};
}

void DeviceState::EndHostAccess(Allocation* allocation, ByteRange range, Access access) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(host_accesses_, HostAccess{allocation, range, access});
  if (found == host_accesses_.end()) return;
  host_accesses_.erase(found);
  allocation->Unpin();
}

// Ends a host access on every way out.
class DeviceState::HostAccessScope {
 public:
  HostAccessScope(DeviceState* device, Allocation* allocation, ByteRange range, Access access)
      : device_(device), allocation_(allocation), range_(range), access_(access) {}
  HostAccessScope(const HostAccessScope&) = delete;
  HostAccessScope& operator=(const HostAccessScope&) = delete;
  ~HostAccessScope() {
    if (device_ != nullptr) device_->EndHostAccess(allocation_, range_, access_);
  }
  // The access goes on.
  void Keep() { device_ = nullptr; }

 private:
  DeviceState* device_;
  Allocation* allocation_;
  ByteRange range_;
  Access access_;
};

Status DeviceState::Write(const BufferView& view, std::span<const std::byte> bytes) {
  ASSAY_ASSIGN_OR_RETURN(const std::shared_ptr<Allocation> allocation,
                         CheckHostView(view, Access::kWrite, "write"));
  if (bytes.size() != view.size_bytes()) {
    return Fail(ErrorCode::kInvalidArgument, allocation->desc().label,
                fmt::format("The bytes to write ({}) differ from the size ({}) of the view of {}.",
                            bytes.size(), view.size_bytes(), Describe(allocation->desc())));
  }
  if (bytes.empty()) return {};
  ASSAY_TRY(BeginHostAccess(allocation, view.range(), Access::kWrite, "write"));
  const HostAccessScope scope(this, allocation.get(), view.range(), Access::kWrite);
  return backend_->Write(allocation->memory(), view.range().begin, bytes);
}

Status DeviceState::Read(const BufferView& view, std::span<std::byte> bytes) {
  ASSAY_ASSIGN_OR_RETURN(const std::shared_ptr<Allocation> allocation,
                         CheckHostView(view, Access::kRead, "read"));
  if (bytes.size() != view.size_bytes()) {
    return Fail(ErrorCode::kInvalidArgument, allocation->desc().label,
                fmt::format("The bytes to read ({}) differ from the size ({}) of the view of {}.",
                            bytes.size(), view.size_bytes(), Describe(allocation->desc())));
  }
  if (bytes.empty()) return {};
  ASSAY_TRY(BeginHostAccess(allocation, view.range(), Access::kRead, "read"));
  const HostAccessScope scope(this, allocation.get(), view.range(), Access::kRead);
  return backend_->Read(allocation->memory(), view.range().begin, bytes);
}

Result<HostMapping> DeviceState::Map(const BufferView& view, Access access) {
  ASSAY_ASSIGN_OR_RETURN(const std::shared_ptr<Allocation> allocation,
                         CheckHostView(view, access, "map"));
  if (!info_.host_visible) {
    return Fail(ErrorCode::kUnsupported, allocation->desc().label,
                fmt::format("Backend {} cannot map the {}: it is not host-visible.", info_.backend,
                            Describe(allocation->desc())));
  }
  if (view.size_bytes() == 0) return HostMapping({}, access, {});
  ASSAY_TRY(BeginHostAccess(allocation, view.range(), access, "map"));
  HostAccessScope scope(this, allocation.get(), view.range(), access);
  ASSAY_ASSIGN_OR_RETURN(const std::span<std::byte> bytes,
                         backend_->Map(allocation->memory(), view.range(), access));
  scope.Keep();
  return HostMapping(view, access, bytes);
}

void DeviceState::Unmap(const BufferView& view, Access access) {
  Allocation& allocation = *view.buffer().state_->allocation();
  DeviceState& device = *allocation.device();
  if (device.closed()) return;
  device.backend_->Unmap(allocation.memory(), view.range(), access);
  device.EndHostAccess(&allocation, view.range(), access);
}

}  // namespace assay::gpu
