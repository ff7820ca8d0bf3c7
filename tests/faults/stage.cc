#include "tests/faults/stage.h"

#include <span>

namespace assay::faults {

using kernels::ActivationFormat;
using kernels::Activations;
using kernels::Matrix;

namespace {

Activations AsInput(const Matrix& matrix) {
  return {.view = matrix.view,
          .format = ActivationFormat::kF32,
          .rows = matrix.rows,
          .cols = matrix.cols};
}

}  // namespace

Result<std::unique_ptr<Stage>> Stage::Create(gpu::Device* device, Lost lost,
                                             gpu::BarrierMode mode) {
  ASSAY_ASSIGN_OR_RETURN(auto ops, kernels::Ops::Create(device));
  ASSAY_ASSIGN_OR_RETURN(auto session, device->CreateSession({.barriers = mode}));
  return std::unique_ptr<Stage>(new Stage(device, lost, std::move(session), std::move(ops)));
}

Matrix Stage::Make(std::string_view label, uint32_t rows, uint32_t cols) {
  Matrix matrix{.view = {}, .type = kernels::DType::kF32, .rows = rows, .cols = cols};
  auto buffer = device_->CreateBuffer({.size_bytes = uint64_t{rows} * cols * sizeof(float),
                                       .label = std::string(label),
                                       .digest = {}});
  if (!buffer) {
    Note(Fail(buffer.error()));
    return matrix;
  }
  buffers_.push_back(*buffer);
  matrix.view = buffer->All();
  return matrix;
}

Matrix Stage::Room(std::string_view label, uint32_t rows, uint32_t cols) {
  return Make(label, rows, cols);
}

Matrix Stage::Input(std::string_view label, uint32_t rows, uint32_t cols) {
  Matrix matrix = Make(label, rows, cols);
  if (!matrix.view) return matrix;
  std::vector<float> values(size_t{rows} * cols);
  // Of 24 bits, so that most sums and products round.
  uint32_t state = 12345 + static_cast<uint32_t>(buffers_.size()) * 7919;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = 0.5F + static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
  }
  Note(device_->Write(matrix.view, std::as_bytes(std::span(values))));
  return matrix;
}

Matrix Stage::Rows(const Matrix& matrix, uint32_t first, uint32_t count) {
  Matrix rows = matrix;
  const uint64_t row_bytes = uint64_t{matrix.cols} * sizeof(float);
  auto view = matrix.view.Slice(first * row_bytes, count * row_bytes);
  if (!view) {
    Note(Fail(view.error()));
    return rows;
  }
  rows.view = *view;
  rows.rows = count;
  return rows;
}

Matrix Stage::At(const Matrix& matrix, uint64_t begin, uint64_t end) {
  Matrix part = matrix;
  auto view = matrix.view.buffer().View(begin, end - begin);
  if (!view) {
    Note(Fail(view.error()));
    return part;
  }
  part.view = *view;
  part.rows = 1;
  part.cols = static_cast<uint32_t>((end - begin) / sizeof(float));
  return part;
}

void Stage::Add(const Matrix& a, const Matrix& b, const Matrix& out) {
  Note(ops_->Add(*session_, a, b, out));
}

void Stage::Mul(const Matrix& a, const Matrix& b, const Matrix& out) {
  Note(ops_->Mul(*session_, a, b, out));
}

void Stage::Norm(const Matrix& x, const Matrix& out) {
  Note(ops_->RmsNorm(*session_, x, {}, 1e-6F, AsInput(out)));
}

void Stage::MatMul(const Matrix& weights, const Matrix& x, const Matrix& out,
                   const gpu::BufferView& residual) {
  Note(ops_->MatMul(*session_, weights, AsInput(x), out, residual));
}

void Stage::Fence() {
  if (lost_.Has(++fences_)) return;
  for (int i = 0; i < lost_.barriers; ++i) Note(session_->Barrier());
}

void Stage::Split() {
  if (!lost_.Has(++fences_)) Note(session_->Commit());
}

Status Stage::Finish() {
  Note(session_->Commit());
  Note(session_->Wait());
  return status_;
}

Result<std::vector<float>> Stage::Outputs() {
  std::vector<float> all;
  for (const Matrix& matrix : outputs_) {
    std::vector<float> values(size_t{matrix.rows} * matrix.cols);
    ASSAY_TRY(device_->Read(matrix.view, std::as_writable_bytes(std::span(values))));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace assay::faults
