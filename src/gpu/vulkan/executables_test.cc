#include "gpu/vulkan/executables.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::gpu::vulkan {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

VkPipelineExecutableStatisticKHR Statistic(const std::string& name,
                                           VkPipelineExecutableStatisticFormatKHR format,
                                           VkPipelineExecutableStatisticValueKHR value) {
  VkPipelineExecutableStatisticKHR statistic = {};
  std::memcpy(statistic.name, name.data(), std::min(name.size(), sizeof(statistic.name)));
  statistic.format = format;
  statistic.value = value;
  return statistic;
}
VkPipelineExecutableStatisticKHR Unsigned(const std::string& name, uint64_t value) {
  return Statistic(name, VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR, {.u64 = value});
}
VkPipelineExecutableStatisticKHR Signed(const std::string& name, int64_t value) {
  return Statistic(name, VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR, {.i64 = value});
}
VkPipelineExecutableStatisticKHR Fraction(const std::string& name, double value) {
  return Statistic(name, VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR, {.f64 = value});
}

TEST(Executables, S1_FiguresHaveTheDriversNamesAsWords) {
  EXPECT_THAT(
      FiguresOf({{32,
                  {Unsigned("Register Count", 40), Unsigned("Local (spill) memory, bytes:", 8),
                   Unsigned("!", 1), Unsigned("register-count", 41)}}}),
      ElementsAre(Pair("local-spill-memory-bytes", 8), Pair("register-count", 40),
                  Pair("register-count-2", 41), Pair("subgroup-size", 32), Pair("unnamed", 1)));
}

TEST(Executables, S1_EveryFormatIsAWholeNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(FiguresOf({{0,
                          {Signed("a", 7), Signed("b", -7), Fraction("c", 2.6), Fraction("d", -1.0),
                           Fraction("e", nan), Fraction("f", 1e300),
                           Statistic("g", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR,
                                     {.b32 = VK_TRUE})}}}),
              ElementsAre(Pair("a", 7), Pair("b", 0), Pair("c", 3), Pair("d", 0), Pair("e", 0),
                          Pair("f", uint64_t{1} << 53), Pair("g", 1)));
}

TEST(Executables, S1_ExecutablesAreToldApart) {
  EXPECT_THAT(FiguresOf({{32, {Unsigned("x", 1)}}, {64, {Unsigned("x", 2)}}}),
              ElementsAre(Pair("1-subgroup-size", 64), Pair("1-x", 2), Pair("subgroup-size", 32),
                          Pair("x", 1)));
  // A name without an end.
  EXPECT_EQ(FiguresOf({{0, {Unsigned(std::string(1000, 'y'), 3)}}}).begin()->first,
            std::string(VK_MAX_DESCRIPTION_SIZE, 'y'));
}

}  // namespace
}  // namespace assay::gpu::vulkan
