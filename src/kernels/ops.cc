// The operations: check, then encode one dispatch whose bindings are the exact bytes touched.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "assay/kernels.h"

#include "kernels/activations.h"
#include "kernels/argmax/argmax.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/matmul_cooperative/matmul_cooperative.h"
#include "kernels/ops_check.h"
#include "kernels/ops_state.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/vulkan/grids.h"
#include "kernels/vulkan/spirv_table.h"
#include "kernels/weight_types.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
Ops::Ops(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ops::~Ops() = default;

Result<std::unique_ptr<Ops>> Ops::Create(gpu::Device* device, const OpsOptions& options) {
  const auto table = KernelTable();
  const gpu::DeviceInfo& info = device->info();
  if (options.cooperative_matrix &&
      std::ranges::find(info.features, gpu::kCooperativeMatrixPath) == info.features.end()) {
    return Fail(ErrorCode::kUnsupported, info.name,
                fmt::format("Products by cooperative matrices are asked for, and the backend {} "
                            "does not use the optional path \"{}\" on the device \"{}\": it is "
                            "turned off or not there. Leave the option out, or choose another "
                            "device.",
                            info.backend, gpu::kCooperativeMatrixPath, info.name));
  }
  auto state = std::make_unique<State>();
  state->device = device;
  state->target = TargetOf(device->info().code_format);
  state->max_binding_bytes = device->info().max_binding_bytes;
  state->cooperative_matrix = options.cooperative_matrix;
  const std::vector<std::string> known = device->kernels().Names();
  if (!std::ranges::binary_search(known, table[0].name)) ASSAY_TRY(RegisterKernels(*device));
  if (state->target == Target::kCpu) {
    for (size_t i = 0; i < table.size(); ++i) {
      ASSAY_ASSIGN_OR_RETURN(state->ids[i], device->kernels().Get(table[i].name));
    }
  }
  return std::unique_ptr<Ops>(new Ops(std::move(state)));
}

Status Ops::State::PrepareSpirv(const Launch& launch) {
  const std::string_view name = RowOf(launch.kernel).name;
  if (!HasSpirv(launch.kernel)) {
    return Fail(
        ErrorCode::kUnsupported, std::string(name),
        fmt::format("The device \"{}\" has no kernel {}: its activations are f32. Write f32 "
                    "there, which products with every type of weights take.",
                    device->info().name, name));
  }
  for (const uint32_t count : {launch.grid.x, launch.grid.y, launch.grid.z}) {
    if (count > kSpirvMaxGrid) {
      return Fail(ErrorCode::kUnsupported, std::string(name),
                  fmt::format("Kernel {} needs {} workgroups in one direction, which is over the "
                              "limit ({}) of the device \"{}\"; give it fewer rows at a time.",
                              name, count, kSpirvMaxGrid, device->info().name));
    }
  }
  std::optional<gpu::KernelId>& id = ids[static_cast<size_t>(launch.kernel)];
  if (!id) {
    ASSAY_ASSIGN_OR_RETURN(id, device->kernels().Get(name));
  }
  return {};
}

ActivationFormat Ops::InputFormat(DType weight_type) const {
  if (state_->target == Target::kSpirv) return ActivationFormat::kF32;
  return IsQuantised(weight_type) ? ActivationFormat::kQ8 : ActivationFormat::kF32;
}

bool Ops::SupportsWeights(DType type) const { return type != DType::kI32; }

bool Ops::PacksWeights(DType type) const {
  return state_->target == Target::kSpirv && IsQuantised(type);
}

Status Ops::Embedding(gpu::Session& session, const Matrix& table, const gpu::BufferView& ids,
                      const Matrix& out) {
  constexpr std::string_view kOp = "embedding";
  ASSAY_TRY(CheckWeights(kOp, "table", table));
  ASSAY_TRY(CheckF32(kOp, "out", out));
  ASSAY_TRY(CheckSize(kOp, "out.cols", out.cols, "table.cols", table.cols));
  ASSAY_TRY(CheckView(kOp, "ids", ids, out.rows * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckApart(kOp, "table", table.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "ids", ids, "out", out.view));
  return state_->Encode(session, LaunchEmbedding(table.type, table.rows, table.cols, out.rows),
                        std::array{ReadSome(table.view), Read(ids), Write(out.view)});
}

Status Ops::RmsNorm(gpu::Session& session, const Matrix& x, const gpu::BufferView& weight,
                    float eps, const Activations& out) {
  constexpr std::string_view kOp = "rms_norm";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckActivations(kOp, "out", out));
  ASSAY_TRY(CheckSameShape(kOp, "out", out.rows, out.cols, "x", x.rows, x.cols));
  ASSAY_TRY(CheckEps(kOp, eps));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out.view));
  const Launch launch = LaunchRmsNorm(x.rows, x.cols, eps, static_cast<bool>(weight), out.format);
  if (!weight) {
    return state_->Encode(session, launch, std::array{Read(x.view), Write(out.view)});
  }
  ASSAY_TRY(CheckView(kOp, "weight", weight, uint64_t{x.cols} * sizeof(float), sizeof(float)));
  ASSAY_TRY(CheckApart(kOp, "weight", weight, "out", out.view));
  return state_->Encode(session, launch, std::array{Read(x.view), Read(weight), Write(out.view)});
}

Status Ops::Quantize(gpu::Session& session, const Matrix& x, const Activations& out) {
  constexpr std::string_view kOp = "quantize";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckActivations(kOp, "out", out));
  ASSAY_TRY(CheckSameShape(kOp, "out", out.rows, out.cols, "x", x.rows, x.cols));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out.view));
  return state_->Encode(session, LaunchQuantize(x.rows, x.cols, out.format),
                        std::array{Read(x.view), Write(out.view)});
}

Status Ops::MatMul(gpu::Session& session, const Matrix& weights, const Activations& x,
                   const Matrix& out, const gpu::BufferView& residual) {
  constexpr std::string_view kOp = "matmul";
  ASSAY_TRY(CheckWeights(kOp, "weights", weights));
  ASSAY_TRY(CheckActivations(kOp, "x", x));
  ASSAY_TRY(CheckF32(kOp, "out", out));
  if (x.format != InputFormat(weights.type)) {
    return Refuse(
        kOp, "x",
        fmt::format("is in another format than weights of type {} take", DTypeName(weights.type)));
  }
  ASSAY_TRY(CheckSize(kOp, "x.cols", x.cols, "weights.cols", weights.cols));
  ASSAY_TRY(CheckSize(kOp, "out.cols", out.cols, "weights.rows", weights.rows));
  ASSAY_TRY(CheckSize(kOp, "out.rows", out.rows, "x.rows", x.rows));
  ASSAY_TRY(CheckApart(kOp, "weights", weights.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out.view));
  ASSAY_TRY(CheckResidual(kOp, residual, out));
  return state_->MatMulInParts(session, weights, x, out, residual);
}

Launch Ops::State::MatMulLaunch(const Matrix& weights, uint32_t rows, uint32_t tokens,
                                bool add_residual) const {
  if (cooperative_matrix && tokens >= kCooperativeMinTokens) {
    return LaunchMatMulCooperative(weights.type, rows, weights.cols, tokens, add_residual);
  }
  return LaunchMatMul(weights.type, rows, weights.cols, tokens, add_residual, target);
}

Launch Ops::State::MatMulByExpertLaunch(const Matrix& weights, uint32_t rows, uint32_t experts,
                                        uint32_t pairs, uint32_t fan) const {
  if (cooperative_matrix && pairs >= uint64_t{kCooperativeMinPairsPerExpert} * experts) {
    return LaunchMatMulByExpertCooperative(weights.type, rows, weights.cols, experts, pairs, fan);
  }
  return LaunchMatMulByExpert(weights.type, rows, weights.cols, experts, pairs, fan, target);
}

Status Ops::State::MatMulInParts(gpu::Session& session, const Matrix& weights, const Activations& x,
                                 const Matrix& out, const gpu::BufferView& residual) {
  const auto product = [&](const gpu::BufferView& w, uint32_t rows, const gpu::BufferView& in,
                           uint32_t tokens, const gpu::BufferView& to,
                           const gpu::BufferView& add) -> Status {
    const Launch launch = MatMulLaunch(weights, rows, tokens, static_cast<bool>(add));
    if (!add) return Encode(session, launch, std::array{Read(w), Read(in), Write(to)});
    return Encode(session, launch, std::array{Read(w), Read(in), Write(to), Read(add)});
  };
  const uint64_t row_bytes = WeightRowBytes(weights.type, weights.cols);
  if (weights.view.size_bytes() <= max_binding_bytes || row_bytes > max_binding_bytes) {
    return product(weights.view, weights.rows, x.view, x.rows, out.view, residual);
  }
  // Some rows of one token are a range of the output; of several tokens they are none.
  const auto most = static_cast<uint32_t>(max_binding_bytes / row_bytes);
  const uint64_t x_bytes = ActivationBytes(x.format, 1, x.cols);
  for (uint32_t first = 0; first < weights.rows; first += std::min(most, weights.rows - first)) {
    const uint32_t rows = std::min(most, weights.rows - first);
    ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView w,
                           weights.view.Slice(first * row_bytes, rows * row_bytes));
    for (uint32_t token = 0; token < x.rows; ++token) {
      const uint64_t at = (uint64_t{token} * weights.rows + first) * sizeof(float);
      ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView in, x.view.Slice(token * x_bytes, x_bytes));
      ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView to, out.view.Slice(at, rows * sizeof(float)));
      gpu::BufferView add;
      if (residual) {
        ASSAY_ASSIGN_OR_RETURN(add, residual.Slice(at, rows * sizeof(float)));
      }
      ASSAY_TRY(product(w, rows, in, 1, to, add));
    }
  }
  return {};
}

Status Ops::MatMulByExpert(gpu::Session& session, const Matrix& weights, uint32_t experts,
                           const gpu::BufferView& expert_ids, const Activations& x,
                           const Matrix& out) {
  constexpr std::string_view kOp = "matmul_by_expert";
  ASSAY_TRY(CheckWeights(kOp, "weights", weights));
  ASSAY_TRY(CheckActivations(kOp, "x", x));
  ASSAY_TRY(CheckF32(kOp, "out", out));
  if (x.format != InputFormat(weights.type)) {
    return Refuse(
        kOp, "x",
        fmt::format("is in another format than weights of type {} take", DTypeName(weights.type)));
  }
  if (experts == 0 || weights.rows % experts != 0) {
    return Refuse(
        kOp, "weights",
        fmt::format("has {} rows, which do not split into {} experts", weights.rows, experts));
  }
  ASSAY_TRY(CheckSize(kOp, "x.cols", x.cols, "weights.cols", weights.cols));
  ASSAY_TRY(CheckSize(kOp, "out.cols", out.cols, "rows of one expert", weights.rows / experts));
  if (out.rows % x.rows != 0) {
    return Refuse(kOp, "out",
                  fmt::format("has {} rows, which is not a multiple of the rows of x "
                              "({})",
                              out.rows, x.rows));
  }
  ASSAY_TRY(CheckView(kOp, "expert_ids", expert_ids, out.rows * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckApart(kOp, "weights", weights.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "expert_ids", expert_ids, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out.view));
  return state_->Encode(
      session,
      state_->MatMulByExpertLaunch(weights, weights.rows / experts, experts, out.rows,
                                   out.rows / x.rows),
      std::array{ReadSome(weights.view), Read(expert_ids), Read(x.view), Write(out.view)});
}

Status Ops::HeadNormRope(gpu::Session& session, const Matrix& x, uint32_t head_dim,
                         const gpu::BufferView& weight, float eps, uint32_t first_position,
                         float base) {
  constexpr std::string_view kOp = "head_norm_rope";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckHeads(kOp, x, head_dim));
  ASSAY_TRY(CheckEps(kOp, eps));
  ASSAY_TRY(CheckRope(kOp, head_dim, first_position, x.rows, base));
  ASSAY_TRY(CheckHeadWeight(kOp, weight, head_dim, x));
  const Launch launch = LaunchHeadNormRope(x.rows, x.cols, head_dim, eps, static_cast<bool>(weight),
                                           first_position, base, state_->target);
  if (!weight) return state_->Encode(session, launch, std::array{ReadWrite(x.view)});
  return state_->Encode(session, launch, std::array{ReadWrite(x.view), Read(weight)});
}

Status Ops::HeadNorm(gpu::Session& session, const Matrix& x, uint32_t head_dim,
                     const gpu::BufferView& weight, float eps) {
  constexpr std::string_view kOp = "head_norm";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckHeads(kOp, x, head_dim));
  ASSAY_TRY(CheckEps(kOp, eps));
  ASSAY_TRY(CheckHeadWeight(kOp, weight, head_dim, x));
  const Launch launch =
      LaunchHeadNorm(x.rows, x.cols, head_dim, eps, static_cast<bool>(weight), state_->target);
  if (!weight) return state_->Encode(session, launch, std::array{ReadWrite(x.view)});
  return state_->Encode(session, launch, std::array{ReadWrite(x.view), Read(weight)});
}

Status Ops::Rope(gpu::Session& session, const Matrix& x, uint32_t head_dim, uint32_t first_position,
                 float base) {
  constexpr std::string_view kOp = "rope";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckHeads(kOp, x, head_dim));
  ASSAY_TRY(CheckRope(kOp, head_dim, first_position, x.rows, base));
  return state_->Encode(session,
                        LaunchRope(x.rows, x.cols, head_dim, first_position, base, state_->target),
                        std::array{ReadWrite(x.view)});
}

Status Ops::KvAppend(gpu::Session& session, const Matrix& k, const Matrix& v,
                     uint32_t first_position, const Matrix& k_cache, const Matrix& v_cache) {
  constexpr std::string_view kOp = "kv_append";
  ASSAY_ASSIGN_OR_RETURN(const CacheRowViews rows,
                         CheckAppend(kOp, k, v, first_position, k_cache, v_cache));
  return state_->Encode(session, LaunchKvAppend(k_cache.type, k.rows, k.cols),
                        std::array{Read(k.view), Read(v.view), Write(rows.k), Write(rows.v)});
}

Status Ops::Attention(gpu::Session& session, const Matrix& q, const Matrix& k_cache,
                      const Matrix& v_cache, uint32_t head_dim, uint32_t first_position,
                      float scale, const Activations& out, const AttentionRoom& room) {
  constexpr std::string_view kOp = "attention";
  ASSAY_TRY(CheckF32(kOp, "q", q));
  ASSAY_TRY(CheckCache(kOp, "k_cache", k_cache));
  ASSAY_TRY(CheckCache(kOp, "v_cache", v_cache));
  ASSAY_TRY(CheckActivations(kOp, "out", out));
  ASSAY_TRY(CheckSameShape(kOp, "out", out.rows, out.cols, "q", q.rows, q.cols));
  ASSAY_TRY(CheckSameCaches(kOp, k_cache, v_cache));
  if (head_dim == 0 || head_dim % 8 != 0 || head_dim > kAttentionMaxHeadDim) {
    return Refuse(
        kOp, "head_dim",
        fmt::format("({}) is not a multiple of 8 from 8 to {}", head_dim, kAttentionMaxHeadDim));
  }
  ASSAY_TRY(CheckHeads(kOp, q, head_dim));
  ASSAY_TRY(CheckHeads(kOp, k_cache, head_dim));
  const uint32_t heads = q.cols / head_dim;
  const uint32_t kv_heads = k_cache.cols / head_dim;
  if (heads % kv_heads != 0) {
    return Refuse(
        kOp, "q",
        fmt::format("has {} heads, which is not a multiple of the cache's {}", heads, kv_heads));
  }
  if (!std::isfinite(scale)) return Refuse(kOp, "scale", fmt::format("({}) is not finite", scale));
  if (uint64_t{first_position} + q.rows > k_cache.rows) {
    return Refuse(kOp, "q",
                  fmt::format("has {} rows from position {}, which pass the cache's {}", q.rows,
                              first_position, k_cache.rows));
  }
  const Launch launch = LaunchAttention(k_cache.type, out.format, q.rows, heads, kv_heads, head_dim,
                                        first_position, scale, state_->target);
  if (out.format == ActivationFormat::kQ8 &&
      !AttentionWritesWholeBlocks(heads, kv_heads, head_dim)) {
    return Refuse(kOp, "out",
                  fmt::format("is kQ8, whose blocks of {} do not divide the {} query "
                              "heads of {} over one kv head; write f32 and quantize",
                              kQ8Block, heads / kv_heads, head_dim));
  }
  const uint64_t seen = uint64_t{first_position} + q.rows;
  ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView k_rows, CacheRows(k_cache, 0, seen));
  ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView v_rows, CacheRows(v_cache, 0, seen));
  ASSAY_TRY(CheckApart(kOp, "q", q.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "k_cache", k_rows, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "v_cache", v_rows, "out", out.view));
  const std::array bindings{Read(q.view), Read(k_rows), Read(v_rows), Write(out.view)};
  if (state_->target == Target::kSpirv && room.partials && out.format == ActivationFormat::kF32) {
    if (const auto split = SplitAttention(q.rows, heads, kv_heads, head_dim, first_position)) {
      return state_->SharedAttention(
          session,
          LaunchAttentionSplit(k_cache.type, *split,
                               {.tokens = q.rows,
                                .heads = heads,
                                .kv_heads = kv_heads,
                                .head_dim = head_dim,
                                .first_position = first_position,
                                .splits_per_group = split->splits_per_group,
                                .scale = scale}),
          bindings, *split, room);
    }
  }
  return state_->Encode(session, launch, bindings);
}

Status Ops::State::SharedAttention(gpu::Session& session, const Launch& launch,
                                   const std::array<gpu::Binding, 4>& bindings,
                                   const AttentionSplit& split, const AttentionRoom& room) {
  constexpr std::string_view kOp = "attention";
  struct Part {
    std::string_view name;
    const gpu::BufferView* view;
    uint64_t bytes;
    uint64_t alignment;
  };
  std::array<gpu::BufferView, 2> taken;
  const std::array parts{Part{"room.partials", &room.partials, split.partial_bytes, 16},
                         Part{"room.counters", &room.counters, split.counter_bytes, 4}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, view, wanted, alignment] = parts[i];
    if (!*view || view->size_bytes() < wanted) {
      return Refuse(kOp, name,
                    fmt::format("has {} bytes where these tokens and positions take {}; make it as "
                                "large as RoomForAttention() says for the longest context",
                                *view ? view->size_bytes() : 0, wanted));
    }
    ASSAY_ASSIGN_OR_RETURN(taken[i], view->Slice(0, wanted));
    ASSAY_TRY(CheckView(kOp, name, taken[i], wanted, alignment));
    constexpr std::array<std::string_view, 4> kNames = {"q", "k_cache", "v_cache", "out"};
    for (size_t j = 0; j < kNames.size(); ++j) {
      ASSAY_TRY(CheckApart(kOp, kNames[j], bindings[j].view, name, taken[i]));
    }
  }
  ASSAY_TRY(CheckApart(kOp, parts[1].name, taken[1], parts[0].name, taken[0]));
  // Of the counters a dispatch touches those of whom more than one workgroup shares the positions.
  return Encode(session, launch,
                std::array{bindings[0], bindings[1], bindings[2], bindings[3], Write(taken[0]),
                           gpu::Binding{taken[1], Access::kReadWrite, false}});
}

AttentionRoomBytes Ops::RoomForAttention(uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                                         uint32_t head_dim, uint32_t context) const {
  AttentionRoomBytes most;
  if (state_->target != Target::kSpirv) return most;
  const auto add = [&](uint32_t rows, uint32_t seen) {
    const auto split = SplitAttention(rows, heads, kv_heads, head_dim, seen - rows);
    if (!split) return false;
    most.partials = std::max(most.partials, split->partial_bytes);
    most.counters = std::max(most.counters, split->counter_bytes);
    if (split->splits_per_group == 1) most.turn = std::max(most.turn, seen);
    return true;
  };
  uint32_t rows = 1;
  while (rows <= std::min(tokens, context) && add(rows, context)) ++rows;
  // One token takes less once its workgroups have turned from splits to runs.
  for (uint64_t seen = kSpirvSplit; seen < context; seen += kSpirvSplit) {
    add(1, static_cast<uint32_t>(seen));
  }
  return most;
}

Status Ops::SiluMul(gpu::Session& session, const Matrix& gate, const Matrix& up,
                    const Activations& out) {
  constexpr std::string_view kOp = "silu_mul";
  ASSAY_TRY(CheckF32(kOp, "gate", gate));
  ASSAY_TRY(CheckF32(kOp, "up", up));
  ASSAY_TRY(CheckActivations(kOp, "out", out));
  ASSAY_TRY(CheckSameShape(kOp, "up", up.rows, up.cols, "gate", gate.rows, gate.cols));
  ASSAY_TRY(CheckSameShape(kOp, "out", out.rows, out.cols, "gate", gate.rows, gate.cols));
  if (out.format == ActivationFormat::kF32) {
    ASSAY_TRY(CheckApartOrSame(kOp, "gate", gate.view, "out", out.view));
    ASSAY_TRY(CheckApartOrSame(kOp, "up", up.view, "out", out.view));
  } else {
    ASSAY_TRY(CheckApart(kOp, "gate", gate.view, "out", out.view));
    ASSAY_TRY(CheckApart(kOp, "up", up.view, "out", out.view));
  }
  return state_->Encode(session, LaunchSiluMul(gate.rows, gate.cols, out.format),
                        std::array{Read(gate.view), Read(up.view), Write(out.view)});
}

Status Ops::State::Elementwise(gpu::Session& session, bool add, const Matrix& a, const Matrix& b,
                               const Matrix& out) {
  const std::string_view op = add ? "add" : "mul";
  ASSAY_TRY(CheckF32(op, "a", a));
  ASSAY_TRY(CheckF32(op, "b", b));
  ASSAY_TRY(CheckF32(op, "out", out));
  ASSAY_TRY(CheckSameShape(op, "b", b.rows, b.cols, "a", a.rows, a.cols));
  ASSAY_TRY(CheckSameShape(op, "out", out.rows, out.cols, "a", a.rows, a.cols));
  const uint64_t count = uint64_t{a.rows} * a.cols;
  if (count > std::numeric_limits<uint32_t>::max()) {
    return Refuse(op, "a",
                  fmt::format("has {} elements, which pass the limit ({})", count,
                              std::numeric_limits<uint32_t>::max()));
  }
  ASSAY_TRY(CheckApartOrSame(op, "a", a.view, "out", out.view));
  ASSAY_TRY(CheckApartOrSame(op, "b", b.view, "out", out.view));
  const uint32_t n = static_cast<uint32_t>(count);
  return Encode(session, add ? LaunchAdd(n, target) : LaunchMul(n, target),
                std::array{Read(a.view), Read(b.view), Write(out.view)});
}

Status Ops::Add(gpu::Session& session, const Matrix& a, const Matrix& b, const Matrix& out) {
  return state_->Elementwise(session, true, a, b, out);
}

Status Ops::Mul(gpu::Session& session, const Matrix& a, const Matrix& b, const Matrix& out) {
  return state_->Elementwise(session, false, a, b, out);
}

Status Ops::Route(gpu::Session& session, const Matrix& logits, uint32_t used, bool normalise,
                  const gpu::BufferView& expert_ids, const gpu::BufferView& expert_weights) {
  constexpr std::string_view kOp = "route";
  ASSAY_TRY(CheckF32(kOp, "logits", logits));
  if (used == 0 || used > logits.cols) {
    return Refuse(
        kOp, "used",
        fmt::format("({}) is not from 1 to the number of experts ({})", used, logits.cols));
  }
  const uint64_t pairs = uint64_t{logits.rows} * used;
  ASSAY_TRY(CheckView(kOp, "expert_ids", expert_ids, pairs * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckView(kOp, "expert_weights", expert_weights, pairs * sizeof(float), sizeof(float)));
  ASSAY_TRY(CheckApart(kOp, "logits", logits.view, "expert_ids", expert_ids));
  ASSAY_TRY(CheckApart(kOp, "logits", logits.view, "expert_weights", expert_weights));
  ASSAY_TRY(CheckApart(kOp, "expert_ids", expert_ids, "expert_weights", expert_weights));
  ASSAY_TRY(CheckRouted(kOp, logits.cols, state_->target));
  return state_->Encode(session,
                        LaunchRoute(logits.rows, logits.cols, used, normalise, state_->target),
                        std::array{Read(logits.view), Write(expert_ids), Write(expert_weights)});
}

Status Ops::WeightedSum(gpu::Session& session, const Matrix& x,
                        const gpu::BufferView& expert_weights, uint32_t used, const Matrix& out,
                        const gpu::BufferView& residual) {
  constexpr std::string_view kOp = "weighted_sum";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckF32(kOp, "out", out));
  if (used == 0) return Refuse(kOp, "used", "(0) is not at least 1");
  ASSAY_TRY(CheckSize(kOp, "x.rows", x.rows, "out.rows * used", uint64_t{out.rows} * used));
  ASSAY_TRY(CheckSize(kOp, "x.cols", x.cols, "out.cols", out.cols));
  ASSAY_TRY(CheckView(kOp, "expert_weights", expert_weights, uint64_t{x.rows} * sizeof(float),
                      sizeof(float)));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out.view));
  ASSAY_TRY(CheckApart(kOp, "expert_weights", expert_weights, "out", out.view));
  ASSAY_TRY(CheckResidual(kOp, residual, out));
  const Launch launch = LaunchWeightedSum(out.rows, out.cols, used, static_cast<bool>(residual));
  if (!residual) {
    return state_->Encode(session, launch,
                          std::array{Read(x.view), Read(expert_weights), Write(out.view)});
  }
  return state_->Encode(
      session, launch,
      std::array{Read(x.view), Read(expert_weights), Write(out.view), Read(residual)});
}

Status Ops::ArgMax(gpu::Session& session, const Matrix& x, const gpu::BufferView& out) {
  constexpr std::string_view kOp = "argmax";
  ASSAY_TRY(CheckF32(kOp, "x", x));
  ASSAY_TRY(CheckView(kOp, "out", out, x.rows * kInt32Bytes, kInt32Bytes));
  ASSAY_TRY(CheckApart(kOp, "x", x.view, "out", out));
  if (x.cols > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) {
    return Refuse(kOp, "x", fmt::format("has {} columns, which pass the largest int32", x.cols));
  }
  return state_->Encode(session, LaunchArgMax(x.rows, x.cols),
                        std::array{Read(x.view), Write(out)});
}

}  // namespace assay::kernels
