// Which products of small matrices a device has for a subgroup (VK_NV_cooperative_matrix).
#ifndef ASSAY_GPU_VULKAN_COOPERATIVE_MATRIX_H_
#define ASSAY_GPU_VULKAN_COOPERATIVE_MATRIX_H_

#include <span>

#include "gpu/vulkan/instance.h"

namespace assay::gpu::vulkan {

// True where one of `products` is what kCooperativeMatrixPath promises to shaders: a 16 x 16 matrix
// of f16 by another, added to one of f32, by a subgroup.
bool HasSixteens(std::span<const VkCooperativeMatrixPropertiesNV> products);

// The same of a device that has the extension; false where its driver does not answer.
bool MultipliesSixteens(const Instance& instance, VkPhysicalDevice device);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_COOPERATIVE_MATRIX_H_
