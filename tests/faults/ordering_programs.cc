#include "tests/faults/ordering_programs.h"

#include <array>

namespace assay::faults {

using kernels::Matrix;

namespace {

// One step in three operands, with a fence between its two dispatches.
class Steps {
 public:
  explicit Steps(Stage& stage)
      : stage_(stage),
        state_(stage.Input("state")),
        scale_(stage.Input("scale")),
        bias_(stage.Input("bias")),
        tmp_(stage.Room("tmp")) {
    stage_.Output(state_);
  }
  void Step() {
    stage_.Mul(state_, scale_, tmp_);
    stage_.Fence();
    stage_.Add(tmp_, bias_, state_);
  }

 private:
  Stage& stage_;
  Matrix state_, scale_, bias_, tmp_;
};

void AddToResidual(Stage& stage, const Matrix& weights, const Matrix& attended, const Matrix& x) {
  stage.MatMul(weights, attended, x, x.view);
}

void Normalise(Stage& stage, const Matrix& x, const Matrix& norm, const Matrix& weights,
               const Matrix& out) {
  stage.Norm(x, norm);
  stage.Fence();
  stage.MatMul(weights, norm, out);
}

}  // namespace

void TwoStepsInOne(Stage& stage) {
  Steps steps(stage);
  steps.Step();
  stage.Fence();
  steps.Step();
}

void TwoStepsApart(Stage& stage) {
  Steps steps(stage);
  steps.Step();
  stage.Split();
  steps.Step();
}

void ResidualThenNorm(Stage& stage) {
  const Matrix x = stage.Input("x");
  const Matrix attended = stage.Input("attended");
  const Matrix out_weights = stage.Input("attn_output", 64);
  const Matrix gate_weights = stage.Input("ffn_gate", 64);
  const Matrix norm = stage.Room("norm");
  const Matrix gate = stage.Room("gate");
  AddToResidual(stage, out_weights, attended, x);
  stage.Fence();
  Normalise(stage, x, norm, gate_weights, gate);
  stage.Output(gate);
}

void OverwriteAfterRead(Stage& stage) {
  const Matrix g = stage.Input("g");
  const Matrix a = stage.Input("a");
  const Matrix b = stage.Input("b");
  const Matrix product = stage.Room("product");
  stage.Mul(g, a, product);
  stage.Fence();
  stage.Add(a, b, g);
  stage.Output(product);
  stage.Output(g);
}

void WritesInARow(Stage& stage) {
  constexpr uint32_t kWrites = 64;
  const Matrix a = stage.Input("a", kWrites);
  const Matrix b = stage.Input("b");
  const Matrix o = stage.Room("o");
  for (uint32_t i = 0; i < kWrites; ++i) {
    if (i > 0) stage.Fence();
    stage.Add(stage.Rows(a, i, 1), b, o);
  }
  stage.Output(o);
}

void ReaderOfAHiddenProducer(Stage& stage) {
  const Matrix a = stage.Input("a");
  const Matrix b = stage.Input("b");
  const Matrix x = stage.Input("x");
  const Matrix y = stage.Room("y");
  const Matrix z = stage.Room("z");
  // What is smuggled into the second command buffer once more.
  stage.Add(x, a, x);
  stage.Split();
  stage.Mul(a, b, y);
  stage.Fence();
  stage.Mul(x, b, z);
  stage.Output(z);
}

void ChainOfFour(Stage& stage) {
  const Matrix a = stage.Input("a");
  const std::array<Matrix, 4> x = {stage.Room("x1"), stage.Room("x2"), stage.Room("x3"),
                                   stage.Room("x4")};
  stage.Add(a, a, x[0]);
  for (size_t i = 1; i < x.size(); ++i) {
    stage.Fence();
    stage.Mul(x[i - 1], a, x[i]);
  }
  stage.Output(x[3]);
}

void SmallReaderOfALargeProduct(Stage& stage) {
  constexpr uint32_t kRows = 32;
  const Matrix weights = stage.Input("weights", 64);
  const Matrix x = stage.Input("x", kRows);
  const Matrix b = stage.Input("b");
  const Matrix product = stage.Room("product", kRows);
  const Matrix last = stage.Room("last");
  stage.MatMul(weights, x, product);
  stage.Fence();
  stage.Add(stage.Rows(product, kRows - 1, 1), b, last);
  stage.Output(last);
}

void Smoke(Stage& stage) {
  constexpr uint32_t kCount = 4096;
  const Matrix a = stage.Input("a", 1, kCount);
  const Matrix b = stage.Input("b", 1, kCount);
  const Matrix c = stage.Input("c", 1, kCount);
  const Matrix tmp = stage.Room("tmp", 1, kCount);
  const Matrix out = stage.Room("out", 1, kCount);
  stage.Add(a, b, tmp);
  stage.Fence();
  stage.Mul(tmp, c, out);
  stage.Output(out);
}

}  // namespace assay::faults
