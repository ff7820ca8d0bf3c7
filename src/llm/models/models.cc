#include <array>

#include "llm/models/architecture.h"
#include "llm/models/qwen3.h"
#include "llm/models/qwen3_moe.h"

namespace assay::llm {
namespace {

constexpr std::array<const Architecture*, 2> kArchitectures = {&kQwen3, &kQwen3Moe};

}  // namespace

std::span<const Architecture* const> Architectures() { return kArchitectures; }

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture* architecture : kArchitectures) {
    if (architecture->name == name) return architecture;
  }
  return nullptr;
}

std::string ArchitectureNames() {
  std::string names;
  for (const Architecture* architecture : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += architecture->name;
  }
  return names;
}

}  // namespace assay::llm
