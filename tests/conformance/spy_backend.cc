#include "tests/conformance/spy_backend.h"

#include <utility>

namespace assay::gpu::testing {

void Spy::FailNth(SpyCall call, size_t n) {
  const std::lock_guard lock(mutex_);
  fail_call_ = call;
  calls_until_failure_ = n;
  failed_ = false;
}

void Spy::FailNone() {
  const std::lock_guard lock(mutex_);
  fail_call_.reset();
}

bool Spy::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::string Spy::failed_word() const {
  const std::lock_guard lock(mutex_);
  return failed_word_;
}

std::vector<std::string> Spy::TakeLog() {
  const std::lock_guard lock(mutex_);
  return std::exchange(log_, {});
}

Status Spy::Enter(SpyCall call, std::string word) {
  const std::lock_guard lock(mutex_);
  if (fail_call_ == call && --calls_until_failure_ == 0) {
    fail_call_.reset();
    failed_ = true;
    failed_word_ = word;
    return Fail(FailureCode(call), word, "The call \"" + word + "\" fails as the test asks.");
  }
  log_.push_back(std::move(word));
  return {};
}

class SpyBuffer final : public BackendBuffer {
 public:
  SpyBuffer(std::unique_ptr<BackendBuffer> inner, std::shared_ptr<Spy> spy)
      : inner_(std::move(inner)), spy_(std::move(spy)) {
    ++spy_->buffers_;
  }
  ~SpyBuffer() override { --spy_->buffers_; }
  BackendBuffer* inner() const { return inner_.get(); }

 private:
  std::unique_ptr<BackendBuffer> inner_;
  std::shared_ptr<Spy> spy_;
};

class SpyCommandBuffer final : public BackendCommandBuffer {
 public:
  SpyCommandBuffer(std::unique_ptr<BackendCommandBuffer> inner, std::shared_ptr<Spy> spy)
      : inner_(std::move(inner)), spy_(std::move(spy)) {
    ++spy_->command_buffers_;
  }
  ~SpyCommandBuffer() override { --spy_->command_buffers_; }

  Status Dispatch(const BackendDispatch& dispatch) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kDispatch, "dispatch " + dispatch.kernel->info().name));
    std::vector<BackendBinding> bindings(dispatch.bindings.begin(), dispatch.bindings.end());
    for (BackendBinding& binding : bindings) {
      binding.buffer = static_cast<SpyBuffer*>(binding.buffer)->inner();
    }
    BackendDispatch translated = dispatch;
    translated.bindings = bindings;
    return inner_->Dispatch(translated);
  }
  Status Barrier() override {
    ASSAY_TRY(spy_->Enter(SpyCall::kBarrier, "barrier"));
    return inner_->Barrier();
  }
  Status EndEncoding() override {
    ASSAY_TRY(spy_->Enter(SpyCall::kEndEncoding, "end"));
    return inner_->EndEncoding();
  }
  std::unique_ptr<BackendCommandBuffer> TakeInner() { return std::move(inner_); }

 private:
  std::unique_ptr<BackendCommandBuffer> inner_;
  std::shared_ptr<Spy> spy_;
};

class SpyQueue final : public BackendQueue {
 public:
  SpyQueue(std::unique_ptr<BackendQueue> inner, std::shared_ptr<Spy> spy)
      : inner_(std::move(inner)), spy_(std::move(spy)) {
    ++spy_->queues_;
  }
  ~SpyQueue() override { --spy_->queues_; }

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    ASSAY_TRY(spy_->Enter(SpyCall::kBegin, "begin"));
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendCommandBuffer> inner, inner_->Begin());
    return std::make_unique<SpyCommandBuffer>(std::move(inner), spy_);
  }
  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kCommit, "commit"));
    return inner_->Commit(static_cast<SpyCommandBuffer*>(command_buffer.get())->TakeInner());
  }
  Status Wait(Serial serial) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kWait, "wait"));
    return inner_->Wait(serial);
  }

 private:
  std::unique_ptr<BackendQueue> inner_;
  std::shared_ptr<Spy> spy_;
};

class SpyBackend final : public Backend {
 public:
  SpyBackend(std::unique_ptr<Backend> inner, std::shared_ptr<Spy> spy)
      : inner_(std::move(inner)), spy_(std::move(spy)) {}

  DeviceInfo info() const override { return inner_->info(); }
  DeviceMemory memory() const override { return inner_->memory(); }
  Status EnableChecks() override { return inner_->EnableChecks(); }

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const BufferDesc& desc) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kCreateBuffer, "buffer " + desc.label));
    return Wrap(inner_->CreateBuffer(desc));
  }
  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(
      const BufferDesc& desc, std::span<const std::byte> memory) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kImportHostMemory, "import " + desc.label));
    return Wrap(inner_->ImportHostMemory(desc, memory));
  }
  Result<std::unique_ptr<BackendKernel>> CreateKernel(const KernelDesc& desc) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kCreateKernel, "kernel " + std::string(desc.name)));
    return inner_->CreateKernel(desc);
  }
  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    ASSAY_TRY(spy_->Enter(SpyCall::kCreateQueue, "queue"));
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendQueue> inner, inner_->CreateQueue());
    return std::make_unique<SpyQueue>(std::move(inner), spy_);
  }
  Status Write(BackendBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kWrite, "write"));
    return inner_->Write(Inner(buffer), offset, bytes);
  }
  Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kRead, "read"));
    return inner_->Read(Inner(buffer), offset, bytes);
  }
  Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range, Access access) override {
    ASSAY_TRY(spy_->Enter(SpyCall::kMap, "map"));
    return inner_->Map(Inner(buffer), range, access);
  }
  void Unmap(BackendBuffer* buffer, ByteRange range, Access access) override {
    inner_->Unmap(Inner(buffer), range, access);
  }
  LoadObserver* load_observer() override {
    return spy_->load_observer_ != nullptr ? spy_->load_observer_ : inner_->load_observer();
  }

 private:
  static BackendBuffer* Inner(BackendBuffer* buffer) {
    return static_cast<SpyBuffer*>(buffer)->inner();
  }
  Result<std::unique_ptr<BackendBuffer>> Wrap(Result<std::unique_ptr<BackendBuffer>> inner) {
    if (!inner) return inner;
    return std::make_unique<SpyBuffer>(*std::move(inner), spy_);
  }

  std::unique_ptr<Backend> inner_;
  std::shared_ptr<Spy> spy_;
};

std::unique_ptr<Backend> MakeSpyBackend(std::unique_ptr<Backend> inner, std::shared_ptr<Spy> spy) {
  return std::make_unique<SpyBackend>(std::move(inner), std::move(spy));
}

}  // namespace assay::gpu::testing
