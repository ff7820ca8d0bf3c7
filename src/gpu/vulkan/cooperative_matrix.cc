#include "gpu/vulkan/cooperative_matrix.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace assay::gpu::vulkan {

bool HasSixteens(std::span<const VkCooperativeMatrixPropertiesNV> products) {
  constexpr uint32_t kSide = 16;
  return std::ranges::any_of(products, [](const VkCooperativeMatrixPropertiesNV& product) {
    return product.MSize == kSide && product.NSize == kSide && product.KSize == kSide &&
           product.AType == VK_COMPONENT_TYPE_FLOAT16_NV &&
           product.BType == VK_COMPONENT_TYPE_FLOAT16_NV &&
           product.CType == VK_COMPONENT_TYPE_FLOAT32_NV &&
           product.DType == VK_COMPONENT_TYPE_FLOAT32_NV && product.scope == VK_SCOPE_SUBGROUP_NV;
  });
}

bool MultipliesSixteens(const Instance& instance, VkPhysicalDevice device) {
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesNV>(
      instance.Find("vkGetPhysicalDeviceCooperativeMatrixPropertiesNV"));
  uint32_t count = 0;
  if (list == nullptr || list(device, &count, nullptr) != VK_SUCCESS) return false;
  VkCooperativeMatrixPropertiesNV empty = {};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV;
  std::vector<VkCooperativeMatrixPropertiesNV> products(count, empty);
  const VkResult listed = list(device, &count, products.data());
  if (listed != VK_SUCCESS && listed != VK_INCOMPLETE) return false;
  return HasSixteens(std::span(products).first(count));
}

}  // namespace assay::gpu::vulkan
