// What a backend implements. The front end has checked every argument; a backend translates and
// never validates.
//
// Handles are pointers that the backend owns and interprets; the front end keeps them alive for as
// long as they are in use and destroys each exactly once. A decorator (src/record) implements the
// same interface over another backend.
#ifndef ASSAY_GPU_BACKEND_H_
#define ASSAY_GPU_BACKEND_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "assay/base.h"
#include "assay/gpu.h"

namespace assay::gpu {

// Whatever belongs to a backend: destroyed through its base, never copied.
class BackendObject {
 public:
  BackendObject() = default;
  BackendObject(const BackendObject&) = delete;
  BackendObject& operator=(const BackendObject&) = delete;
  virtual ~BackendObject() = default;
};

class BackendBuffer : public BackendObject {};

struct BackendKernelInfo {
  std::string name;
  // Of the code that will run, specialisation and instruction set included; lower-case hex.
  std::string digest;
};

class BackendKernel : public BackendObject {
 public:
  virtual const BackendKernelInfo& info() const = 0;
};

// Whether `waited`, which a BackendQueue::Wait returned, says that nothing of it runs any more.
inline bool HasFinished(const Status& waited) {
  return waited || waited.error().code() == ErrorCode::kInvalidArgument ||
         waited.error().code() == ErrorCode::kCancelled;
}

// What it fails with when BackendOptions::cancelled has said true.
inline Error StoppedError() {
  return {ErrorCode::kCancelled, "", "The work was stopped before its end."};
}

// Identifies a committed command buffer; rises by one at each commit of a queue, from 1.
using Serial = uint64_t;

struct BackendBinding {
  BackendBuffer* buffer = nullptr;
  ByteRange range;
  Access access = Access::kRead;
  bool exact = true;
};

struct BackendDispatch {
  BackendKernel* kernel = nullptr;
  std::span<const BackendBinding> bindings;
  std::span<const std::byte> constants;
  Extent3 grid;
  uint32_t shared_bytes = 0;
};

// One command buffer with its concurrent encoder, from opening to EndEncoding. One thread.
class BackendCommandBuffer : public BackendObject {
 public:
  virtual Status Dispatch(const BackendDispatch& dispatch) = 0;
  virtual Status Barrier() = 0;
  // Ends a group as Barrier does. Its workgroups run one at a time, in an order that is a function
  // of `seed` and of the group's grids and mixes all its dispatches. Only where
  // DeviceInfo::interleaves.
  virtual Status Interleave(uint64_t) {
    return Fail(ErrorCode::kUnsupported, "", "The backend cannot run workgroups interleaved.");
  }
  // Closes the encoder; afterwards the command buffer may only be committed or destroyed.
  virtual Status EndEncoding() = 0;
};

// A stream of command buffers that run one after another, in the order of commit. Different queues
// are not ordered against each other. One thread. Destroying it returns when nothing of it runs any
// more; its command buffers are destroyed before it.
class BackendQueue : public BackendObject {
 public:
  // Opens a command buffer and its encoder.
  virtual Result<std::unique_ptr<BackendCommandBuffer>> Begin() = 0;
  // Takes it over; on failure nothing of it runs.
  virtual Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) = 0;
  // Returns when `serial` and all before it have finished. It also reports the first fault of the
  // program that it found in them: in checked mode a false declaration of access (E6), under a
  // schedule two dispatches that conflict (E8). Either is kInvalidArgument, a code that it uses for
  // nothing else; they have finished then as well. So they have with kCancelled, which
  // BackendOptions::cancelled asked for: what had not begun then never runs.
  virtual Status Wait(Serial serial) = 0;
};

// Thread-safe, but for its destruction and for the objects above.
class Backend : public BackendObject {
 public:
  virtual DeviceInfo info() const = 0;
  virtual DeviceMemory memory() const { return {}; }

  // Called once, before anything else is made: DeviceOptions::checked. Error kUnsupported from a
  // backend that cannot verify; a decorator hands it on.
  virtual Status EnableChecks() {
    const std::string name = info().backend;
    return Fail(ErrorCode::kUnsupported, name,
                "Backend " + name + " cannot verify what a dispatch touches; use backend cpu.");
  }

  // Zero-filled.
  virtual Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const BufferDesc& desc) = 0;
  virtual Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(
      const BufferDesc& desc, std::span<const std::byte> memory) = 0;
  virtual Result<std::unique_ptr<BackendKernel>> CreateKernel(const KernelDesc& desc) = 0;
  virtual Result<std::unique_ptr<BackendQueue>> CreateQueue() = 0;

  virtual Status Write(BackendBuffer* buffer, uint64_t offset,
                       std::span<const std::byte> bytes) = 0;
  virtual Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) = 0;
  // Only on a host_visible device. The bytes stay valid until Unmap.
  virtual Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range,
                                           Access access) = 0;
  virtual void Unmap(BackendBuffer* buffer, ByteRange range, Access access) = 0;

  // Told of parallel loads; null when nobody needs to know.
  virtual LoadObserver* load_observer() { return nullptr; }
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_BACKEND_H_
