#include <fmt/format.h>

#include "assay/gpu.h"

#include "gpu/device_state.h"

namespace assay::gpu {

std::string Describe(const BufferDesc& desc) {
  return fmt::format("buffer \"{}\" ({} bytes)", desc.label, desc.size_bytes);
}

Error ReleasedError(const BufferDesc& desc) {
  return Error(ErrorCode::kInvalidArgument, desc.label,
               fmt::format("The {} is used after its release.", Describe(desc)));
}

Error ImportedError(const BufferDesc& desc) {
  return Error(
      ErrorCode::kInvalidArgument, desc.label,
      fmt::format("The {} lies in imported host memory, which cannot be written.", Describe(desc)));
}

// --- Allocation

bool Allocation::TryPin() {
  int64_t pins = pins_.load(std::memory_order_relaxed);
  do {
    if (pins == kReleased) return false;
  } while (!pins_.compare_exchange_weak(pins, pins + 1, std::memory_order_acquire,
                                        std::memory_order_relaxed));
  return true;
}

void Allocation::Unpin() { pins_.fetch_sub(1, std::memory_order_release); }

Status Allocation::Release() {
  int64_t pins = 0;
  if (pins_.compare_exchange_strong(pins, kReleased, std::memory_order_acq_rel)) {
    FreeMemory();
    return {};
  }
  if (pins == kReleased) {
    return Fail(ErrorCode::kInvalidArgument, desc_.label,
                fmt::format("The {} has been released before.", Describe(desc_)));
  }
  return Fail(ErrorCode::kCommandBuffer, desc_.label,
              fmt::format("The {} cannot be released while {} command buffers or host accesses "
                          "that use it have not finished (0 allowed).",
                          Describe(desc_), pins));
}

void Allocation::FreeMemory() {
  if (memory_ == nullptr) return;
  device_->Forget(this);
  memory_.reset();
}

// --- Buffer

uint64_t Buffer::size_bytes() const {
  return state_ == nullptr ? 0 : state_->allocation()->desc().size_bytes;
}

BufferKind Buffer::kind() const {
  return state_ == nullptr ? BufferKind::kOther : state_->allocation()->desc().kind;
}

const std::string& Buffer::label() const {
  static const std::string empty;
  return state_ == nullptr ? empty : state_->allocation()->desc().label;
}

Result<BufferView> Buffer::View(uint64_t offset, uint64_t length) const {
  if (state_ == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "", "An empty buffer handle has no bytes to view.");
  }
  return All().Slice(offset, length);
}

BufferView Buffer::All() const { return BufferView(*this, ByteRange{0, size_bytes()}); }

Status Buffer::Release() {
  if (state_ == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "", "An empty buffer handle cannot be released.");
  }
  Allocation& allocation = *state_->allocation();
  if (allocation.device()->closed()) {
    return Fail(DeviceState::ClosedError(allocation.desc().label, Describe(allocation.desc())));
  }
  return allocation.Release();
}

Result<BufferView> BufferView::Slice(uint64_t offset, uint64_t length) const {
  if (!buffer_) {
    return Fail(ErrorCode::kInvalidArgument, "", "An empty view has no bytes to slice.");
  }
  const Allocation& allocation = *buffer_.state_->allocation();
  if (allocation.device()->closed()) {
    return Fail(DeviceState::ClosedError(buffer_.label(), Describe(allocation.desc())));
  }
  if (allocation.released()) return Fail(ReleasedError(allocation.desc()));
  const uint64_t size = range_.size();
  if (offset > size || length > size - offset) {
    return Fail(ErrorCode::kInvalidArgument, buffer_.label(),
                fmt::format("Offset ({}) plus length ({}) is larger than the size ({}) of the view "
                            "of buffer \"{}\".",
                            offset, length, size, buffer_.label()));
  }
  const uint64_t begin = range_.begin + offset;
  return BufferView(buffer_, ByteRange{begin, begin + length});
}

}  // namespace assay::gpu
