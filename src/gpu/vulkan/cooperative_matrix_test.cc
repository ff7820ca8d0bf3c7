#include "gpu/vulkan/cooperative_matrix.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace assay::gpu::vulkan {
namespace {

VkCooperativeMatrixPropertiesNV Sixteens() {
  VkCooperativeMatrixPropertiesNV product = {};
  product.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV;
  product.MSize = product.NSize = product.KSize = 16;
  product.AType = product.BType = VK_COMPONENT_TYPE_FLOAT16_NV;
  product.CType = product.DType = VK_COMPONENT_TYPE_FLOAT32_NV;
  product.scope = VK_SCOPE_SUBGROUP_NV;
  return product;
}

TEST(CooperativeMatrix, E12_OnlyTheProductThatShadersUseCounts) {
  using Product = VkCooperativeMatrixPropertiesNV;
  EXPECT_FALSE(HasSixteens({}));
  const std::vector<std::function<void(Product&)>> changes = {
      [](Product& p) { p.MSize = 8; },
      [](Product& p) { p.NSize = 8; },
      [](Product& p) { p.KSize = 8; },
      [](Product& p) { p.AType = VK_COMPONENT_TYPE_SINT8_NV; },
      [](Product& p) { p.BType = VK_COMPONENT_TYPE_SINT8_NV; },
      [](Product& p) { p.CType = VK_COMPONENT_TYPE_FLOAT16_NV; },
      [](Product& p) { p.DType = VK_COMPONENT_TYPE_FLOAT16_NV; },
      [](Product& p) { p.scope = VK_SCOPE_WORKGROUP_NV; }};
  std::vector<Product> others;
  for (const auto& change : changes) {
    others.push_back(Sixteens());
    change(others.back());
    EXPECT_FALSE(HasSixteens(others)) << "change " << others.size();
  }
  others.push_back(Sixteens());
  EXPECT_TRUE(HasSixteens(others));
}

}  // namespace
}  // namespace assay::gpu::vulkan
