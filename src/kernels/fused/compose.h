// Fused ops run the workgroup functions of their parts, one after another, on memory of their own
// workgroup, so that they give the bits of the parts.
#ifndef ASSAY_KERNELS_FUSED_COMPOSE_H_
#define ASSAY_KERNELS_FUSED_COMPOSE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"
#include "kernels/matmul/matmul.h"

namespace assay::kernels {

// One workgroup of `code`: the only one of its grid.
template <typename Constants, size_t kCount>
void RunPart(gpu::CpuWorkgroupFn code, const std::array<std::byte*, kCount>& bindings,
             const Constants& constants, std::span<std::byte> shared) {
  gpu::CpuKernelArgs args;
  args.bindings = bindings.data();
  args.constants = reinterpret_cast<const std::byte*>(&constants);
  args.shared = shared;
  code(args, {0, 0, 0});
}

// Shared memory handed out in pieces that begin at multiples of 64 bytes.
constexpr uint64_t SharedPiece(uint64_t bytes) { return (bytes + 63) / 64 * 64; }
class SharedPieces {
 public:
  explicit SharedPieces(std::span<std::byte> shared) : rest_(shared) {}
  std::byte* Take(uint64_t bytes) {
    std::byte* const piece = rest_.data();
    rest_ = rest_.subspan(SharedPiece(bytes));
    return piece;
  }
  std::span<std::byte> rest() const { return rest_; }

 private:
  std::span<std::byte> rest_;
};

template <DType kType>
gpu::CpuWorkgroupFn PickMatMul(Isa isa) {
  switch (kType) {
    case DType::kF32:
      return PickMatMulF32(isa);
    case DType::kF16:
      return PickMatMulF16(isa);
    case DType::kBF16:
      return PickMatMulBF16(isa);
    case DType::kQ8_0:
      return PickMatMulQ8_0(isa);
    case DType::kQ4_0:
      return PickMatMulQ4_0(isa);
    case DType::kI32:
      break;
  }
  return nullptr;
}

// The constants of a product of `count` rows, of `left` that are left in the matrix, with one
// token.
inline MatMulConstants RowsOfOneToken(uint32_t left, uint32_t count, uint32_t cols) {
  MatMulConstants c;
  c.rows = left;
  c.cols = cols;
  c.tokens = 1;
  c.rows_per_group = count;
  c.tokens_per_group = 1;
  return c;
}

// Defines `gpu::CpuWorkgroupFn NAME(Isa)` over a template of the instruction set with a static Run;
// null for those where KNOWN, the pick function of one of the parts, is.
#define ASSAY_PICK_FUSED(NAME, KNOWN, ...)        \
  gpu::CpuWorkgroupFn NAME(Isa isa) {             \
    if (KNOWN(isa) == nullptr) return nullptr;    \
    switch (isa) {                                \
      case Isa::kSse4:                            \
        return &__VA_ARGS__<Isa::kSse4>::Run;     \
      case Isa::kAvx2:                            \
        return &__VA_ARGS__<Isa::kAvx2>::Run;     \
      case Isa::kAvx3:                            \
        return &__VA_ARGS__<Isa::kAvx3>::Run;     \
      case Isa::kAvx3Vnni:                        \
        return &__VA_ARGS__<Isa::kAvx3Vnni>::Run; \
      case Isa::kNeon:                            \
        return &__VA_ARGS__<Isa::kNeon>::Run;     \
    }                                             \
    return nullptr;                               \
  }                                               \
  static_assert(true, "For requiring trailing semicolon")

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_FUSED_COMPOSE_H_
