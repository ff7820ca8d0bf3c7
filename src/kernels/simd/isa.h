// Isa: the instruction sets that kernels are compiled for, and the one that this process uses.
//
// The environment variable ASSAY_FORCE_ISA (SSE4, AVX2, AVX3, AVX3_VNNI, NEON) overrides the
// choice, so that every variant a processor has can be run.
#ifndef ASSAY_KERNELS_SIMD_ISA_H_
#define ASSAY_KERNELS_SIMD_ISA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "assay/base.h"

namespace assay::kernels {

// In rising order of preference within one architecture.
enum class Isa : uint8_t {
  kSse4,      // x86-64 with SSE4.2: the baseline.
  kAvx2,      // And AVX2, FMA, F16C.
  kAvx3,      // And AVX-512 F, BW, DQ, VL, CD.
  kAvx3Vnni,  // And AVX-512 VNNI.
  kNeon,      // AArch64.
};
inline constexpr size_t kIsaCount = 5;

// "SSE4", "AVX2", "AVX3", "AVX3_VNNI", "NEON".
std::string_view IsaName(Isa isa);
std::optional<Isa> ParseIsa(std::string_view text);

// Those that this build contains and this processor runs, best first; never empty.
std::vector<Isa> SupportedIsas();

// The one named by `forced`, or the best where `forced` is empty. kUnsupported, with the supported
// ones, for any other.
Result<Isa> ChooseIsa(std::string_view forced);

// ChooseIsa of ASSAY_FORCE_ISA, read at the first call; the same for the whole process.
const Result<Isa>& ProcessIsa();

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_SIMD_ISA_H_
