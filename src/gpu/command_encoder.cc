#include "gpu/command_encoder.h"

#include <atomic>
#include <utility>

namespace assay::gpu {

void CountOne(uint64_t& counter) {
  std::atomic_ref<uint64_t>(counter).store(counter + 1, std::memory_order_relaxed);
}

Result<CommandEncoder> CommandEncoder::Open(BackendQueue* queue, Counters* counters) {
  auto command_buffer = queue->Begin();
  if (!command_buffer) return Fail(std::move(command_buffer).error());
  CountOne(counters->command_buffers);
  CountOne(counters->encoders_created);
  return CommandEncoder(*std::move(command_buffer), counters);
}

CommandEncoder::CommandEncoder(CommandEncoder&& other) noexcept
    : command_buffer_(std::move(other.command_buffer_)), counters_(other.counters_) {}

CommandEncoder& CommandEncoder::operator=(CommandEncoder&& other) noexcept {
  if (this != &other) {
    (void)std::move(*this).EndEncoder();
    command_buffer_ = std::move(other.command_buffer_);
    counters_ = other.counters_;
  }
  return *this;
}

CommandEncoder::~CommandEncoder() { (void)std::move(*this).EndEncoder(); }

Status CommandEncoder::Dispatch(const BackendDispatch& dispatch) {
  ASSAY_TRY(command_buffer_->Dispatch(dispatch));
  CountOne(counters_->dispatches);
  return {};
}

Status CommandEncoder::Barrier() {
  ASSAY_TRY(command_buffer_->Barrier());
  CountOne(counters_->barriers);
  return {};
}

Result<std::unique_ptr<BackendCommandBuffer>> CommandEncoder::EndEncoder() && {
  if (!is_open()) return std::unique_ptr<BackendCommandBuffer>();
  std::unique_ptr<BackendCommandBuffer> command_buffer = std::move(command_buffer_);
  CountOne(counters_->encoders_released);
  ASSAY_TRY(command_buffer->EndEncoding());
  return command_buffer;
}

}  // namespace assay::gpu
