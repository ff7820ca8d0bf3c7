#include "kernels/ops_check.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "kernels/activations.h"
#include "kernels/vulkan/grids.h"
#include "kernels/weight_types.h"

namespace assay::kernels {
namespace {

Status CheckShape(std::string_view op, std::string_view name, uint32_t rows, uint32_t cols) {
  if (rows == 0 || cols == 0) {
    return Refuse(op, name, fmt::format("has no elements ({} x {})", rows, cols));
  }
  return {};
}

bool SameBuffer(const gpu::BufferView& a, const gpu::BufferView& b) {
  return a.buffer() == b.buffer();
}

}  // namespace

tl::unexpected<Error> Refuse(std::string_view op, std::string_view name, std::string_view message) {
  return Fail(ErrorCode::kInvalidArgument, std::string(name),
              fmt::format("Operand {} of {} {}.", name, op, message));
}

Status CheckView(std::string_view op, std::string_view name, const gpu::BufferView& view,
                 uint64_t bytes, uint64_t alignment) {
  if (!view) return Refuse(op, name, "is empty");
  if (view.size_bytes() != bytes) {
    return Refuse(op, name,
                  fmt::format("has {} bytes where its shape takes {}", view.size_bytes(), bytes));
  }
  if (view.range().begin % alignment != 0) {
    return Refuse(op, name,
                  fmt::format("begins at byte {} of its buffer, which is not a multiple of {}",
                              view.range().begin, alignment));
  }
  return {};
}

Status CheckWeights(std::string_view op, std::string_view name, const Matrix& matrix) {
  ASSAY_TRY(CheckShape(op, name, matrix.rows, matrix.cols));
  if (matrix.type == DType::kI32) return Refuse(op, name, "has type I32, which is no weight type");
  if (matrix.cols % DTypeBlockSize(matrix.type) != 0) {
    return Refuse(op, name,
                  fmt::format("has {} columns, which is not a multiple of the {} of a {} block",
                              matrix.cols, DTypeBlockSize(matrix.type), DTypeName(matrix.type)));
  }
  const uint64_t row_bytes =
      uint64_t{matrix.cols} / DTypeBlockSize(matrix.type) * DTypeBlockBytes(matrix.type);
  // Weights come from files that align them as they like.
  return CheckView(op, name, matrix.view, row_bytes * matrix.rows, 1);
}

Status CheckF32(std::string_view op, std::string_view name, const Matrix& matrix) {
  ASSAY_TRY(CheckShape(op, name, matrix.rows, matrix.cols));
  if (matrix.type != DType::kF32) {
    return Refuse(op, name, fmt::format("has type {} where F32 is needed", DTypeName(matrix.type)));
  }
  return CheckView(op, name, matrix.view, uint64_t{matrix.rows} * matrix.cols * sizeof(float),
                   sizeof(float));
}

Status CheckActivations(std::string_view op, std::string_view name, const Activations& x) {
  ASSAY_TRY(CheckShape(op, name, x.rows, x.cols));
  if (x.format == ActivationFormat::kQ8 && x.cols % kQ8Block != 0) {
    return Refuse(op, name,
                  fmt::format("has {} columns, which is not a multiple of the {} of a "
                              "kQ8 block",
                              x.cols, kQ8Block));
  }
  return CheckView(op, name, x.view, ActivationBytes(x.format, x.rows, x.cols), sizeof(float));
}

Status CheckSize(std::string_view op, std::string_view what, uint64_t value,
                 std::string_view demand, uint64_t expected) {
  if (value == expected) return {};
  return Fail(
      ErrorCode::kInvalidArgument, std::string(what),
      fmt::format("{} of {} ({}) differs from {} ({}).", what, op, value, demand, expected));
}

Status CheckResidual(std::string_view op, const gpu::BufferView& residual, const Matrix& out) {
  if (!residual) return {};
  ASSAY_TRY(CheckView(op, "residual", residual, out.view.size_bytes(), sizeof(float)));
  return CheckApartOrSame(op, "residual", residual, "out", out.view);
}

Status CheckApart(std::string_view op, std::string_view read_name, const gpu::BufferView& read,
                  std::string_view written_name, const gpu::BufferView& written) {
  if (SameBuffer(read, written) && read.range().Overlaps(written.range())) {
    return Refuse(op, written_name,
                  fmt::format("(bytes {} to {}) overlaps operand {} (bytes {} to {}) of the same "
                              "buffer",
                              written.range().begin, written.range().end, read_name,
                              read.range().begin, read.range().end));
  }
  return {};
}

Status CheckApartOrSame(std::string_view op, std::string_view read_name,
                        const gpu::BufferView& read, std::string_view written_name,
                        const gpu::BufferView& written) {
  if (SameBuffer(read, written) && read.range() == written.range()) return {};
  return CheckApart(op, read_name, read, written_name, written);
}

Status CheckEps(std::string_view op, float eps) {
  if (eps >= 0.0f && std::isfinite(eps)) return {};
  return Refuse(op, "eps", fmt::format("({}) is not a finite number of at least 0", eps));
}

// The highest position that a row takes, first + rows - 1, is a number of its own.
Status CheckPositions(std::string_view op, uint32_t first_position, uint32_t rows) {
  if (uint64_t{first_position} + rows <= std::numeric_limits<int32_t>::max()) return {};
  return Refuse(op, "first_position",
                fmt::format("({}) with {} rows passes the largest position ({})", first_position,
                            rows, std::numeric_limits<int32_t>::max() - 1));
}

Status CheckHeads(std::string_view op, const Matrix& x, uint32_t head_dim) {
  if (head_dim == 0 || x.cols % head_dim != 0) {
    return Refuse(
        op, "x",
        fmt::format("has {} columns, which is not a multiple of head_dim ({})", x.cols, head_dim));
  }
  return {};
}

Status CheckHeadWeight(std::string_view op, const gpu::BufferView& weight, uint32_t head_dim,
                       const Matrix& x) {
  if (!weight) return {};
  ASSAY_TRY(CheckView(op, "weight", weight, uint64_t{head_dim} * sizeof(float), sizeof(float)));
  return CheckApart(op, "weight", weight, "x", x.view);
}

Status CheckRope(std::string_view op, uint32_t head_dim, uint32_t first_position, uint32_t rows,
                 float base) {
  if (head_dim % 2 != 0) {
    return Refuse(op, "head_dim", fmt::format("({}) is odd, so that it has no pairs", head_dim));
  }
  if (!(base > 0.0f) || !std::isfinite(base)) {
    return Refuse(op, "base", fmt::format("({}) is not a finite number above 0", base));
  }
  return CheckPositions(op, first_position, rows);
}

Status CheckRouted(std::string_view op, uint32_t experts, Target target) {
  if (target != Target::kSpirv || experts <= kSpirvMaxExperts) return {};
  return Fail(ErrorCode::kUnsupported, "experts",
              fmt::format("{} over {} experts passes the limit of this device's kernels ({}).", op,
                          experts, kSpirvMaxExperts));
}

// A kv cache of f32 or f16 rows.
Status CheckCache(std::string_view op, std::string_view name, const Matrix& cache) {
  if (cache.type != DType::kF32 && cache.type != DType::kF16) {
    return Refuse(op, name,
                  fmt::format("has type {} where F32 or F16 is needed", DTypeName(cache.type)));
  }
  ASSAY_TRY(CheckWeights(op, name, cache));
  if (cache.view.range().begin % DTypeBlockBytes(cache.type) != 0) {
    return Refuse(op, name,
                  fmt::format("begins at byte {} of its buffer, which is not a multiple "
                              "of {}",
                              cache.view.range().begin, DTypeBlockBytes(cache.type)));
  }
  return {};
}

Status CheckSameShape(std::string_view op, std::string_view name, uint32_t rows, uint32_t cols,
                      std::string_view other, uint32_t other_rows, uint32_t other_cols) {
  if (rows == other_rows && cols == other_cols) return {};
  return Refuse(
      op, name,
      fmt::format("is {} x {} where {} is {} x {}", rows, cols, other, other_rows, other_cols));
}

// Rows [begin, begin + count) of a cache.
Result<gpu::BufferView> CacheRows(const Matrix& cache, uint64_t begin, uint64_t count) {
  const uint64_t row_bytes = WeightRowBytes(cache.type, cache.cols);
  return cache.view.Slice(begin * row_bytes, count * row_bytes);
}

Status CheckSameCaches(std::string_view op, const Matrix& k_cache, const Matrix& v_cache) {
  ASSAY_TRY(CheckSameShape(op, "v_cache", v_cache.rows, v_cache.cols, "k_cache", k_cache.rows,
                           k_cache.cols));
  if (v_cache.type == k_cache.type) return {};
  return Refuse(op, "v_cache",
                fmt::format("has type {} where k_cache has {}", DTypeName(v_cache.type),
                            DTypeName(k_cache.type)));
}

Result<CacheRowViews> CheckAppend(std::string_view op, const Matrix& k, const Matrix& v,
                                  uint32_t first_position, const Matrix& k_cache,
                                  const Matrix& v_cache) {
  ASSAY_TRY(CheckF32(op, "k", k));
  ASSAY_TRY(CheckF32(op, "v", v));
  ASSAY_TRY(CheckCache(op, "k_cache", k_cache));
  ASSAY_TRY(CheckCache(op, "v_cache", v_cache));
  ASSAY_TRY(CheckSameShape(op, "v", v.rows, v.cols, "k", k.rows, k.cols));
  ASSAY_TRY(CheckSameCaches(op, k_cache, v_cache));
  ASSAY_TRY(CheckSize(op, "k.cols", k.cols, "k_cache.cols", k_cache.cols));
  if (uint64_t{first_position} + k.rows > k_cache.rows) {
    return Refuse(op, "k",
                  fmt::format("has {} rows from position {}, which pass the cache's {}", k.rows,
                              first_position, k_cache.rows));
  }
  ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView k_rows, CacheRows(k_cache, first_position, k.rows));
  ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView v_rows, CacheRows(v_cache, first_position, v.rows));
  ASSAY_TRY(CheckApart(op, "k", k.view, "k_cache", k_rows));
  ASSAY_TRY(CheckApart(op, "k", k.view, "v_cache", v_rows));
  ASSAY_TRY(CheckApart(op, "v", v.view, "k_cache", k_rows));
  ASSAY_TRY(CheckApart(op, "v", v.view, "v_cache", v_rows));
  ASSAY_TRY(CheckApart(op, "k_cache", k_rows, "v_cache", v_rows));
  return CacheRowViews{k_rows, v_rows};
}

}  // namespace assay::kernels
