#include "gpu/vulkan/validation_layer.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::gpu::vulkan {
namespace {

// Any structure of a chain.
struct Link {
  VkStructureType type;
  const Link* next;
};

std::vector<std::string> Extensions(const VkInstanceCreateInfo& info) {
  return {info.ppEnabledExtensionNames, info.ppEnabledExtensionNames + info.enabledExtensionCount};
}

std::vector<VkStructureType> Chain(const VkInstanceCreateInfo& info) {
  std::vector<VkStructureType> types;
  for (const auto* link = static_cast<const Link*>(info.pNext); link != nullptr;
       link = link->next) {
    types.push_back(link->type);
  }
  return types;
}

constexpr auto kLast = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;

TEST(ValidationRequest, ALayerWithSettingsIsToldToFollowWhatShadersAccess) {
  VkExtensionProperties extension = {};
  std::string_view("VK_EXT_layer_settings").copy(extension.extensionName, 255);
  const Link last = {kLast, nullptr};
  const ValidationRequest request({&extension, 1}, &last);
  VkInstanceCreateInfo info = {};
  request.AddTo(&info);
  ASSERT_EQ(info.enabledLayerCount, 1U);
  EXPECT_STREQ(info.ppEnabledLayerNames[0], "VK_LAYER_KHRONOS_validation");
  EXPECT_THAT(Extensions(info), ::testing::Contains("VK_EXT_layer_settings"));
  ASSERT_THAT(Chain(info), ::testing::ElementsAre(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                                  kLayerSettingsType, kLast));
  const auto& settings =
      *reinterpret_cast<const LayerSettings*>(static_cast<const Link*>(info.pNext)->next);
  ASSERT_EQ(settings.count, 1U);
  EXPECT_STREQ(settings.settings[0].layer, "VK_LAYER_KHRONOS_validation");
  EXPECT_STREQ(settings.settings[0].name, "syncval_shader_accesses_heuristic");
  EXPECT_EQ(settings.settings[0].type, 0);
  ASSERT_EQ(settings.settings[0].count, 1U);
  EXPECT_EQ(*static_cast<const VkBool32*>(settings.settings[0].values), VK_TRUE);
}

TEST(ValidationRequest, ALayerWithoutSettingsIsNotGivenAny) {
  VkExtensionProperties extension = {};
  std::string_view("VK_EXT_validation_features").copy(extension.extensionName, 255);
  const Link last = {kLast, nullptr};
  const ValidationRequest request({&extension, 1}, &last);
  VkInstanceCreateInfo info = {};
  request.AddTo(&info);
  EXPECT_THAT(Extensions(info), ::testing::Not(::testing::Contains("VK_EXT_layer_settings")));
  EXPECT_THAT(Chain(info),
              ::testing::ElementsAre(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, kLast));
}

}  // namespace
}  // namespace assay::gpu::vulkan
