#include "kernels/ops_check.h"

#include <limits>

#include <fmt/format.h>

#include "kernels/activations.h"

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

}  // namespace assay::kernels
