// The hazard checker against brute force, on traces made out of the input.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "assay/hazard.h"

#include "hazard/oracle_testing.h"
#include "hazard/trace_maker_testing.h"

namespace {

// The oracle takes each byte and each pair of every command buffer.
constexpr size_t kMaxRecipes = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // 0xff ends a recipe.
  std::vector<std::vector<uint8_t>> recipes(1);
  for (size_t i = 0; i < size; ++i) {
    if (data[i] != 0xff) {
      recipes.back().push_back(data[i]);
    } else if (recipes.size() == kMaxRecipes) {
      break;
    } else {
      recipes.emplace_back();
    }
  }
  const std::vector<assay::trace::Event> events = assay::hazard::MakeTrace(recipes);
  assay::hazard::Checker checker({});
  uint64_t line = 0;
  for (const assay::trace::Event& event : events) {
    if (!checker.Add(event, ++line)) std::abort();
  }
  const assay::hazard::Report report = checker.Finish();
  if (assay::hazard::ToPlain(report) != assay::hazard::OracleCheck(events)) std::abort();
  return 0;
}
