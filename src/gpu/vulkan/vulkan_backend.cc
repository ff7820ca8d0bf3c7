#include "gpu/vulkan/vulkan_backend.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gpu/vulkan/buffer.h"
#include "gpu/vulkan/checked_queue.h"
#include "gpu/vulkan/device.h"
#include "gpu/vulkan/instance.h"
#include "gpu/vulkan/kernel.h"
#include "gpu/vulkan/optional_path.h"
#include "gpu/vulkan/physical_device.h"
#include "gpu/vulkan/queue.h"
#include "gpu/vulkan/submit_queue.h"

namespace assay::gpu {
namespace vulkan {
namespace {

class VulkanBackend final : public Backend {
 public:
  VulkanBackend(std::unique_ptr<Instance> instance, std::unique_ptr<LogicalDevice> device,
                std::unique_ptr<SubmitQueue> queue, bool from_source,
                std::function<bool()> cancelled)
      : instance_(std::move(instance)),
        device_(std::move(device)),
        queue_(std::move(queue)),
        buffers_(device_.get(), queue_.get()),
        from_source_(from_source),
        cancelled_(std::move(cancelled)) {}

  DeviceInfo info() const override { return MakeInfo(device_->physical()); }
  DeviceMemory memory() const override { return MemoryOf(*instance_, device_->physical()); }

  Status EnableChecks() override {
    checked_ = true;
    buffers_.MapEverything();
    return {};
  }

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const BufferDesc& desc) override {
    return buffers_.Make(desc);
  }

  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(const BufferDesc& desc,
                                                          std::span<const std::byte>) override {
    return Fail(ErrorCode::kUnsupported, desc.label,
                fmt::format("Backend vulkan cannot use the host's memory for buffer \"{}\"; it "
                            "copies what it is given.",
                            desc.label));
  }

  Result<std::unique_ptr<BackendKernel>> CreateKernel(const KernelDesc& desc) override {
    // A driver takes its time over each.
    if (cancelled_ && cancelled_()) return Fail(StoppedError());
    return VulkanKernel::Create(*device_, desc, from_source_);
  }

  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    if (checked_) {
      return std::make_unique<CheckedQueue>(device_.get(), queue_.get(), &buffers_, cancelled_);
    }
    return std::make_unique<VulkanQueue>(device_.get(), queue_.get(), cancelled_);
  }

  Status Write(BackendBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) override {
    return buffers_.Write(static_cast<VulkanBuffer*>(buffer), offset, bytes);
  }
  Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    return buffers_.Read(static_cast<VulkanBuffer*>(buffer), offset, bytes);
  }
  Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range, Access) override {
    return std::span(static_cast<VulkanBuffer*>(buffer)->mapped() + range.begin, range.size());
  }
  // The memory is coherent.
  void Unmap(BackendBuffer*, ByteRange, Access) override {}

 private:
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<LogicalDevice> device_;
  std::unique_ptr<SubmitQueue> queue_;
  BufferMaker buffers_;
  bool from_source_;
  std::function<bool()> cancelled_;
  bool checked_ = false;
};

}  // namespace
}  // namespace vulkan

Result<std::unique_ptr<Backend>> MakeVulkanBackend(const BackendOptions& options,
                                                   const vulkan::Hooks& hooks) {
  const VulkanOptions& wanted = options.vulkan;
  ASSAY_ASSIGN_OR_RETURN(const vulkan::OptionalPaths disabled, vulkan::ParsePaths(wanted.disabled));
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::Instance> instance,
                         vulkan::Instance::Create(wanted.validation));
  ASSAY_ASSIGN_OR_RETURN(std::vector<vulkan::PhysicalDevice> devices,
                         vulkan::FindDevices(*instance));
  ASSAY_ASSIGN_OR_RETURN(vulkan::PhysicalDevice physical,
                         vulkan::ChooseDevice(std::move(devices), wanted.device));
  ASSAY_ASSIGN_OR_RETURN(
      std::unique_ptr<vulkan::LogicalDevice> device,
      vulkan::LogicalDevice::Create(*instance, std::move(physical), disabled, hooks));
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::SubmitQueue> queue,
                         vulkan::SubmitQueue::Create(device.get()));
  return std::make_unique<vulkan::VulkanBackend>(std::move(instance), std::move(device),
                                                 std::move(queue), wanted.kernels_from_source,
                                                 options.cancelled);
}

}  // namespace assay::gpu
