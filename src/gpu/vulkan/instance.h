// Instance: the Vulkan loader and one instance made by it, with the validation layer on request.
#ifndef ASSAY_GPU_VULKAN_INSTANCE_H_
#define ASSAY_GPU_VULKAN_INSTANCE_H_

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/vulkan/api.h"

namespace assay::gpu::vulkan {

using MessageCallback = std::function<void(std::string_view message)>;

// Thread-safe after Create.
class Instance final {
 public:
  // With `validation`, the Khronos validation layer runs with its checks of synchronisation, and
  // each of its messages goes there, from whatever thread made the call. Errors kDevice: no loader,
  // no driver, no layer; the text says what to install.
  static Result<std::unique_ptr<Instance>> Create(MessageCallback validation);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }

  // The driver's devices in the driver's order.
  Result<std::vector<VkPhysicalDevice>> PhysicalDevices() const;

  // Of an extension of the instance or of a device; null when there is none.
  PFN_vkVoidFunction Find(const char* name) const {
    return global_.get_instance_proc_addr(instance_, name);
  }

 private:
  explicit Instance(MessageCallback validation) : validation_(std::move(validation)) {}
  Status OpenLoader();
  Status CheckValidationLayer() const;
  // Of the validation layer.
  std::vector<VkExtensionProperties> LayerExtensions() const;
  Status MakeInstance();
  Status MakeMessenger();

  MessageCallback validation_;
  GlobalApi global_;
  InstanceApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_INSTANCE_H_
