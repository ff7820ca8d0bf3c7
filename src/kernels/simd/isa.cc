#include "kernels/simd/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "kernels/simd/targets.h"
// targets.h goes first: it decides which targets Highway offers.
#include <hwy/targets.h>

namespace assay::kernels {
namespace {

constexpr std::array<std::string_view, kIsaCount> kIsaNames = {"SSE4", "AVX2", "AVX3", "AVX3_VNNI",
                                                               "NEON"};

#if HWY_ARCH_X86
bool HasVnni() { return __builtin_cpu_supports("avx512vnni") != 0; }
#endif

}  // namespace

std::string_view IsaName(Isa isa) { return kIsaNames[static_cast<size_t>(isa)]; }

std::optional<Isa> ParseIsa(std::string_view text) {
  for (size_t i = 0; i < kIsaCount; ++i) {
    if (kIsaNames[i] == text) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

std::vector<Isa> SupportedIsas() {
  std::vector<Isa> isas;
  const int64_t targets = HWY_SUPPORTED_TARGETS & HWY_TARGETS;
#if HWY_ARCH_X86
  if ((targets & HWY_AVX3) != 0 && HasVnni()) isas.push_back(Isa::kAvx3Vnni);
  if ((targets & HWY_AVX3) != 0) isas.push_back(Isa::kAvx3);
  if ((targets & HWY_AVX2) != 0) isas.push_back(Isa::kAvx2);
  if ((targets & HWY_SSE4) != 0) isas.push_back(Isa::kSse4);
#else
  if ((targets & HWY_NEON) != 0) isas.push_back(Isa::kNeon);
#endif
  return isas;
}

Result<Isa> ChooseIsa(std::string_view forced) {
  const std::vector<Isa> supported = SupportedIsas();
  if (forced.empty()) return supported.front();
  std::string names;
  for (const Isa isa : supported) {
    if (IsaName(isa) == forced) return isa;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", IsaName(isa));
  }
  return Fail(ErrorCode::kUnsupported, "ASSAY_FORCE_ISA",
              fmt::format("ASSAY_FORCE_ISA ({}) is not an instruction set of this processor and "
                          "build, which has {}.",
                          forced, names));
}

const Result<Isa>& ProcessIsa() {
  static const Result<Isa> chosen = [] {
    const char* forced = std::getenv("ASSAY_FORCE_ISA");
    return ChooseIsa(forced == nullptr ? "" : forced);
  }();
  return chosen;
}

}  // namespace assay::kernels
