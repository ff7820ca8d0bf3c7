// The one owner of an open command buffer and its encoder (E1, E2).
#ifndef ASSAY_GPU_COMMAND_ENCODER_H_
#define ASSAY_GPU_COMMAND_ENCODER_H_

#include <memory>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/backend.h"

namespace assay::gpu {

// Adds one to a counter of which this thread is the only writer while others may read it.
void CountOne(uint64_t& counter);

// Move-only: an encoder has one holder, and whoever holds it releases it. EndEncoder is the single
// release path; the destructor and move-assignment take it too, so that created and released
// encoders balance whatever happens. One thread.
class CommandEncoder final {
 public:
  // Opens a command buffer of `queue`. `counters` must outlive the encoder.
  static Result<CommandEncoder> Open(BackendQueue* queue, Counters* counters);

  // Closed: holds nothing.
  CommandEncoder() = default;
  CommandEncoder(CommandEncoder&& other) noexcept;
  CommandEncoder& operator=(CommandEncoder&& other) noexcept;
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;
  ~CommandEncoder();

  bool is_open() const { return command_buffer_ != nullptr; }

  // Only while open.
  Status Dispatch(const BackendDispatch& dispatch);
  Status Barrier();

  // Releases the encoder and hands out its command buffer, ready to be committed; dropping the
  // result abandons it. On failure the command buffer is gone. A closed encoder gives null. The
  // encoder is given up with the call: only std::move(encoder).EndEncoder() compiles.
  Result<std::unique_ptr<BackendCommandBuffer>> EndEncoder() &&;

 private:
  CommandEncoder(std::unique_ptr<BackendCommandBuffer> command_buffer, Counters* counters)
      : command_buffer_(std::move(command_buffer)), counters_(counters) {}

  std::unique_ptr<BackendCommandBuffer> command_buffer_;
  Counters* counters_ = nullptr;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_COMMAND_ENCODER_H_
