// The checks that Ops makes before it encodes: each names the operand and gives both sizes.
#ifndef ASSAY_KERNELS_OPS_CHECK_H_
#define ASSAY_KERNELS_OPS_CHECK_H_

#include <cstdint>
#include <string_view>

#include "assay/kernels.h"

#include "kernels/target.h"

namespace assay::kernels {

// A fault of operand `name` of op `op`.
tl::unexpected<Error> Refuse(std::string_view op, std::string_view name, std::string_view message);

// `view` is there, holds exactly `bytes` and begins at a multiple of `alignment`.
Status CheckView(std::string_view op, std::string_view name, const gpu::BufferView& view,
                 uint64_t bytes, uint64_t alignment);

// A matrix of one of the weight types, not empty, whose view fits its shape.
Status CheckWeights(std::string_view op, std::string_view name, const Matrix& matrix);

// An f32 matrix, not empty, whose view fits its shape.
Status CheckF32(std::string_view op, std::string_view name, const Matrix& matrix);

// Activations whose view fits their shape; kQ8 needs whole blocks.
Status CheckActivations(std::string_view op, std::string_view name, const Activations& x);

// `value` equals what another operand demands.
Status CheckSize(std::string_view op, std::string_view what, uint64_t value,
                 std::string_view demand, uint64_t expected);

// An optional residual of out's shape: empty, exactly out, or apart from it.
Status CheckResidual(std::string_view op, const gpu::BufferView& residual, const Matrix& out);

// `written` shares no byte with `read`.
Status CheckApart(std::string_view op, std::string_view read_name, const gpu::BufferView& read,
                  std::string_view written_name, const gpu::BufferView& written);
// They share no byte or are the same bytes.
Status CheckApartOrSame(std::string_view op, std::string_view read_name,
                        const gpu::BufferView& read, std::string_view written_name,
                        const gpu::BufferView& written);

Status CheckEps(std::string_view op, float eps);

// The highest position that a row takes, first + rows - 1, is a number of its own.
Status CheckPositions(std::string_view op, uint32_t first_position, uint32_t rows);

// x's columns are whole heads.
Status CheckHeads(std::string_view op, const Matrix& x, uint32_t head_dim);
// An optional weight of one head, apart from x.
Status CheckHeadWeight(std::string_view op, const gpu::BufferView& weight, uint32_t head_dim,
                       const Matrix& x);
Status CheckRope(std::string_view op, uint32_t head_dim, uint32_t first_position, uint32_t rows,
                 float base);

// Not more experts than the routing kernels of `target` have room for.
Status CheckRouted(std::string_view op, uint32_t experts, Target target);

// A kv cache of f32 or f16 rows.
Status CheckCache(std::string_view op, std::string_view name, const Matrix& cache);
// Rows [begin, begin + count) of a cache.
Result<gpu::BufferView> CacheRows(const Matrix& cache, uint64_t begin, uint64_t count);

// The rows of the caches that k and v are appended to, when all of them fit each other.
struct CacheRowViews {
  gpu::BufferView k, v;
};
Result<CacheRowViews> CheckAppend(std::string_view op, const Matrix& k, const Matrix& v,
                                  uint32_t first_position, const Matrix& k_cache,
                                  const Matrix& v_cache);

// What the key cache and the value cache of one layer have in common.
Status CheckSameCaches(std::string_view op, const Matrix& k_cache, const Matrix& v_cache);

Status CheckSameShape(std::string_view op, std::string_view name, uint32_t rows, uint32_t cols,
                      std::string_view other, uint32_t other_rows, uint32_t other_cols);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_OPS_CHECK_H_
