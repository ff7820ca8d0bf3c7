// What the handles of a device share: its backend, allocations, kernels, sessions and the record of
// what is in flight.
#ifndef ASSAY_GPU_DEVICE_STATE_H_
#define ASSAY_GPU_DEVICE_STATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/backend.h"

namespace assay::gpu {

// One allocation of the backend. Its memory goes back when the last of its holders goes: the handle
// state, and every command buffer in flight that binds it. Thread-safe.
class Allocation final {
 public:
  Allocation(std::shared_ptr<DeviceState> device, BufferDesc desc, uint32_t index, bool imported,
             std::unique_ptr<BackendBuffer> memory)
      : device_(std::move(device)),
        desc_(std::move(desc)),
        index_(index),
        imported_(imported),
        memory_(std::move(memory)) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { FreeMemory(); }

  const std::shared_ptr<DeviceState>& device() const { return device_; }
  const BufferDesc& desc() const { return desc_; }
  // Dense among the allocations alive on the device; reused after the end.
  uint32_t index() const { return index_; }
  // Over memory of the caller's, which nobody may write.
  bool imported() const { return imported_; }
  BackendBuffer* memory() const { return memory_.get(); }
  bool released() const { return pins_.load(std::memory_order_acquire) == kReleased; }

  // Held by a command buffer in flight, and by a host access while it lasts. False when the buffer
  // has been released.
  bool TryPin();
  void Unpin();
  bool pinned() const { return pins_.load(std::memory_order_acquire) > 0; }

  // Gives the memory back now; see Buffer::Release.
  Status Release();
  // The last handle went while a command buffer held it.
  void MarkDroppedInFlight() { dropped_in_flight_.store(true, std::memory_order_relaxed); }
  bool dropped_in_flight() const { return dropped_in_flight_.load(std::memory_order_relaxed); }

  // The end of the device takes the memory of whatever is left.
  void FreeMemory();

 private:
  static constexpr int64_t kReleased = -1;

  std::shared_ptr<DeviceState> device_;
  BufferDesc desc_;
  uint32_t index_;
  bool imported_;
  std::unique_ptr<BackendBuffer> memory_;
  std::atomic<int64_t> pins_{0};
  std::atomic<bool> dropped_in_flight_{false};
};

// What all handles of one buffer share; its end is the end of the last handle.
class BufferState final {
 public:
  explicit BufferState(std::shared_ptr<Allocation> allocation)
      : allocation_(std::move(allocation)) {}
  BufferState(const BufferState&) = delete;
  BufferState& operator=(const BufferState&) = delete;
  ~BufferState() {
    if (allocation_->pinned()) allocation_->MarkDroppedInFlight();
  }
  const std::shared_ptr<Allocation>& allocation() const { return allocation_; }

 private:
  std::shared_ptr<Allocation> allocation_;
};

// `buffer "kv" (4096 bytes)`, for messages.
std::string Describe(const BufferDesc& desc);
// The error of a use after Buffer::Release.
Error ReleasedError(const BufferDesc& desc);
// The error of a write to imported memory.
Error ImportedError(const BufferDesc& desc);

// What the front end knows of one command buffer until it has finished.
struct CommandRecord {
  struct Touch {
    const Allocation* allocation;
    ByteRange range;
    Access access;
  };
  Serial serial = 0;
  std::vector<std::shared_ptr<Allocation>> pinned;
  std::vector<Touch> touches;

  bool Conflicts(const Allocation* allocation, ByteRange range, Access access) const;
};

// A kernel of the registry.
struct KernelEntry {
  KernelDesc desc;
  KernelId id;  // Its place in the order of first use, from 1; 0: not built.
  std::unique_ptr<BackendKernel> backend;  // Null until first use.
};

// Held by the Device and by everything made from it. Close(), called when the Device goes, ends the
// backend; what is left then reports kDevice. Lock order: `mutex_` and `kernel_mutex_` are never
// held together, and no backend call that could call back is made under `mutex_`.
class DeviceState final : public std::enable_shared_from_this<DeviceState> {
 public:
  explicit DeviceState(std::unique_ptr<Backend> backend);
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
  ~DeviceState();

  void Close();
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // The error of every use of `what` after Close().
  static Error ClosedError(std::string subject, std::string_view what);

  const DeviceInfo& info() const { return info_; }
  DeviceMemory memory() const { return backend_->memory(); }
  Backend* backend() { return backend_.get(); }
  KernelRegistry& registry() { return registry_; }

  // --- Buffers
  Result<Buffer> CreateBuffer(const BufferDesc& desc);
  Result<Buffer> ImportHostMemory(const BufferDesc& desc, std::span<const std::byte> memory);
  void Forget(Allocation* allocation);
  uint64_t live_buffers() const;
  uint64_t live_bytes() const;

  // --- Host access
  Status Write(const BufferView& view, std::span<const std::byte> bytes);
  Status Read(const BufferView& view, std::span<std::byte> bytes);
  Result<HostMapping> Map(const BufferView& view, Access access);
  static void Unmap(const BufferView& view, Access access);

  // --- Kernels
  Status AddKernel(const KernelDesc& desc);
  Result<KernelId> GetKernel(std::string_view name);
  std::vector<std::string> KernelNames() const;
  // Null for an id that this device has not given out. Valid until Close().
  const KernelEntry* FindKernel(KernelId id) const;

  // --- Sessions
  Result<std::unique_ptr<SessionState>> CreateSession(const SessionOptions& options);
  void Forget(SessionState* session);
  // Puts `record` in flight. Error kCommandBuffer when a host access conflicts with it.
  Status BeginFlight(const CommandRecord* record);
  void EndFlight(const CommandRecord* record);
  Counters counters() const;

 private:
  struct HostAccess {
    const Allocation* allocation;
    ByteRange range;
    Access access;
    bool operator==(const HostAccess&) const = default;
  };
  class HostAccessScope;

  Result<Buffer> Adopt(const BufferDesc& desc, bool imported,
                       std::unique_ptr<BackendBuffer> memory);
  Status CheckBufferDesc(const BufferDesc& desc) const;
  // The view's allocation when the host may use the view on this device.
  Result<std::shared_ptr<Allocation>> CheckHostView(const BufferView& view, Access access,
                                                    std::string_view verb);
  Status BeginHostAccess(const std::shared_ptr<Allocation>& allocation, ByteRange range,
                         Access access, std::string_view verb);
  void EndHostAccess(Allocation* allocation, ByteRange range, Access access);

  DeviceInfo info_;
  std::unique_ptr<Backend> backend_;
  KernelRegistry registry_;
  std::atomic<bool> closed_{false};

  // Guards the members that follow it.
  mutable std::mutex mutex_;
  std::vector<Allocation*> allocations_;  // By index; null where free.
  std::vector<uint32_t> free_indices_;
  uint64_t live_buffers_ = 0;
  uint64_t live_bytes_ = 0;
  std::vector<SessionState*> sessions_;
  std::vector<const CommandRecord*> in_flight_;
  std::vector<HostAccess> host_accesses_;
  Counters retired_;  // Sums over the sessions that have gone.

  // Guards the members that follow it, also while a kernel is built.
  mutable std::mutex kernel_mutex_;
  std::map<std::string_view, KernelEntry, std::less<>> kernels_;
  std::vector<const KernelEntry*> kernels_by_id_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_DEVICE_STATE_H_
