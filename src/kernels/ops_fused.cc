// The fused operations: the checks of their parts, then one dispatch.
#include <array>

#include <fmt/format.h>

#include "kernels/activations.h"
#include "kernels/down_by_expert_sum/down_by_expert_sum.h"
#include "kernels/gate_up/gate_up.h"
#include "kernels/head_norm_rope_append/head_norm_rope_append.h"
#include "kernels/norm_route/norm_route.h"
#include "kernels/ops_check.h"
#include "kernels/ops_state.h"
#include "kernels/weight_types.h"

namespace assay::kernels {
namespace {

constexpr uint32_t kMostShared = 256 << 10;

Status CheckShared(std::string_view op, std::string_view name, const Launch& launch) {
  if (launch.shared_bytes <= kMostShared) return {};
  return Refuse(op, name,
                fmt::format("is so large that a workgroup needs {} bytes of shared memory, over "
                            "the limit of {}",
                            launch.shared_bytes, kMostShared));
}

Status CheckInput(std::string_view op, const Activations& x, const Matrix& weights,
                  ActivationFormat wanted) {
  ASSAY_TRY(CheckActivations(op, "x", x));
  if (x.format != wanted) {
    return Refuse(
        op, "x",
        fmt::format("is in another format than weights of type {} take", DTypeName(weights.type)));
  }
  return CheckSize(op, "x.cols", x.cols, "weights.cols", weights.cols);
}

// Two matrices of one shape and type.
Status CheckGateUp(std::string_view op, const Matrix& gate, const Matrix& up, const Activations& x,
                   const Activations& out) {
  ASSAY_TRY(CheckWeights(op, "gate", gate));
  ASSAY_TRY(CheckWeights(op, "up", up));
  ASSAY_TRY(CheckSameShape(op, "up", up.rows, up.cols, "gate", gate.rows, gate.cols));
  if (up.type != gate.type) {
    return Refuse(
        op, "up",
        fmt::format("has type {} where gate has {}", DTypeName(up.type), DTypeName(gate.type)));
  }
  ASSAY_TRY(CheckActivations(op, "out", out));
  ASSAY_TRY(CheckApart(op, "gate", gate.view, "out", out.view));
  ASSAY_TRY(CheckApart(op, "up", up.view, "out", out.view));
  return CheckApart(op, "x", x.view, "out", out.view);
}

Status CheckExperts(std::string_view op, std::string_view name, const Matrix& weights,
                    uint32_t experts) {
  if (experts != 0 && weights.rows % experts == 0) return {};
  return Refuse(
      op, name,
      fmt::format("has {} rows, which do not split into {} experts", weights.rows, experts));
}

}  // namespace

Status Ops::GateUp(gpu::Session& session, const Matrix& gate, const Matrix& up,
                   const Activations& x, const Activations& out) {
  constexpr std::string_view kOp = "gate_up";
  ASSAY_TRY(CheckGateUp(kOp, gate, up, x, out));
  ASSAY_TRY(CheckInput(kOp, x, gate, InputFormat(gate.type)));
  ASSAY_TRY(CheckSize(kOp, "out.cols", out.cols, "gate.rows", gate.rows));
  ASSAY_TRY(CheckSize(kOp, "out.rows", out.rows, "x.rows", x.rows));
  const Launch launch =
      LaunchGateUp(gate.type, gate.rows, gate.cols, x.rows, out.format, state_->target);
  ASSAY_TRY(CheckShared(kOp, "gate", launch));
  return state_->Encode(session, launch,
                        std::array{Read(gate.view), Read(up.view), Read(x.view), Write(out.view)});
}

Status Ops::GateUpByExpert(gpu::Session& session, const Matrix& gate, const Matrix& up,
                           uint32_t experts, const gpu::BufferView& expert_ids,
                           const Activations& x, const Activations& out) {
  constexpr std::string_view kOp = "gate_up_by_expert";
  ASSAY_TRY(CheckGateUp(kOp, gate, up, x, out));
  ASSAY_TRY(CheckInput(kOp, x, gate, InputFormat(gate.type)));
  ASSAY_TRY(CheckExperts(kOp, "gate", gate, experts));
  ASSAY_TRY(CheckSize(kOp, "out.cols", out.cols, "rows of one expert", gate.rows / experts));
  if (out.rows % x.rows != 0) {
    return Refuse(kOp, "out",
                  fmt::format("has {} rows, which is not a multiple of the rows of x ({})",
                              out.rows, x.rows));
  }
  ASSAY_TRY(CheckView(kOp, "expert_ids", expert_ids, out.rows * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckApart(kOp, "expert_ids", expert_ids, "out", out.view));
  const Launch launch =
      LaunchGateUpByExpert(gate.type, gate.rows / experts, gate.cols, experts, out.rows,
                           out.rows / x.rows, out.format, state_->target);
  ASSAY_TRY(CheckShared(kOp, "gate", launch));
  return state_->Encode(session, launch,
                        std::array{ReadSome(gate.view), Read(expert_ids), ReadSome(up.view),
                                   Read(x.view), Write(out.view)});
}

Status Ops::DownByExpertSum(gpu::Session& session, const Matrix& weights, uint32_t experts,
                            const gpu::BufferView& expert_ids, const Activations& x,
                            const gpu::BufferView& expert_weights, const Matrix& out,
                            const gpu::BufferView& residual) {
  constexpr std::string_view kOp = "down_by_expert_sum";
  ASSAY_TRY(CheckWeights(kOp, "weights", weights));
  ASSAY_TRY(CheckInput(kOp, x, weights, InputFormat(weights.type)));
  ASSAY_TRY(CheckF32(kOp, "out", out));
  ASSAY_TRY(CheckExperts(kOp, "weights", weights, experts));
  ASSAY_TRY(CheckSize(kOp, "out.cols", out.cols, "rows of one expert", weights.rows / experts));
  if (x.rows % out.rows != 0) {
    return Refuse(kOp, "x",
                  fmt::format("has {} rows, which is not a multiple of the rows of out ({})",
                              x.rows, out.rows));
  }
  ASSAY_TRY(CheckView(kOp, "expert_ids", expert_ids, x.rows * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckView(kOp, "expert_weights", expert_weights, uint64_t{x.rows} * sizeof(float),
                      sizeof(float)));
  ASSAY_TRY(CheckView(kOp, "residual", residual, out.view.size_bytes(), sizeof(float)));
  ASSAY_TRY(CheckApart(kOp, "weights", weights.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "expert_ids", expert_ids, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "expert_weights", expert_weights, "out", out.view));
  ASSAY_TRY(CheckResidual(kOp, residual, out));
  const Launch launch = LaunchDownByExpertSum(weights.type, weights.rows / experts, weights.cols,
                                              experts, out.rows, x.rows / out.rows, state_->target);
  ASSAY_TRY(CheckShared(kOp, "weights", launch));
  return state_->Encode(session, launch,
                        std::array{ReadSome(weights.view), Read(expert_ids), Read(x.view),
                                   Read(expert_weights), Write(out.view), Read(residual)});
}

Status Ops::NormRoute(gpu::Session& session, const Matrix& x, const gpu::BufferView& weight,
                      float eps, const Matrix& router, const Matrix& norm, uint32_t used,
                      bool normalise, const gpu::BufferView& expert_ids,
                      const gpu::BufferView& expert_weights) {
  constexpr std::string_view kOp = "norm_route";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckF32(kOp, "router", router));
  ASSAY_TRY(CheckF32(kOp, "norm", norm));
  ASSAY_TRY(CheckEps(kOp, eps));
  ASSAY_TRY(CheckSameShape(kOp, "norm", norm.rows, norm.cols, "x", x.rows, x.cols));
  ASSAY_TRY(CheckSize(kOp, "x.cols", x.cols, "router.cols", router.cols));
  ASSAY_TRY(CheckView(kOp, "weight", weight, uint64_t{x.cols} * sizeof(float), sizeof(float)));
  if (used == 0 || used > router.rows) {
    return Refuse(
        kOp, "used",
        fmt::format("({}) is not from 1 to the number of experts ({})", used, router.rows));
  }
  const uint64_t pairs = uint64_t{x.rows} * used;
  ASSAY_TRY(CheckView(kOp, "expert_ids", expert_ids, pairs * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckView(kOp, "expert_weights", expert_weights, pairs * sizeof(float), sizeof(float)));
  const std::array<std::pair<std::string_view, gpu::BufferView>, 3> inputs = {
      {{"x", x.view}, {"weight", weight}, {"router", router.view}}};
  const std::array<std::pair<std::string_view, gpu::BufferView>, 3> outputs = {
      {{"norm", norm.view}, {"expert_ids", expert_ids}, {"expert_weights", expert_weights}}};
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (const auto& [name, view] : inputs) {
      ASSAY_TRY(CheckApart(kOp, name, view, outputs[o].first, outputs[o].second));
    }
    for (size_t other = 0; other < o; ++other) {
      ASSAY_TRY(CheckApart(kOp, outputs[other].first, outputs[other].second, outputs[o].first,
                           outputs[o].second));
    }
  }
  const Launch launch =
      LaunchNormRoute(x.rows, x.cols, eps, router.rows, used, normalise, state_->target);
  ASSAY_TRY(CheckRouted(kOp, router.rows, state_->target));
  ASSAY_TRY(CheckShared(kOp, "router", launch));
  return state_->Encode(session, launch,
                        std::array{Read(x.view), Read(weight), Read(router.view), Write(norm.view),
                                   Write(expert_ids), Write(expert_weights)});
}

Status Ops::HeadNormRopeAppend(gpu::Session& session, const Matrix& k, uint32_t head_dim,
                               const gpu::BufferView& weight, float eps, uint32_t first_position,
                               float base, const Matrix& v, const Matrix& k_cache,
                               const Matrix& v_cache) {
  constexpr std::string_view kOp = "head_norm_rope_append";
  ASSAY_TRY(CheckF32(kOp, "k", k));
  ASSAY_TRY(CheckHeads(kOp, k, head_dim));
  ASSAY_TRY(CheckEps(kOp, eps));
  ASSAY_TRY(CheckRope(kOp, head_dim, first_position, k.rows, base));
  if (!weight) return Refuse(kOp, "weight", "is empty");
  ASSAY_TRY(CheckHeadWeight(kOp, weight, head_dim, k));
  ASSAY_ASSIGN_OR_RETURN(const CacheRowViews rows,
                         CheckAppend(kOp, k, v, first_position, k_cache, v_cache));
  ASSAY_TRY(CheckApart(kOp, "weight", weight, "k_cache", rows.k));
  ASSAY_TRY(CheckApart(kOp, "weight", weight, "v_cache", rows.v));
  const Launch launch = LaunchHeadNormRopeAppend(k_cache.type, k.rows, k.cols, head_dim, eps,
                                                 first_position, base, state_->target);
  ASSAY_TRY(CheckShared(kOp, "k", launch));
  return state_->Encode(
      session, launch,
      std::array{Read(k.view), Read(weight), Read(v.view), Write(rows.k), Write(rows.v)});
}

}  // namespace assay::kernels
