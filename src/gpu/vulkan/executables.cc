#include "gpu/vulkan/executables.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace assay::gpu::vulkan {
namespace {

// Above every whole number that a double holds exactly.
constexpr double kMaxFraction = 9007199254740992.0;

std::string Word(std::string_view name) {
  std::string word;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (plain) {
      word += lower;
    } else if (!word.empty() && word.back() != '-') {
      word += '-';
    }
  }
  while (!word.empty() && word.back() == '-') word.pop_back();
  return word.empty() ? "unnamed" : word;
}

uint64_t ValueOf(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 == VK_FALSE ? 0 : 1;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<uint64_t>(std::max<int64_t>(statistic.value.i64, 0));
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR: {
      const double value = statistic.value.f64;
      // False for a NaN as well.
      return value > 0 ? static_cast<uint64_t>(std::llround(std::min(value, kMaxFraction))) : 0;
    }
    default:
      return statistic.value.u64;
  }
}

}  // namespace

std::map<std::string, uint64_t> FiguresOf(const std::vector<Executable>& executables) {
  std::map<std::string, uint64_t> figures;
  for (size_t i = 0; i < executables.size(); ++i) {
    const std::string prefix = i == 0 ? "" : fmt::format("{}-", i);
    if (executables[i].subgroup_size != 0) {
      figures[prefix + "subgroup-size"] = executables[i].subgroup_size;
    }
    for (const VkPipelineExecutableStatisticKHR& statistic : executables[i].statistics) {
      const std::string_view all(statistic.name, sizeof(statistic.name));
      const std::string word = prefix + Word(all.substr(0, all.find('\0')));
      std::string name = word;
      for (int same = 2; figures.contains(name); ++same) name = fmt::format("{}-{}", word, same);
      figures[name] = ValueOf(statistic);
    }
  }
  return figures;
}

}  // namespace assay::gpu::vulkan
