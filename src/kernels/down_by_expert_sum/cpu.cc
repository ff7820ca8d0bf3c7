#include <algorithm>
#include <cstring>

#include "kernels/down_by_expert_sum/down_by_expert_sum.h"
#include "kernels/fused/compose.h"
#include "kernels/matmul/workgroup.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
namespace {

// Group (x, y): rows x * rows_per_group... of token y.
template <DType kType>
struct Of {
  template <Isa kIsa>
  struct DownByExpertSum {
    static void Run(const gpu::CpuKernelArgs& args, Extent3 group) {
      const auto c = LoadConstants<DownByExpertSumConstants>(args);
      const uint32_t begin = group.x * c.rows_per_group;
      const uint32_t count = std::min(c.rows_per_group, c.rows - begin);
      SharedPieces shared(args.shared);
      std::byte* const products = shared.Take(uint64_t{c.used} * c.rows_per_group * sizeof(float));
      const uint64_t row_bytes = WeightLayout<kType>::RowBytes(c.cols);
      const MatMulConstants rows = RowsOfOneToken(c.rows - begin, count, c.cols);
      for (uint32_t j = 0; j < c.used; ++j) {
        const uint64_t pair = uint64_t{group.y} * c.used + j;
        std::byte* const product = products + uint64_t{j} * count * sizeof(float);
        uint32_t expert = 0;
        std::memcpy(&expert, args.bindings[1] + pair * sizeof(expert), sizeof(expert));
        if (expert >= c.experts) {
          std::memset(product, 0, count * sizeof(float));
          continue;
        }
        RunPart(PickMatMul<kType>(kIsa),
                std::array{args.bindings[0] + (uint64_t{expert} * c.rows + begin) * row_bytes,
                           args.bindings[2] + pair * WeightLayout<kType>::InputRowBytes(c.cols),
                           product},
                rows, shared.rest());
      }
      const uint64_t row = (uint64_t{group.y} * c.rows + begin) * sizeof(float);
      const WeightedSumConstants sum{
          .cols = count, .used = c.used, .cols_per_group = count, .add_residual = 1};
      RunPart(PickWeightedSum(kIsa),
              std::array{products, args.bindings[3] + uint64_t{group.y} * c.used * sizeof(float),
                         args.bindings[4] + row, args.bindings[5] + row},
              sum, {});
    }
  };
};

}  // namespace

ASSAY_PICK_FUSED(PickDownByExpertSumF32, PickMatMulF32, Of<DType::kF32>::DownByExpertSum);
ASSAY_PICK_FUSED(PickDownByExpertSumF16, PickMatMulF16, Of<DType::kF16>::DownByExpertSum);
ASSAY_PICK_FUSED(PickDownByExpertSumBF16, PickMatMulBF16, Of<DType::kBF16>::DownByExpertSum);
ASSAY_PICK_FUSED(PickDownByExpertSumQ8_0, PickMatMulQ8_0, Of<DType::kQ8_0>::DownByExpertSum);
ASSAY_PICK_FUSED(PickDownByExpertSumQ4_0, PickMatMulQ4_0, Of<DType::kQ4_0>::DownByExpertSum);

}  // namespace assay::kernels
