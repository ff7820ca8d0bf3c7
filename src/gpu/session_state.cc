#include "gpu/session_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu {
namespace {

// Work is split by 32-bit workgroup numbers.
constexpr uint64_t kMaxWorkgroups = UINT32_MAX;

// False when the workgroups of `grid` are none or more than kMaxWorkgroups.
bool GridFits(const Extent3& grid) {
  const uint64_t plane = uint64_t{grid.x} * grid.y;
  return plane != 0 && grid.z != 0 && plane <= kMaxWorkgroups &&
         plane * uint64_t{grid.z} <= kMaxWorkgroups;
}

}  // namespace

SessionState::SessionState(std::shared_ptr<DeviceState> device, std::unique_ptr<BackendQueue> queue,
                           const SessionOptions& options)
    : device_(std::move(device)),
      options_(options),
      queue_(std::move(queue)),
      recorded_(std::make_unique<CommandRecord>()) {}

void SessionState::Close() {
  if (queue_ == nullptr) return;
  Abandon();
  // Nobody is left to tell of a failure; the queue's end waits for its work all the same.
  if (!in_flight_.empty() && queue_->Wait(in_flight_.back()->serial)) CountOne(counters_.waits);
  queue_.reset();
  (void)Land();
  capture_.reset();
  device_->Forget(this);
}

Status SessionState::CheckUsable() const {
  if (queue_ == nullptr) return Fail(DeviceState::ClosedError("", "session"));
  if (failure_) {
    Error repeated = *failure_;
    return Fail(std::move(repeated).While("using a command buffer that failed; Reset abandons it"));
  }
  return {};
}

// --- Validation

Result<const KernelEntry*> SessionState::FindKernel(KernelId id) {
  if (id.value() < kernels_.size() && kernels_[id.value()] != nullptr) return kernels_[id.value()];
  const KernelEntry* entry = device_->FindKernel(id);
  if (entry == nullptr) {
    return Fail(
        ErrorCode::kKernelUnknown, "",
        fmt::format("Kernel id {} is none that this device's registry gave out.", id.value()));
  }
  if (id.value() >= kernels_.size()) kernels_.resize(size_t{id.value()} + 1);
  kernels_[id.value()] = entry;
  return entry;
}

Status SessionState::ValidateBinding(const KernelEntry& kernel, size_t index,
                                     const Binding& binding) const {
  const std::string_view name = kernel.desc.name;
  if (!binding.view) {
    return Fail(ErrorCode::kInvalidArgument, std::string(name),
                fmt::format("Binding {} of kernel \"{}\" is empty.", index, name));
  }
  const Allocation& allocation = *binding.view.buffer().state_->allocation();
  if (allocation.device() != device_) {
    return Fail(ErrorCode::kInvalidArgument, std::string(name),
                fmt::format("Binding {} of kernel \"{}\" is {} of another device.", index, name,
                            Describe(allocation.desc())));
  }
  if (allocation.released()) {
    return Fail(ReleasedError(allocation.desc())
                    .While(fmt::format("binding {} of kernel \"{}\"", index, name)));
  }
  if (Writes(binding.access) && allocation.imported()) {
    return Fail(ImportedError(allocation.desc())
                    .While(fmt::format("binding {} of kernel \"{}\"", index, name)));
  }
  if (binding.view.size_bytes() > device_->info().max_binding_bytes) {
    return Fail(
        ErrorCode::kInvalidArgument, std::string(name),
        fmt::format("Binding {} ({} bytes) of kernel \"{}\" is larger than the device's "
                    "limit ({} bytes).",
                    index, binding.view.size_bytes(), name, device_->info().max_binding_bytes));
  }
  return {};
}

Status SessionState::Validate(const gpu::Dispatch& dispatch, const KernelEntry** kernel) {
  ASSAY_ASSIGN_OR_RETURN(*kernel, FindKernel(dispatch.kernel));
  const KernelDesc& desc = (*kernel)->desc;
  const auto fail = [&](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::string(desc.name), std::move(message));
  };
  if (dispatch.bindings.size() != desc.binding_count) {
    return fail(
        fmt::format("The bindings ({}) of a dispatch of kernel \"{}\" differ in number "
                    "from the kernel's ({}).",
                    dispatch.bindings.size(), desc.name, desc.binding_count));
  }
  if (dispatch.constants.size() != desc.constant_bytes) {
    return fail(
        fmt::format("The constants ({} bytes) of a dispatch of kernel \"{}\" differ in "
                    "size from the kernel's ({} bytes).",
                    dispatch.constants.size(), desc.name, desc.constant_bytes));
  }
  if (!GridFits(dispatch.grid)) {
    return fail(
        fmt::format("The workgroups of grid ({}, {}, {}) of kernel \"{}\" are not between "
                    "1 and {}.",
                    dispatch.grid.x, dispatch.grid.y, dispatch.grid.z, desc.name, kMaxWorkgroups));
  }
  if (dispatch.shared_bytes > device_->info().max_shared_bytes) {
    return fail(
        fmt::format("The shared memory ({} bytes) of a dispatch of kernel \"{}\" is "
                    "larger than the device's limit ({} bytes).",
                    dispatch.shared_bytes, desc.name, device_->info().max_shared_bytes));
  }
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    ASSAY_TRY(ValidateBinding(**kernel, i, dispatch.bindings[i]));
  }
  return {};
}

// --- Encoding

Status SessionState::Dispatch(const gpu::Dispatch& dispatch) {
  ASSAY_TRY(CheckUsable());
  const KernelEntry* kernel = nullptr;
  ASSAY_TRY(Validate(dispatch, &kernel));
  if (capture_ != nullptr) return Capture(dispatch);
  return Encode(dispatch, *kernel);
}

Status SessionState::Pin(const gpu::Dispatch& dispatch) {
  const size_t pinned_before = recorded_->pinned.size();
  for (const Binding& binding : dispatch.bindings) {
    const std::shared_ptr<Allocation>& allocation = binding.view.buffer().state_->allocation();
    if (allocation->index() >= pinned_by_.size()) {
      pinned_by_.resize(size_t{allocation->index()} + 1);
    }
    uint64_t& pinned_by = pinned_by_[allocation->index()];
    if (pinned_by == command_buffer_number_) continue;
    if (!allocation->TryPin()) {
      // Released by another thread since it was validated.
      while (recorded_->pinned.size() > pinned_before) {
        pinned_by_[recorded_->pinned.back()->index()] = 0;
        recorded_->pinned.back()->Unpin();
        recorded_->pinned.pop_back();
      }
      return Fail(ReleasedError(allocation->desc()));
    }
    pinned_by = command_buffer_number_;
    recorded_->pinned.push_back(allocation);
  }
  return {};
}

bool SessionState::ConflictsSinceBarrier() const {
  if (bindings_.empty()) return tracker_.AnythingConflicts();
  const size_t first = recorded_->touches.size() - bindings_.size();
  for (size_t i = first; i < recorded_->touches.size(); ++i) {
    const CommandRecord::Touch& touch = recorded_->touches[i];
    if (tracker_.Conflicts(touch.allocation->index(), touch.range, touch.access)) return true;
  }
  return false;
}

Status SessionState::Encode(const gpu::Dispatch& dispatch, const KernelEntry& kernel) {
  ASSAY_TRY(Pin(dispatch));
  if (!encoder_.is_open()) {
    Result<CommandEncoder> encoder = CommandEncoder::Open(queue_.get(), &counters_);
    if (!encoder) {
      Abandon();
      return Fail(std::move(encoder).error().While("opening a command buffer"));
    }
    encoder_ = *std::move(encoder);
  }
  bindings_.clear();
  for (const Binding& binding : dispatch.bindings) {
    const Allocation* allocation = binding.view.buffer().state_->allocation().get();
    bindings_.push_back(
        {allocation->memory(), binding.view.range(), binding.access, binding.exact});
    recorded_->touches.push_back({allocation, binding.view.range(), binding.access});
  }
  if (options_.barriers == BarrierMode::kAutomatic) {
    if (ConflictsSinceBarrier()) ASSAY_TRY(IssueBarrier());
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const CommandRecord::Touch& touch =
          recorded_->touches[recorded_->touches.size() - bindings_.size() + i];
      tracker_.Add(touch.allocation->index(), touch.range, touch.access);
    }
    if (bindings_.empty()) tracker_.AddEverything();
  }
  const BackendDispatch translated{kernel.backend.get(), bindings_, dispatch.constants,
                                   dispatch.grid, dispatch.shared_bytes};
  if (Status status = encoder_.Dispatch(translated); !status) {
    return FailEncoding(std::move(status).error().While(
        fmt::format("dispatching kernel \"{}\"", kernel.desc.name)));
  }
  ++dispatches_encoded_;
  if (options_.barriers == BarrierMode::kSerial) return IssueBarrier();
  return {};
}

Status SessionState::IssueBarrier() {
  // Also where the barrier is dropped: automatic mode would put it ahead of the next dispatch.
  tracker_.Clear();
  if (++barriers_placed_ == options_.drop_barrier) return {};
  if (Status status = encoder_.Barrier(); !status) {
    return FailEncoding(std::move(status).error());
  }
  return {};
}

Status SessionState::Barrier() {
  ASSAY_TRY(CheckUsable());
  if (capture_ != nullptr) {
    if (!recaptured_) capture_->AddBarrier();
    return {};
  }
  if (!encoder_.is_open()) return {};
  if (!CommitIsDue()) return IssueBarrier();
  Status committed = CommitOpen();
  // What comes next counts on the order that is now missing, so none of it may run.
  if (!committed && !encoder_.is_open()) failure_ = committed.error();
  return committed;
}

bool SessionState::CommitIsDue() const {
  if (options_.commit_every == 0 || barriers_placed_ + 1 == options_.drop_barrier) return false;
  // The device idles until the first command buffer arrives, and the second must be there before
  // the first has run.
  constexpr size_t kShortOnes = 2;
  const size_t shorter = kShortOnes - std::min(in_flight_.size(), kShortOnes);
  return dispatches_encoded_ >= std::max(options_.commit_every >> shorter, 1U);
}

Status SessionState::FailEncoding(Error error) {
  Abandon();
  failure_ = error;
  return Fail(std::move(error));
}

void SessionState::Abandon() {
  (void)std::move(encoder_).EndEncoder();
  (void)Retire(recorded_.get());
  ++command_buffer_number_;
  barriers_placed_ = 0;
  dispatches_encoded_ = 0;
  tracker_.Clear();
}

Status SessionState::Retire(CommandRecord* record) {
  Status status;
  for (const std::shared_ptr<Allocation>& allocation : record->pinned) {
    allocation->Unpin();
    if (allocation->dropped_in_flight() && status) {
      status = Fail(ErrorCode::kCommandBuffer, allocation->desc().label,
                    fmt::format("The last handle of {} went while a command buffer that binds it "
                                "was in flight; keep it until Wait has returned.",
                                Describe(allocation->desc())));
    }
  }
  record->pinned.clear();
  record->touches.clear();
  return status;
}

// --- Submission

Status SessionState::Commit() {
  ASSAY_TRY(CheckUsable());
  if (capture_ != nullptr) {
    return Fail(ErrorCode::kCommandBuffer, "", "Commit is called while a graph is captured.");
  }
  if (!encoder_.is_open()) return {};
  return CommitOpen();
}

Status SessionState::CommitOpen() {
  ASSAY_TRY(device_->BeginFlight(recorded_.get()));
  Result<Serial> serial = [&]() -> Result<Serial> {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendCommandBuffer> command_buffer,
                           std::move(encoder_).EndEncoder());
    return queue_->Commit(std::move(command_buffer));
  }();
  if (!serial) {
    device_->EndFlight(recorded_.get());
    Abandon();
    return Fail(std::move(serial).error().While("committing a command buffer"));
  }
  tracker_.Clear();
  CountOne(counters_.commits);
  recorded_->serial = *serial;
  in_flight_.push_back(std::move(recorded_));
  ++command_buffer_number_;
  barriers_placed_ = 0;
  dispatches_encoded_ = 0;
  if (spare_records_.empty()) {
    recorded_ = std::make_unique<CommandRecord>();
  } else {
    recorded_ = std::move(spare_records_.back());
    spare_records_.pop_back();
  }
  return {};
}

Status SessionState::Wait() {
  if (queue_ == nullptr) return Fail(DeviceState::ClosedError("", "session"));
  if (capture_ != nullptr) {
    return Fail(ErrorCode::kCommandBuffer, "", "Wait is called while a graph is captured.");
  }
  if (in_flight_.empty()) return {};
  Status status = queue_->Wait(in_flight_.back()->serial);
  const bool finished = HasFinished(status);
  if (!status) status = Fail(std::move(status).error().While("waiting for command buffers"));
  // Nobody knows what still runs, so everything stays in flight.
  if (!finished) return status;
  CountOne(counters_.waits);
  Status landed = Land();
  return status ? std::move(landed) : std::move(status);
}

Status SessionState::Land() {
  Status status;
  for (; !in_flight_.empty(); in_flight_.pop_front()) {
    std::unique_ptr<CommandRecord> record = std::move(in_flight_.front());
    device_->EndFlight(record.get());
    if (Status dropped = Retire(record.get()); !dropped && status) status = std::move(dropped);
    spare_records_.push_back(std::move(record));
  }
  return status;
}

void SessionState::Reset() {
  capture_.reset();
  recaptured_.reset();
  if (queue_ != nullptr) Abandon();
  failure_.reset();
}

}  // namespace assay::gpu
