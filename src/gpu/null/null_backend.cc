#include "gpu/null/null_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.h"

namespace assay::gpu {
namespace {

class NullBuffer final : public BackendBuffer {};

class NullKernel final : public BackendKernel {
 public:
  explicit NullKernel(const KernelDesc& desc)
      : info_{std::string(desc.name), HexDigest(std::string(desc.source_digest) + "null")} {}
  const BackendKernelInfo& info() const override { return info_; }

 private:
  BackendKernelInfo info_;
};

class NullCommandBuffer final : public BackendCommandBuffer {
 public:
  Status Dispatch(const BackendDispatch&) override { return {}; }
  Status Barrier() override { return {}; }
  Status EndEncoding() override { return {}; }
};

class NullQueue final : public BackendQueue {
 public:
  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    return std::make_unique<NullCommandBuffer>();
  }
  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer>) override { return ++committed_; }
  Status Wait(Serial) override { return {}; }

 private:
  Serial committed_ = 0;
};

class NullBackend final : public Backend {
 public:
  DeviceInfo info() const override {
    DeviceInfo info;
    info.backend = "null";
    info.name = "null (runs nothing)";
    info.max_buffer_bytes = uint64_t{1} << 46;
    info.max_binding_bytes = info.max_buffer_bytes;
    info.max_constant_bytes = 4096;
    info.max_shared_bytes = 256 << 10;
    return info;
  }
  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const BufferDesc&) override {
    return std::make_unique<NullBuffer>();
  }
  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(const BufferDesc&,
                                                          std::span<const std::byte>) override {
    return std::make_unique<NullBuffer>();
  }
  Result<std::unique_ptr<BackendKernel>> CreateKernel(const KernelDesc& desc) override {
    return std::make_unique<NullKernel>(desc);
  }
  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    return std::make_unique<NullQueue>();
  }
  Status Write(BackendBuffer*, uint64_t, std::span<const std::byte>) override { return {}; }
  Status Read(BackendBuffer*, uint64_t, std::span<std::byte> bytes) override {
    std::ranges::fill(bytes, std::byte{0});
    return {};
  }
  Result<std::span<std::byte>> Map(BackendBuffer*, ByteRange, Access) override {
    return Fail(ErrorCode::kUnsupported, "", "The null backend has no memory to map.");
  }
  void Unmap(BackendBuffer*, ByteRange, Access) override {}
};

}  // namespace

std::unique_ptr<Backend> MakeNullBackend() { return std::make_unique<NullBackend>(); }

}  // namespace assay::gpu
