// LogicalDevice: one VkDevice with the functions, features and limits that the backend uses; and
// the handle of whatever was made from it.
#ifndef ASSAY_GPU_VULKAN_DEVICE_H_
#define ASSAY_GPU_VULKAN_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "assay/base.h"

#include "gpu/vulkan/api.h"
#include "gpu/vulkan/hooks.h"
#include "gpu/vulkan/instance.h"
#include "gpu/vulkan/physical_device.h"
#include "gpu/vulkan/result.h"

namespace assay::gpu::vulkan {

// Thread-safe. Must outlive what was made from it.
class LogicalDevice final {
 public:
  // Uses the optional paths of `physical` but for `disabled`.
  static Result<std::unique_ptr<LogicalDevice>> Create(const Instance& instance,
                                                       PhysicalDevice physical,
                                                       const OptionalPaths& disabled, Hooks hooks);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  const DeviceApi& api() const { return api_; }
  VkDevice handle() const { return handle_; }
  // `paths` are those in use.
  const PhysicalDevice& physical() const { return physical_; }
  bool uses(OptionalPath path) const { return Has(physical_.paths, path); }
  VkQueue queue() const { return queue_; }
  LiveObjects& live() const { return *hooks_.live; }

  // Once a call has said that the device is lost, it stays so.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  Error LostError() const;

  // Makes one call of a Vulkan function that can fail; see ResultError for the words. A result
  // above 0 (VK_INCOMPLETE, ...) is no failure.
  template <typename Call>
  Status Try(std::string_view function, std::string_view subject, std::string_view doing,
             const Call& call) const {
    VkResult result = VK_SUCCESS;
    if (hooks_.inject) result = static_cast<VkResult>(hooks_.inject(function));
    if (result == VK_SUCCESS) result = call();
    if (result >= 0) return {};
    if (result == VK_ERROR_DEVICE_LOST) lost_.store(true, std::memory_order_release);
    return Fail(ResultError(result, function, std::string(subject), doing));
  }

 private:
  LogicalDevice(PhysicalDevice physical, Hooks hooks)
      : physical_(std::move(physical)), hooks_(std::move(hooks)) {}
  Status Make(const Instance& instance);
  Status LoadFunctions(const Instance& instance);

  PhysicalDevice physical_;
  Hooks hooks_;
  DeviceApi api_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  mutable std::atomic<bool> lost_{false};
};

template <typename Handle>
struct HandleTraits;
#define ASSAY_VULKAN_HANDLE(Handle, destroy)              \
  template <>                                             \
  struct HandleTraits<Handle> {                           \
    static constexpr auto kDestroy = &DeviceApi::destroy; \
  };
ASSAY_VULKAN_HANDLE(VkDeviceMemory, vkFreeMemory)
ASSAY_VULKAN_HANDLE(VkBuffer, vkDestroyBuffer)
ASSAY_VULKAN_HANDLE(VkShaderModule, vkDestroyShaderModule)
ASSAY_VULKAN_HANDLE(VkDescriptorSetLayout, vkDestroyDescriptorSetLayout)
ASSAY_VULKAN_HANDLE(VkPipelineLayout, vkDestroyPipelineLayout)
ASSAY_VULKAN_HANDLE(VkDescriptorUpdateTemplate, vkDestroyDescriptorUpdateTemplate)
ASSAY_VULKAN_HANDLE(VkPipeline, vkDestroyPipeline)
ASSAY_VULKAN_HANDLE(VkDescriptorPool, vkDestroyDescriptorPool)
ASSAY_VULKAN_HANDLE(VkCommandPool, vkDestroyCommandPool)
ASSAY_VULKAN_HANDLE(VkSemaphore, vkDestroySemaphore)
ASSAY_VULKAN_HANDLE(VkFence, vkDestroyFence)
#undef ASSAY_VULKAN_HANDLE

// The only owner of a Vulkan object, which it destroys. Whoever holds it sees to it that the queue
// has passed every use before.
template <typename Handle>
class Owned final {
 public:
  Owned() = default;
  // Takes over what a call has just made.
  Owned(const LogicalDevice* device, Handle handle) : device_(device), handle_(handle) {
    device_->live().created.fetch_add(1, std::memory_order_relaxed);
    device_->live().alive.fetch_add(1, std::memory_order_relaxed);
  }
  Owned(Owned&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, VK_NULL_HANDLE)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      Destroy();
      device_ = other.device_;
      handle_ = std::exchange(other.handle_, VK_NULL_HANDLE);
    }
    return *this;
  }
  ~Owned() { Destroy(); }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

 private:
  void Destroy() {
    if (handle_ == VK_NULL_HANDLE) return;
    (device_->api().*HandleTraits<Handle>::kDestroy)(device_->handle(), handle_, nullptr);
    device_->live().alive.fetch_sub(1, std::memory_order_relaxed);
    handle_ = VK_NULL_HANDLE;
  }

  const LogicalDevice* device_ = nullptr;
  Handle handle_ = VK_NULL_HANDLE;
};

// Makes one object by a vkCreate function and owns it.
template <typename Handle, typename Info>
Result<Owned<Handle>> Make(const LogicalDevice& device,
                           VkResult(VKAPI_PTR* create)(VkDevice, const Info*,
                                                       const VkAllocationCallbacks*, Handle*),
                           const Info& info, std::string_view function, std::string_view subject,
                           std::string_view doing) {
  Handle handle = VK_NULL_HANDLE;
  ASSAY_TRY(device.Try(function, subject, doing,
                       [&] { return create(device.handle(), &info, nullptr, &handle); }));
  return Owned<Handle>(&device, handle);
}

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_DEVICE_H_
