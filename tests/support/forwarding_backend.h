// A backend for tests that hands everything on to another one. What a test wants to see, to change
// or to lose it overrides.
#ifndef ASSAY_TESTS_SUPPORT_FORWARDING_BACKEND_H_
#define ASSAY_TESTS_SUPPORT_FORWARDING_BACKEND_H_

#include <memory>
#include <span>
#include <utility>

#include "gpu/backend.h"

namespace assay::testing {

// Buffers and kernels are the inner backend's own. Must outlive its queues.
class ForwardingBackend : public gpu::Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<gpu::Backend> inner) : inner_(std::move(inner)) {}

  gpu::Backend& inner() { return *inner_; }

  gpu::DeviceInfo info() const override { return inner_->info(); }
  gpu::DeviceMemory memory() const override { return inner_->memory(); }
  Status EnableChecks() override { return inner_->EnableChecks(); }
  Result<std::unique_ptr<gpu::BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    return inner_->CreateBuffer(desc);
  }
  Result<std::unique_ptr<gpu::BackendBuffer>> ImportHostMemory(
      const gpu::BufferDesc& desc, std::span<const std::byte> memory) override {
    return inner_->ImportHostMemory(desc, memory);
  }
  Result<std::unique_ptr<gpu::BackendKernel>> CreateKernel(const gpu::KernelDesc& desc) override {
    return inner_->CreateKernel(desc);
  }
  Result<std::unique_ptr<gpu::BackendQueue>> CreateQueue() override {
    ASSAY_ASSIGN_OR_RETURN(auto queue, inner_->CreateQueue());
    return std::make_unique<Queue>(std::move(queue), this);
  }
  Status Write(gpu::BackendBuffer* buffer, uint64_t offset,
               std::span<const std::byte> bytes) override {
    return inner_->Write(buffer, offset, bytes);
  }
  Status Read(gpu::BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    return inner_->Read(buffer, offset, bytes);
  }
  Result<std::span<std::byte>> Map(gpu::BackendBuffer* buffer, ByteRange range,
                                   Access access) override {
    return inner_->Map(buffer, range, access);
  }
  void Unmap(gpu::BackendBuffer* buffer, ByteRange range, Access access) override {
    inner_->Unmap(buffer, range, access);
  }
  LoadObserver* load_observer() override { return inner_->load_observer(); }

  // What a command buffer does with `inner`, the command buffer behind it.
  virtual Status OnBegin(gpu::BackendCommandBuffer& /*inner*/) { return {}; }
  virtual Status OnDispatch(gpu::BackendCommandBuffer& inner,
                            const gpu::BackendDispatch& dispatch) {
    return inner.Dispatch(dispatch);
  }
  virtual Status OnBarrier(gpu::BackendCommandBuffer& inner) { return inner.Barrier(); }
  virtual void OnEnd() {}

 private:
  class CommandBuffer final : public gpu::BackendCommandBuffer {
   public:
    CommandBuffer(std::unique_ptr<gpu::BackendCommandBuffer> inner, ForwardingBackend* owner)
        : inner_(std::move(inner)), owner_(owner) {}
    ~CommandBuffer() override { owner_->OnEnd(); }
    Status Dispatch(const gpu::BackendDispatch& dispatch) override {
      return owner_->OnDispatch(*inner_, dispatch);
    }
    Status Barrier() override { return owner_->OnBarrier(*inner_); }
    Status EndEncoding() override { return inner_->EndEncoding(); }
    std::unique_ptr<gpu::BackendCommandBuffer> Take() { return std::move(inner_); }

   private:
    std::unique_ptr<gpu::BackendCommandBuffer> inner_;
    ForwardingBackend* owner_;
  };

  class Queue final : public gpu::BackendQueue {
   public:
    Queue(std::unique_ptr<gpu::BackendQueue> inner, ForwardingBackend* owner)
        : inner_(std::move(inner)), owner_(owner) {}
    Result<std::unique_ptr<gpu::BackendCommandBuffer>> Begin() override {
      ASSAY_ASSIGN_OR_RETURN(auto inner, inner_->Begin());
      ASSAY_TRY(owner_->OnBegin(*inner));
      return std::make_unique<CommandBuffer>(std::move(inner), owner_);
    }
    Result<gpu::Serial> Commit(std::unique_ptr<gpu::BackendCommandBuffer> buffer) override {
      return inner_->Commit(static_cast<CommandBuffer*>(buffer.get())->Take());
    }
    Status Wait(gpu::Serial serial) override { return inner_->Wait(serial); }

   private:
    std::unique_ptr<gpu::BackendQueue> inner_;
    ForwardingBackend* owner_;
  };

  std::unique_ptr<gpu::Backend> inner_;
};

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_FORWARDING_BACKEND_H_
