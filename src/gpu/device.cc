#include <utility>

#include "assay/gpu.h"

#include "gpu/device_state.h"
#include "gpu/session_state.h"

namespace assay::gpu {

Result<std::unique_ptr<Device>> Device::Create(std::unique_ptr<Backend> backend,
                                               const DeviceOptions& options) {
  if (backend == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "", "A device cannot be made without a backend.");
  }
  if (options.checked) ASSAY_TRY(backend->EnableChecks());
  return std::unique_ptr<Device>(new Device(std::make_shared<DeviceState>(std::move(backend))));
}

Device::Device(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {}
Device::~Device() { state_->Close(); }

const DeviceInfo& Device::info() const { return state_->info(); }
DeviceMemory Device::memory() const { return state_->memory(); }
KernelRegistry& Device::kernels() { return state_->registry(); }

Result<Buffer> Device::CreateBuffer(const BufferDesc& desc) { return state_->CreateBuffer(desc); }
Result<Buffer> Device::ImportHostMemory(const BufferDesc& desc, std::span<const std::byte> memory) {
  return state_->ImportHostMemory(desc, memory);
}

Result<std::unique_ptr<Session>> Device::CreateSession(const SessionOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<SessionState> state, state_->CreateSession(options));
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

Status Device::Write(const BufferView& view, std::span<const std::byte> bytes) {
  return state_->Write(view, bytes);
}
Status Device::Read(const BufferView& view, std::span<std::byte> bytes) {
  return state_->Read(view, bytes);
}
Result<HostMapping> Device::Map(const BufferView& view, Access access) {
  return state_->Map(view, access);
}

LoadObserver* Device::load_observer() { return state_->backend()->load_observer(); }
Counters Device::counters() const { return state_->counters(); }
uint64_t Device::live_buffers() const { return state_->live_buffers(); }
uint64_t Device::live_bytes() const { return state_->live_bytes(); }

// --- HostMapping

HostMapping::HostMapping(HostMapping&& other) noexcept
    : view_(std::exchange(other.view_, {})),
      access_(other.access_),
      bytes_(std::exchange(other.bytes_, {})) {}

HostMapping& HostMapping::operator=(HostMapping&& other) noexcept {
  if (this != &other) {
    Unmap();
    view_ = std::exchange(other.view_, {});
    access_ = other.access_;
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

HostMapping::~HostMapping() { Unmap(); }

void HostMapping::Unmap() {
  if (view_) DeviceState::Unmap(view_, access_);
  view_ = {};
  bytes_ = {};
}

}  // namespace assay::gpu
