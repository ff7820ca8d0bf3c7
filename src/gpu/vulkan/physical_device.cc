#include "gpu/vulkan/physical_device.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/host_memory.h"
#include "gpu/vulkan/cooperative_matrix.h"
#include "gpu/vulkan/loader_variables.h"
#include "gpu/vulkan/spirv_kernel.h"

namespace assay::gpu::vulkan {
namespace {

int Rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 3;
    default:
      return 4;
  }
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ContainsAnyCase(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return Lower(a) == Lower(b); }) != text.end() ||
         part.empty();
}

// The answers of one device, chained as Vulkan wants them.
struct Answers {
  VkPhysicalDeviceVulkan12Properties properties12 = {};
  VkPhysicalDeviceMaintenance3Properties maintenance3 = {};
  VkPhysicalDeviceSubgroupProperties subgroup = {};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes = {};
  VkPhysicalDevicePushDescriptorPropertiesKHR push = {};
  VkPhysicalDeviceMaintenance4Properties maintenance4 = {};

  VkPhysicalDeviceFeatures2 features = {};
  VkPhysicalDeviceVulkan11Features features11 = {};
  VkPhysicalDeviceVulkan12Features features12 = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_control = {};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrix = {};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables = {};
};

// Puts `next` at the head of a chain.
template <typename Head, typename Next>
void Chain(Head* head, Next* next, VkStructureType type) {
  next->sType = type;
  next->pNext = head->pNext;
  head->pNext = next;
}

class Query {
 public:
  Query(const Instance& instance, VkPhysicalDevice handle)
      : instance_(instance), api_(instance.api()), handle_(handle) {
    uint32_t count = 0;
    api_.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr);
    extensions_.resize(count);
    api_.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, extensions_.data());
  }

  PhysicalDevice Ask() {
    VkPhysicalDeviceProperties basic = {};
    api_.vkGetPhysicalDeviceProperties(handle_, &basic);
    device_.handle = handle_;
    device_.name = basic.deviceName;
    device_.type = basic.deviceType;
    device_.api_version = basic.apiVersion;
    device_.limits = basic.limits;
    if (basic.apiVersion < VK_API_VERSION_1_2) {
      device_.unusable = fmt::format("it knows Vulkan {}.{}, and 1.2 is the least",
                                     VK_API_VERSION_MAJOR(basic.apiVersion),
                                     VK_API_VERSION_MINOR(basic.apiVersion));
      return std::move(device_);
    }
    AskProperties();
    AskFeatures();
    AskQueues();
    AskMemory();
    return std::move(device_);
  }

 private:
  bool HasExtension(const char* name) const {
    return std::ranges::any_of(extensions_, [&](const VkExtensionProperties& extension) {
      return std::strcmp(extension.extensionName, name) == 0;
    });
  }
  bool Core13() const { return device_.api_version >= VK_API_VERSION_1_3; }
  bool HasSubgroupControl() const {
    return Core13() || HasExtension(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  bool HasDot() const {
    return Core13() || HasExtension(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  }
  bool HasMatrix() const { return HasExtension(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME); }
  bool HasPush() const { return HasExtension(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME); }
  void Set(OptionalPath path, bool present) {
    device_.paths.set(static_cast<size_t>(path), present);
  }

  void AskProperties() {
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    Chain(&properties, &a_.properties12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    Chain(&properties, &a_.maintenance3,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
    Chain(&properties, &a_.subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
    if (HasSubgroupControl()) {
      Chain(&properties, &a_.subgroup_sizes,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    }
    if (HasPush()) {
      Chain(&properties, &a_.push,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR);
    }
    if (Core13()) {
      Chain(&properties, &a_.maintenance4,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
    }
    api_.vkGetPhysicalDeviceProperties2(handle_, &properties);
    device_.driver = fmt::format("{} {}", a_.properties12.driverName, a_.properties12.driverInfo);
    device_.max_allocation_bytes = a_.maintenance3.maxMemoryAllocationSize;
    if (Core13()) {
      device_.max_allocation_bytes =
          std::min(device_.max_allocation_bytes, a_.maintenance4.maxBufferSize);
    }
    device_.max_push_descriptors = a_.push.maxPushDescriptors;
    device_.subgroup_size = a_.subgroup.subgroupSize;
    device_.subgroup_operations = a_.subgroup.supportedOperations;
    device_.choose_subgroup_size =
        (a_.subgroup_sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    device_.min_subgroup_size =
        HasSubgroupControl() ? a_.subgroup_sizes.minSubgroupSize : a_.subgroup.subgroupSize;
    device_.max_subgroup_size =
        HasSubgroupControl() ? a_.subgroup_sizes.maxSubgroupSize : a_.subgroup.subgroupSize;
  }

  void AskFeatures() {
    a_.features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    Chain(&a_.features, &a_.features11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    Chain(&a_.features, &a_.features12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    if (HasSubgroupControl()) {
      Chain(&a_.features, &a_.subgroup_control,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    }
    if (HasDot()) {
      Chain(&a_.features, &a_.dot,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
    }
    if (HasMatrix()) {
      Chain(&a_.features, &a_.matrix,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV);
    }
    if (HasExtension(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) {
      Chain(&a_.features, &a_.executables,
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
    }
    api_.vkGetPhysicalDeviceFeatures2(handle_, &a_.features);
    device_.int16 = a_.features.features.shaderInt16 == VK_TRUE;
    device_.int64 = a_.features.features.shaderInt64 == VK_TRUE;
    device_.float64 = a_.features.features.shaderFloat64 == VK_TRUE;
    // With the model and without its device scope, no shader may have a barrier of that scope.
    device_.memory_model = a_.features12.vulkanMemoryModel == VK_TRUE &&
                           a_.features12.vulkanMemoryModelDeviceScope == VK_TRUE;
    device_.memory_budget = HasExtension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    device_.executable_properties = a_.executables.pipelineExecutableInfo == VK_TRUE;
    Set(OptionalPath::kPushDescriptors, HasPush());
    Set(OptionalPath::kTimelineSemaphores, a_.features12.timelineSemaphore == VK_TRUE);
    Set(OptionalPath::kSubgroupSize, a_.subgroup_control.subgroupSizeControl == VK_TRUE &&
                                         a_.subgroup_control.computeFullSubgroups == VK_TRUE);
    Set(OptionalPath::kStorage8, a_.features12.storageBuffer8BitAccess == VK_TRUE);
    Set(OptionalPath::kStorage16, a_.features11.storageBuffer16BitAccess == VK_TRUE);
    Set(OptionalPath::kFloat16, a_.features12.shaderFloat16 == VK_TRUE);
    Set(OptionalPath::kInt8, a_.features12.shaderInt8 == VK_TRUE);
    Set(OptionalPath::kIntegerDotProduct, a_.dot.shaderIntegerDotProduct == VK_TRUE);
    Set(OptionalPath::kCooperativeMatrix,
        a_.matrix.cooperativeMatrix == VK_TRUE && MultipliesSixteens(instance_, handle_));
  }

  void AskQueues() {
    uint32_t count = 0;
    api_.vkGetPhysicalDeviceQueueFamilyProperties(handle_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    api_.vkGetPhysicalDeviceQueueFamilyProperties(handle_, &count, families.data());
    // Any family with compute can copy as well. The first one also draws on most drivers, and is
    // the one that they make fastest.
    const auto found = std::ranges::find_if(families, [](const VkQueueFamilyProperties& family) {
      return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && family.queueCount > 0;
    });
    if (found == families.end()) {
      device_.unusable = "it has no queue that computes";
      return;
    }
    device_.queue_family = static_cast<uint32_t>(found - families.begin());
  }

  void AskMemory() {
    api_.vkGetPhysicalDeviceMemoryProperties(handle_, &device_.memory);
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                         VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const bool one_memory = device_.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                            device_.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    bool mapped = false;
    for (uint32_t i = 0; i < device_.memory.memoryTypeCount; ++i) {
      mapped |= (device_.memory.memoryTypes[i].propertyFlags & wanted) == wanted;
    }
    Set(OptionalPath::kUnifiedMemory, one_memory && mapped);
    Set(OptionalPath::kMappedHostBuffers, mapped);
  }

  const Instance& instance_;
  const InstanceApi& api_;
  VkPhysicalDevice handle_;
  std::vector<VkExtensionProperties> extensions_;
  Answers a_;
  PhysicalDevice device_;
};

// As `assay devices` lists it.
std::string ShownName(const PhysicalDevice& device) {
  return device.driver.empty() ? device.name : fmt::format("{} ({})", device.name, device.driver);
}

std::string NameAll(const std::vector<PhysicalDevice>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    text += fmt::format("{}{} \"{}\"", i == 0 ? "" : ", ", i, ShownName(devices[i]));
  }
  return text;
}

// What of "vulkan 0" or "vulkan 0: NAME", the line that `assay devices` begins a device with, is
// its number or its name; anything else as it stands.
std::string_view WithoutBackend(std::string_view wanted,
                                const std::vector<PhysicalDevice>& devices) {
  constexpr std::string_view kBackend = "vulkan ";
  if (!wanted.starts_with(kBackend)) return wanted;
  const std::string_view rest = wanted.substr(kBackend.size());
  const std::string_view number = rest.substr(0, rest.find(':'));
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) {
    return wanted;
  }
  if (number.size() == rest.size()) return number;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (rest == fmt::format("{}: {}", i, ShownName(devices[i]))) return number;
  }
  return wanted;
}

}  // namespace

DeviceInfo MakeInfo(const PhysicalDevice& device) {
  DeviceInfo info;
  info.backend = "vulkan";
  info.name = ShownName(device);
  info.code_format = kSpirvCodeFormat;
  info.max_buffer_bytes = device.max_allocation_bytes;
  info.max_binding_bytes = device.limits.maxStorageBufferRange;
  info.max_constant_bytes = device.limits.maxPushConstantsSize;
  // Shaders declare the shared memory that they use.
  info.max_shared_bytes = 0;
  info.host_visible = Has(device.paths, OptionalPath::kUnifiedMemory);
  info.overlaps_encoding = !info.host_visible;
  info.subgroup_size = device.subgroup_size;
  for (size_t i = 0; i < device.paths.size(); ++i) {
    if (device.paths.test(i)) info.features.emplace_back(PathName(static_cast<OptionalPath>(i)));
  }
  return info;
}

DeviceMemory DriverMemory(const Instance& instance, const PhysicalDevice& device) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  if (device.memory_budget) properties.pNext = &budget;
  instance.api().vkGetPhysicalDeviceMemoryProperties2(device.handle, &properties);
  DeviceMemory memory;
  uint64_t free_bytes = 0;
  for (uint32_t i = 0; i < properties.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = properties.memoryProperties.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    memory.total_bytes += heap.size;
    free_bytes += budget.heapBudget[i] - std::min(budget.heapBudget[i], budget.heapUsage[i]);
  }
  if (device.memory_budget) memory.free_bytes = free_bytes;
  return memory;
}

DeviceMemory MemoryOf(const Instance& instance, const PhysicalDevice& device) {
  if (device.type != VK_PHYSICAL_DEVICE_TYPE_CPU) return DriverMemory(instance, device);
  const HostMemory host = ReadHostMemory();
  return {.total_bytes = host.total_bytes, .free_bytes = host.free_bytes, .overcommits = true};
}

std::string_view TypeName(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

Result<std::vector<PhysicalDevice>> FindDevices(const Instance& instance) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> handles, instance.PhysicalDevices());
  std::vector<PhysicalDevice> devices;
  for (const VkPhysicalDevice handle : handles) devices.push_back(Query(instance, handle).Ask());
  std::ranges::stable_sort(devices, {},
                           [](const PhysicalDevice& device) { return Rank(device.type); });
  return devices;
}

Result<PhysicalDevice> ChooseDevice(std::vector<PhysicalDevice> devices, std::string_view asked) {
  const std::string_view wanted = WithoutBackend(asked, devices);
  size_t chosen = devices.size();
  size_t number = 0;
  const auto parsed = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  const bool is_number = !wanted.empty() && parsed.ec != std::errc::invalid_argument &&
                         parsed.ptr == wanted.data() + wanted.size();
  if (is_number) {
    if (parsed.ec == std::errc()) chosen = number;
  } else {
    // A device that cannot be used counts when it is the only one of that name: its error says why.
    for (size_t i = devices.size(); i-- > 0;) {
      if (!ContainsAnyCase(ShownName(devices[i]), wanted)) continue;
      if (chosen == devices.size() || devices[i].unusable.empty() ||
          !devices[chosen].unusable.empty()) {
        chosen = i;
      }
    }
  }
  if (chosen >= devices.size()) {
    // A GPU whose driver a variable hides is asked for most of all.
    const std::string hidden = HiddenDrivers();
    return Fail(ErrorCode::kNotFound, std::string(wanted),
                fmt::format("No Vulkan device has {}; there are: {}{}{}.",
                            is_number ? fmt::format("the number {}", wanted)
                                      : fmt::format("a name with \"{}\"", wanted),
                            NameAll(devices), hidden.empty() ? "" : "; ", hidden));
  }
  if (!devices[chosen].unusable.empty()) {
    return Fail(ErrorCode::kDevice, devices[chosen].name,
                fmt::format("The Vulkan device {} \"{}\" cannot be used: {}.", chosen,
                            devices[chosen].name, devices[chosen].unusable));
  }
  return std::move(devices[chosen]);
}

}  // namespace assay::gpu::vulkan
