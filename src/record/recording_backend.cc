#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "assay/record.h"

#include "gpu/backend.h"

namespace assay::record {
namespace {

using gpu::Backend;
using gpu::BackendBinding;
using gpu::BackendBuffer;
using gpu::BackendCommandBuffer;
using gpu::BackendDispatch;
using gpu::BackendKernel;
using gpu::BackendQueue;
using trace::TraceWriter;

// The trace knows a thing by its address, which is unique among those alive.
uint64_t KeyOf(const void* thing) { return reinterpret_cast<uintptr_t>(thing); }

class RecordedBuffer final : public BackendBuffer {
 public:
  RecordedBuffer(std::unique_ptr<BackendBuffer> inner, const gpu::BufferDesc& desc,
                 TraceWriter* writer)
      : inner_(std::move(inner)), writer_(writer) {
    writer_->BufferMade(KeyOf(this), {.size_bytes = desc.size_bytes,
                                      .kind = desc.kind,
                                      .label = desc.label,
                                      .digest = desc.digest});
  }
  // Before the address can come again.
  ~RecordedBuffer() override { writer_->BufferFreed(KeyOf(this)); }
  BackendBuffer* inner() const { return inner_.get(); }

 private:
  std::unique_ptr<BackendBuffer> inner_;
  TraceWriter* writer_;
};

BackendBuffer* Inner(BackendBuffer* buffer) {
  return static_cast<RecordedBuffer*>(buffer)->inner();
}

// What one command buffer encodes, until it is committed: writing it down then leaves the time to
// the device, which works meanwhile. The front end keeps what is bound alive for as long.
class EncodedCommands final {
 public:
  void Clear() {
    dispatches_.clear();
    bindings_.clear();
    constants_.clear();
  }
  void Add(const BackendDispatch& dispatch) {
    dispatches_.push_back({KeyOf(dispatch.kernel), dispatch.grid, dispatch.shared_bytes,
                           static_cast<uint32_t>(dispatch.bindings.size()),
                           static_cast<uint32_t>(dispatch.constants.size())});
    for (const BackendBinding& binding : dispatch.bindings) {
      bindings_.push_back({KeyOf(binding.buffer), binding.range, binding.access, binding.exact});
    }
    constants_.insert(constants_.end(), dispatch.constants.begin(), dispatch.constants.end());
  }
  void AddBarrier() { dispatches_.push_back({}); }

  void WriteTo(TraceWriter::CommandBuffer* recorded) const {
    std::span<const trace::DispatchRecord::Binding> bindings(bindings_);
    std::span<const std::byte> constants(constants_);
    for (const Encoded& encoded : dispatches_) {
      if (encoded.kernel_key == kBarrier) {
        recorded->Barrier();
        continue;
      }
      recorded->Dispatch({.kernel_key = encoded.kernel_key,
                          .grid = encoded.grid,
                          .shared_bytes = encoded.shared_bytes,
                          .args = constants.first(encoded.constants),
                          .bindings = bindings.first(encoded.bindings)});
      bindings = bindings.subspan(encoded.bindings);
      constants = constants.subspan(encoded.constants);
    }
  }

 private:
  // No kernel has this address.
  static constexpr uint64_t kBarrier = 0;
  struct Encoded {
    uint64_t kernel_key = kBarrier;
    Extent3 grid;
    uint32_t shared_bytes = 0;
    uint32_t bindings = 0;
    uint32_t constants = 0;
  };

  std::vector<Encoded> dispatches_;
  std::vector<trace::DispatchRecord::Binding> bindings_;
  std::vector<std::byte> constants_;
};

// Memory that is kept from one command buffer of a queue to the next.
struct SpareRoom {
  std::vector<std::unique_ptr<EncodedCommands>> commands;
  std::vector<BackendBinding> bindings;  // Of one dispatch.
};

// What the inner backend refuses is not recorded.
class RecordingCommandBuffer final : public BackendCommandBuffer {
 public:
  RecordingCommandBuffer(std::unique_ptr<BackendCommandBuffer> inner,
                         std::unique_ptr<TraceWriter::CommandBuffer> recorded, SpareRoom* room)
      : inner_(std::move(inner)), recorded_(std::move(recorded)), room_(room) {
    if (room_->commands.empty()) {
      encoded_ = std::make_unique<EncodedCommands>();
    } else {
      encoded_ = std::move(room_->commands.back());
      room_->commands.pop_back();
      encoded_->Clear();
    }
  }
  ~RecordingCommandBuffer() override { room_->commands.push_back(std::move(encoded_)); }

  Status Dispatch(const BackendDispatch& dispatch) override {
    room_->bindings.clear();
    for (const BackendBinding& binding : dispatch.bindings) {
      room_->bindings.push_back(
          {Inner(binding.buffer), binding.range, binding.access, binding.exact});
    }
    BackendDispatch inner = dispatch;
    inner.bindings = room_->bindings;
    ASSAY_TRY(inner_->Dispatch(inner));
    encoded_->Add(dispatch);
    return {};
  }
  Status Barrier() override {
    ASSAY_TRY(inner_->Barrier());
    encoded_->AddBarrier();
    return {};
  }
  Status EndEncoding() override { return inner_->EndEncoding(); }

  std::unique_ptr<BackendCommandBuffer> TakeInner() { return std::move(inner_); }
  // With all that was encoded.
  std::unique_ptr<TraceWriter::CommandBuffer> TakeRecorded() {
    encoded_->WriteTo(recorded_.get());
    return std::move(recorded_);
  }

 private:
  std::unique_ptr<BackendCommandBuffer> inner_;
  std::unique_ptr<TraceWriter::CommandBuffer> recorded_;
  std::unique_ptr<EncodedCommands> encoded_;
  SpareRoom* room_;
};

class RecordingQueue final : public BackendQueue {
 public:
  RecordingQueue(std::unique_ptr<BackendQueue> inner, TraceWriter* writer)
      : inner_(std::move(inner)), writer_(writer) {}

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendCommandBuffer> inner, inner_->Begin());
    return std::make_unique<RecordingCommandBuffer>(std::move(inner), writer_->BeginCommandBuffer(),
                                                    &room_);
  }
  Result<gpu::Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override {
    auto* recording = static_cast<RecordingCommandBuffer*>(command_buffer.get());
    ASSAY_ASSIGN_OR_RETURN(const gpu::Serial serial, inner_->Commit(recording->TakeInner()));
    writer_->Commit(recording->TakeRecorded());
    return serial;
  }
  Status Wait(gpu::Serial serial) override {
    Status status = inner_->Wait(serial);
    // A false declaration of access is reported when the work has finished.
    if (status || status.error().code() == ErrorCode::kInvalidArgument) writer_->Wait();
    return status;
  }

 private:
  std::unique_ptr<BackendQueue> inner_;
  TraceWriter* writer_;
  SpareRoom room_;
};

// Tells two observers of the same loads, each by its own number.
class BothObservers final : public LoadObserver {
 public:
  BothObservers(LoadObserver* first, LoadObserver* second) : first_(first), second_(second) {}

  uint64_t OnLoadBegin(size_t job_count) override {
    const Numbers numbers{first_->OnLoadBegin(job_count), second_->OnLoadBegin(job_count)};
    const std::lock_guard lock(mutex_);
    loads_.emplace(next_load_, numbers);
    return next_load_++;
  }
  void OnJobBegin(uint64_t load, size_t job) override {
    const Numbers numbers = Find(load);
    first_->OnJobBegin(numbers.first, job);
    second_->OnJobBegin(numbers.second, job);
  }
  void OnJobEnd(uint64_t load, size_t job, bool ok) override {
    const Numbers numbers = Find(load);
    first_->OnJobEnd(numbers.first, job, ok);
    second_->OnJobEnd(numbers.second, job, ok);
  }
  void OnLoadEnd(uint64_t load) override {
    const Numbers numbers = Find(load);
    first_->OnLoadEnd(numbers.first);
    second_->OnLoadEnd(numbers.second);
    const std::lock_guard lock(mutex_);
    loads_.erase(load);
  }

 private:
  struct Numbers {
    uint64_t first = 0;
    uint64_t second = 0;
  };
  Numbers Find(uint64_t load) {
    const std::lock_guard lock(mutex_);
    return loads_.at(load);
  }

  LoadObserver* first_;
  LoadObserver* second_;
  std::mutex mutex_;  // Guards the members that follow it.
  std::map<uint64_t, Numbers> loads_;
  uint64_t next_load_ = 1;
};

class RecordingBackend final : public Backend {
 public:
  RecordingBackend(std::unique_ptr<Backend> inner, TraceWriter* writer)
      : inner_(std::move(inner)), writer_(writer) {
    if (LoadObserver* const observer = inner_->load_observer(); observer != nullptr) {
      both_ = std::make_unique<BothObservers>(observer, writer_->load_observer());
    }
  }

  gpu::DeviceInfo info() const override { return inner_->info(); }
  Status EnableChecks() override { return inner_->EnableChecks(); }

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendBuffer> inner, inner_->CreateBuffer(desc));
    return std::make_unique<RecordedBuffer>(std::move(inner), desc, writer_);
  }
  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(
      const gpu::BufferDesc& desc, std::span<const std::byte> memory) override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendBuffer> inner,
                           inner_->ImportHostMemory(desc, memory));
    return std::make_unique<RecordedBuffer>(std::move(inner), desc, writer_);
  }
  Result<std::unique_ptr<BackendKernel>> CreateKernel(const gpu::KernelDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendKernel> kernel, inner_->CreateKernel(desc));
    writer_->KernelMade(KeyOf(kernel.get()), {.name = kernel->info().name,
                                              .digest = kernel->info().digest,
                                              .workgroup = desc.workgroup,
                                              .spec = {},
                                              .shared_bytes = 0});
    return kernel;
  }
  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendQueue> inner, inner_->CreateQueue());
    return std::make_unique<RecordingQueue>(std::move(inner), writer_);
  }

  Status Write(BackendBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) override {
    ASSAY_TRY(inner_->Write(Inner(buffer), offset, bytes));
    writer_->HostWrite(KeyOf(buffer), {offset, offset + bytes.size()});
    return {};
  }
  Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    ASSAY_TRY(inner_->Read(Inner(buffer), offset, bytes));
    writer_->HostRead(KeyOf(buffer), {offset, offset + bytes.size()});
    return {};
  }
  Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range, Access access) override {
    ASSAY_ASSIGN_OR_RETURN(const std::span<std::byte> bytes,
                           inner_->Map(Inner(buffer), range, access));
    if (Reads(access)) writer_->HostRead(KeyOf(buffer), range);
    if (Writes(access)) writer_->HostWrite(KeyOf(buffer), range);
    return bytes;
  }
  void Unmap(BackendBuffer* buffer, ByteRange range, Access access) override {
    inner_->Unmap(Inner(buffer), range, access);
  }

  LoadObserver* load_observer() override {
    return both_ != nullptr ? both_.get() : writer_->load_observer();
  }

 private:
  std::unique_ptr<Backend> inner_;
  TraceWriter* writer_;
  std::unique_ptr<BothObservers> both_;  // Null when the inner backend does not ask.
};

}  // namespace

std::unique_ptr<gpu::Backend> MakeRecordingBackend(std::unique_ptr<gpu::Backend> inner,
                                                   trace::TraceWriter* writer) {
  return std::make_unique<RecordingBackend>(std::move(inner), writer);
}

}  // namespace assay::record
