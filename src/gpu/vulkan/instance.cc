#include "gpu/vulkan/instance.h"

#include <algorithm>
#include <string>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

#include "gpu/vulkan/loader_variables.h"
#include "gpu/vulkan/result.h"
#include "gpu/vulkan/validation_layer.h"

namespace assay::gpu::vulkan {
namespace {

constexpr const char* kLoader = "libvulkan.so.1";
constexpr std::string_view kInstallDriver =
    "install libvulkan1 and a Vulkan driver (the GPU vendor's, or mesa-vulkan-drivers, which also "
    "runs on the CPU)";

// What helps where the loader finds no driver.
std::string DriverAdvice() {
  std::string hidden = HiddenDrivers();
  return hidden.empty() ? std::string(kInstallDriver) : hidden;
}

// Loaders give VK_ERROR_OUT_OF_HOST_MEMORY for a file that they cannot parse as well.
Error DamagedOrNoMemory(std::string_view function) {
  return {ErrorCode::kDevice, "vulkan",
          fmt::format("Vulkan cannot be started: {} gave {}, which means that the .json file of a "
                      "driver or a layer is damaged, or that the host has no memory left; {}.",
                      function, ResultName(VK_ERROR_OUT_OF_HOST_MEMORY), DamagedFiles())};
}

VKAPI_ATTR VkBool32 VKAPI_CALL OnMessage(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                         VkDebugUtilsMessageTypeFlagsEXT,
                                         const VkDebugUtilsMessengerCallbackDataEXT* data,
                                         void* user_data) {
  (*static_cast<const MessageCallback*>(user_data))(data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT MessengerInfo(MessageCallback* callback) {
  VkDebugUtilsMessengerCreateInfoEXT info = {};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = OnMessage;
  info.pUserData = callback;
  return info;
}

// Keeps the drivers open until the process ends, by an instance that is never destroyed: some of
// them (NVIDIA's) take thread-local memory each time they are opened and never give it back, so
// that after some twenty times they cannot be opened any more.
void KeepDriversOpen(const GlobalApi& global) {
  [[maybe_unused]] static const VkInstance kept = [&] {
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    VkInstance instance = VK_NULL_HANDLE;
    return global.vkCreateInstance(&info, nullptr, &instance) == VK_SUCCESS ? instance
                                                                            : VK_NULL_HANDLE;
  }();
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(MessageCallback validation) {
  std::unique_ptr<Instance> instance(new Instance(std::move(validation)));
  ASSAY_TRY(instance->OpenLoader());
  if (instance->validation_) ASSAY_TRY(instance->CheckValidationLayer());
  KeepDriversOpen(instance->global_);
  ASSAY_TRY(instance->MakeInstance());
  if (instance->validation_) ASSAY_TRY(instance->MakeMessenger());
  return instance;
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        Find("vkDestroyDebugUtilsMessengerEXT"));
    if (destroy != nullptr) destroy(instance_, messenger_, nullptr);
  }
  if (api_.vkDestroyInstance != nullptr) api_.vkDestroyInstance(instance_, nullptr);
}

Status Instance::OpenLoader() {
  // Never unloaded: drivers start threads and register what runs at their end.
  void* const library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return Fail(ErrorCode::kDevice, "vulkan",
                fmt::format("The Vulkan loader ({}) cannot be opened: {}; {}.", kLoader, dlerror(),
                            kInstallDriver));
  }
  global_.get_instance_proc_addr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  dlclose(library);
  if (global_.get_instance_proc_addr == nullptr) {
    return Fail(ErrorCode::kDevice, "vulkan",
                fmt::format("The Vulkan loader ({}) has no vkGetInstanceProcAddr.", kLoader));
  }
  const char* missing = nullptr;
#define ASSAY_LOAD(name)                                                                       \
  global_.name = reinterpret_cast<PFN_##name>(global_.get_instance_proc_addr(nullptr, #name)); \
  if (global_.name == nullptr) missing = #name;
  ASSAY_VULKAN_GLOBAL_FUNCTIONS(ASSAY_LOAD)
#undef ASSAY_LOAD
  if (missing != nullptr) {
    return Fail(ErrorCode::kDevice, "vulkan",
                fmt::format("The Vulkan loader ({}) has no {}: it is older than Vulkan 1.1; {}.",
                            kLoader, missing, kInstallDriver));
  }
  uint32_t version = 0;
  const VkResult told = global_.vkEnumerateInstanceVersion(&version);
  if (told == VK_ERROR_OUT_OF_HOST_MEMORY)
    return Fail(DamagedOrNoMemory("vkEnumerateInstanceVersion"));
  if (told != VK_SUCCESS) {
    return Fail(
        ResultError(told, "vkEnumerateInstanceVersion", "vulkan", "Vulkan cannot be started"));
  }
  if (version < VK_API_VERSION_1_2) {
    return Fail(ErrorCode::kDevice, "vulkan",
                fmt::format("The Vulkan loader ({}) is of version {}.{}; 1.2 is the least.",
                            kLoader, VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version)));
  }
  return {};
}

Status Instance::CheckValidationLayer() const {
  uint32_t count = 0;
  global_.vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  global_.vkEnumerateInstanceLayerProperties(&count, layers.data());
  if (std::ranges::any_of(layers, [](const VkLayerProperties& layer) {
        return std::string_view(layer.layerName) == kValidationLayer;
      })) {
    return {};
  }
  return Fail(ErrorCode::kDevice, "vulkan",
              fmt::format("The layer {} is not installed; install vulkan-validationlayers.",
                          kValidationLayer));
}

std::vector<VkExtensionProperties> Instance::LayerExtensions() const {
  uint32_t count = 0;
  global_.vkEnumerateInstanceExtensionProperties(kValidationLayer, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  global_.vkEnumerateInstanceExtensionProperties(kValidationLayer, &count, extensions.data());
  extensions.resize(count);
  return extensions;
}

Status Instance::MakeInstance() {
  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "assay";
  application.apiVersion = VK_API_VERSION_1_3;

  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  // Sees what is said while the instance itself is made and destroyed.
  VkDebugUtilsMessengerCreateInfoEXT messenger = MessengerInfo(&validation_);
  const ValidationRequest validation(
      validation_ ? LayerExtensions() : std::vector<VkExtensionProperties>(), &messenger);
  if (validation_) validation.AddTo(&info);
  const VkResult result = global_.vkCreateInstance(&info, nullptr, &instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return Fail(ErrorCode::kDevice, "vulkan",
                fmt::format("No Vulkan driver is found; {}.", DriverAdvice()));
  }
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY) return Fail(DamagedOrNoMemory("vkCreateInstance"));
  if (result != VK_SUCCESS) {
    return Fail(ResultError(result, "vkCreateInstance", "vulkan", "Vulkan cannot be started"));
  }
  const char* missing = nullptr;
#define ASSAY_LOAD(name)                                 \
  api_.name = reinterpret_cast<PFN_##name>(Find(#name)); \
  if (api_.name == nullptr) missing = #name;
  ASSAY_VULKAN_INSTANCE_FUNCTIONS(ASSAY_LOAD)
#undef ASSAY_LOAD
  if (missing == nullptr) return {};
  return Fail(ErrorCode::kDevice, "vulkan",
              fmt::format("The Vulkan loader has no {}; {}.", missing, kInstallDriver));
}

Status Instance::MakeMessenger() {
  const auto create =
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(Find("vkCreateDebugUtilsMessengerEXT"));
  if (create == nullptr) {
    return Fail(ErrorCode::kDevice, "vulkan", "The Vulkan loader has no VK_EXT_debug_utils.");
  }
  const VkDebugUtilsMessengerCreateInfoEXT info = MessengerInfo(&validation_);
  const VkResult result = create(instance_, &info, nullptr, &messenger_);
  if (result == VK_SUCCESS) return {};
  return Fail(ResultError(result, "vkCreateDebugUtilsMessengerEXT", "vulkan",
                          "Messages of the validation layer cannot be taken"));
}

Result<std::vector<VkPhysicalDevice>> Instance::PhysicalDevices() const {
  uint32_t count = 0;
  VkResult result = api_.vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  if (result == VK_SUCCESS) {
    result = api_.vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  }
  devices.resize(count);
  if (result == VK_SUCCESS && !devices.empty()) return devices;
  if (result != VK_SUCCESS && result != VK_ERROR_INITIALIZATION_FAILED) {
    return Fail(ResultError(result, "vkEnumeratePhysicalDevices", "vulkan",
                            "The Vulkan devices cannot be listed"));
  }
  return Fail(ErrorCode::kDevice, "vulkan",
              fmt::format("No Vulkan driver here offers a device; {}.", DriverAdvice()));
}

}  // namespace assay::gpu::vulkan
