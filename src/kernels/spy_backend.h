// A backend for tests that hands everything on and keeps the bindings of every dispatch.
#ifndef ASSAY_KERNELS_SPY_BACKEND_H_
#define ASSAY_KERNELS_SPY_BACKEND_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"

namespace assay::kernels::testing {

struct SeenDispatch {
  std::string kernel;
  std::vector<gpu::BackendBinding> bindings;
  std::vector<std::byte> constants;
  Extent3 grid;
  uint32_t shared_bytes = 0;
};

// Of one session at a time.
class SpyBackend final : public gpu::Backend {
 public:
  explicit SpyBackend(std::unique_ptr<gpu::Backend> inner) : inner_(std::move(inner)) {}

  std::vector<SeenDispatch>& seen() { return seen_; }
  // In the order of creation.
  const std::vector<gpu::BackendBuffer*>& buffers() const { return buffers_; }

  gpu::DeviceInfo info() const override { return inner_->info(); }
  Status EnableChecks() override { return inner_->EnableChecks(); }
  Result<std::unique_ptr<gpu::BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    auto buffer = inner_->CreateBuffer(desc);
    if (buffer) buffers_.push_back(buffer->get());
    return buffer;
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
    return std::make_unique<Queue>(std::move(queue), &seen_);
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

 private:
  class CommandBuffer final : public gpu::BackendCommandBuffer {
   public:
    CommandBuffer(std::unique_ptr<gpu::BackendCommandBuffer> inner, std::vector<SeenDispatch>* seen)
        : inner_(std::move(inner)), seen_(seen) {}
    Status Dispatch(const gpu::BackendDispatch& dispatch) override {
      seen_->push_back({std::string(dispatch.kernel->info().name),
                        {dispatch.bindings.begin(), dispatch.bindings.end()},
                        {dispatch.constants.begin(), dispatch.constants.end()},
                        dispatch.grid,
                        dispatch.shared_bytes});
      return inner_->Dispatch(dispatch);
    }
    Status Barrier() override { return inner_->Barrier(); }
    Status EndEncoding() override { return inner_->EndEncoding(); }
    std::unique_ptr<gpu::BackendCommandBuffer> Take() { return std::move(inner_); }

   private:
    std::unique_ptr<gpu::BackendCommandBuffer> inner_;
    std::vector<SeenDispatch>* seen_;
  };

  class Queue final : public gpu::BackendQueue {
   public:
    Queue(std::unique_ptr<gpu::BackendQueue> inner, std::vector<SeenDispatch>* seen)
        : inner_(std::move(inner)), seen_(seen) {}
    Result<std::unique_ptr<gpu::BackendCommandBuffer>> Begin() override {
      ASSAY_ASSIGN_OR_RETURN(auto inner, inner_->Begin());
      return std::make_unique<CommandBuffer>(std::move(inner), seen_);
    }
    Result<gpu::Serial> Commit(std::unique_ptr<gpu::BackendCommandBuffer> buffer) override {
      return inner_->Commit(static_cast<CommandBuffer*>(buffer.get())->Take());
    }
    Status Wait(gpu::Serial serial) override { return inner_->Wait(serial); }

   private:
    std::unique_ptr<gpu::BackendQueue> inner_;
    std::vector<SeenDispatch>* seen_;
  };

  std::unique_ptr<gpu::Backend> inner_;
  std::vector<SeenDispatch> seen_;
  std::vector<gpu::BackendBuffer*> buffers_;
};

}  // namespace assay::kernels::testing

#endif  // ASSAY_KERNELS_SPY_BACKEND_H_
