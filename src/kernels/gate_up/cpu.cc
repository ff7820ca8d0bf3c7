#include <algorithm>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/fused/compose.h"
#include "kernels/gate_up/gate_up.h"
#include "kernels/matmul/workgroup.h"
#include "kernels/silu_mul/silu_mul.h"

namespace assay::kernels {
namespace {

// Group (x, y): rows x * rows_per_group... of row y of the output.
template <DType kType>
struct Of {
  template <Isa kIsa>
  struct GateUp {
    static void Run(const gpu::CpuKernelArgs& args, Extent3 group) {
      const auto c = LoadConstants<GateUpConstants>(args);
      const bool by_expert = c.experts != 0;
      const uint32_t begin = group.x * c.rows_per_group;
      const uint32_t count = std::min(c.rows_per_group, c.rows - begin);
      SharedPieces shared(args.shared);
      std::byte* const gate = shared.Take(c.rows_per_group * sizeof(float));
      std::byte* const up = shared.Take(c.rows_per_group * sizeof(float));
      std::byte* const rounded = shared.Take(QuantizedRowBytes(c.rows_per_group));
      const uint64_t row_bytes = WeightLayout<kType>::RowBytes(c.cols);
      std::byte* const x = args.bindings[by_expert ? 3 : 2] +
                           group.y / c.fan * WeightLayout<kType>::InputRowBytes(c.cols);
      uint32_t expert = 0;
      if (by_expert)
        std::memcpy(&expert, args.bindings[1] + group.y * sizeof(expert), sizeof(expert));
      if (by_expert && expert >= c.experts) {
        std::memset(gate, 0, count * sizeof(float));
        std::memset(up, 0, count * sizeof(float));
      } else {
        const uint64_t first = (uint64_t{expert} * c.rows + begin) * row_bytes;
        const MatMulConstants rows = RowsOfOneToken(c.rows - begin, count, c.cols);
        const gpu::CpuWorkgroupFn matmul = PickMatMul<kType>(kIsa);
        RunPart(matmul, std::array{args.bindings[0] + first, x, gate}, rows, shared.rest());
        RunPart(matmul, std::array{args.bindings[by_expert ? 2 : 1] + first, x, up}, rows,
                shared.rest());
      }
      const SiluMulConstants silu{.cols = count, .cols_per_group = count};
      std::byte* const out = args.bindings[by_expert ? 4 : 3];
      if (c.out_q8 == 0) {
        RunPart(PickSiluMulF32(kIsa),
                std::array{gate, up, out + (uint64_t{group.y} * c.rows + begin) * sizeof(float)},
                silu, {});
        return;
      }
      RunPart(PickSiluMulQ8(kIsa), std::array{gate, up, rounded}, silu, {});
      const ConstQuantizedRow from(rounded, count);
      const QuantizedRow to(out + group.y * QuantizedRowBytes(c.rows), c.rows);
      const uint32_t blocks = count / kQ8Block;
      std::memcpy(to.values + begin, from.values, count);
      std::memcpy(to.scales + begin / kQ8Block, from.scales, blocks * sizeof(float));
      std::memcpy(to.sums + begin / kQ8Block, from.sums, blocks * sizeof(int32_t));
    }
  };
};

}  // namespace

ASSAY_PICK_FUSED(PickGateUpF32, PickMatMulF32, Of<DType::kF32>::GateUp);
ASSAY_PICK_FUSED(PickGateUpF16, PickMatMulF16, Of<DType::kF16>::GateUp);
ASSAY_PICK_FUSED(PickGateUpBF16, PickMatMulBF16, Of<DType::kBF16>::GateUp);
ASSAY_PICK_FUSED(PickGateUpQ8_0, PickMatMulQ8_0, Of<DType::kQ8_0>::GateUp);
ASSAY_PICK_FUSED(PickGateUpQ4_0, PickMatMulQ4_0, Of<DType::kQ4_0>::GateUp);

}  // namespace assay::kernels
