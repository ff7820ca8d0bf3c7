#include <algorithm>

#include <fmt/format.h>

#include "llm/models/transformer.h"

namespace assay::llm {
namespace {

using kernels::ActivationFormat;
using kernels::Activations;
using kernels::Matrix;

// Which formats the readers of one intermediate result want.
struct Formats {
  bool f32 = false;
  bool q8 = false;
  void Add(const kernels::Ops& ops, const Matrix& weights) {
    if (weights.rows == 0) return;
    (ops.InputFormat(weights.type) == ActivationFormat::kQ8 ? q8 : f32) = true;
  }
};

// Makes the buffers of the work space, each labelled with what it holds.
class Allocator {
 public:
  explicit Allocator(gpu::Device& device) : device_(device) {}

  Result<gpu::BufferView> Bytes(std::string_view label, BufferKind kind, uint64_t size) {
    ASSAY_ASSIGN_OR_RETURN(
        const gpu::Buffer buffer,
        device_.CreateBuffer(
            {.size_bytes = size, .kind = kind, .label = std::string(label), .digest = {}}));
    return buffer.All();
  }

  Result<Matrix> F32(std::string_view label, BufferKind kind, uint32_t rows, uint32_t cols) {
    ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView view,
                           Bytes(label, kind, uint64_t{rows} * cols * sizeof(float)));
    return Matrix{.view = view, .type = kernels::DType::kF32, .rows = rows, .cols = cols};
  }

  Result<FormattedRows> Rows(std::string_view label, Formats formats, uint32_t rows,
                             uint32_t cols) {
    FormattedRows made;
    if (formats.f32) {
      ASSAY_ASSIGN_OR_RETURN(made.f32, One(label, ActivationFormat::kF32, rows, cols));
    }
    if (formats.q8) {
      ASSAY_ASSIGN_OR_RETURN(made.q8,
                             One(fmt::format("{}.q8", label), ActivationFormat::kQ8, rows, cols));
    }
    return made;
  }

 private:
  Result<Activations> One(std::string_view label, ActivationFormat format, uint32_t rows,
                          uint32_t cols) {
    ASSAY_ASSIGN_OR_RETURN(
        const gpu::BufferView view,
        Bytes(label, BufferKind::kActivation, kernels::ActivationBytes(format, rows, cols)));
    return Activations{.view = view, .format = format, .rows = rows, .cols = cols};
  }

  gpu::Device& device_;
};

// `rows` rows of what has more.
Result<Matrix> Head(const Matrix& whole, uint32_t rows) {
  if (whole.rows == 0) return whole;
  Matrix cut = whole;
  cut.rows = rows;
  ASSAY_ASSIGN_OR_RETURN(cut.view,
                         whole.view.Slice(0, uint64_t{rows} * whole.cols * sizeof(float)));
  return cut;
}

Result<Activations> Head(const Activations& whole, uint32_t rows) {
  if (whole.rows == 0) return whole;
  Activations cut = whole;
  cut.rows = rows;
  ASSAY_ASSIGN_OR_RETURN(
      cut.view, whole.view.Slice(0, kernels::ActivationBytes(whole.format, rows, whole.cols)));
  return cut;
}

Result<FormattedRows> Head(const FormattedRows& whole, uint32_t rows) {
  FormattedRows cut;
  ASSAY_ASSIGN_OR_RETURN(cut.f32, Head(whole.f32, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.q8, Head(whole.q8, rows));
  return cut;
}

Result<gpu::BufferView> Head(const gpu::BufferView& whole, uint64_t bytes) {
  if (!whole) return whole;
  return whole.Slice(0, bytes);
}

Result<Matrix> LastRow(const Matrix& whole) {
  Matrix row = whole;
  row.rows = 1;
  const uint64_t bytes = uint64_t{whole.cols} * sizeof(float);
  ASSAY_ASSIGN_OR_RETURN(row.view, whole.view.Slice((whole.rows - 1) * bytes, bytes));
  return row;
}

Result<Activations> LastRow(const Activations& whole) {
  if (whole.rows == 0) return whole;
  Activations row = whole;
  row.rows = 1;
  const uint64_t bytes = kernels::ActivationBytes(whole.format, 1, whole.cols);
  ASSAY_ASSIGN_OR_RETURN(row.view, whole.view.Slice((whole.rows - 1) * bytes, bytes));
  return row;
}

kernels::DType DTypeOf(KvType type) {
  return type == KvType::kF16 ? kernels::DType::kF16 : kernels::DType::kF32;
}

}  // namespace

Result<Scratch> Scratch::Create(gpu::Device& device, const kernels::Ops& ops, const Config& config,
                                const Weights& weights, uint32_t max_rows, uint32_t context) {
  Formats norm;
  Formats attended;
  Formats gated;
  for (const LayerWeights& layer : weights.layers) {
    for (const Matrix* reader :
         {&layer.q, &layer.k, &layer.v, &layer.router, &layer.gate, &layer.up}) {
      norm.Add(ops, *reader);
    }
    attended.Add(ops, layer.o);
    gated.Add(ops, layer.down);
  }
  Formats output;
  output.Add(ops, weights.output);

  const uint32_t q_dim = config.heads * config.head_dim;
  const uint32_t kv_dim = config.kv_heads * config.head_dim;
  const uint32_t fan = std::max(1U, config.experts_used);
  constexpr auto kActivation = BufferKind::kActivation;
  constexpr auto kScratch = BufferKind::kScratch;
  Allocator make(device);
  Scratch scratch;
  StepBuffers& max = scratch.max_;
  max.rows = max_rows;
  ASSAY_ASSIGN_OR_RETURN(
      max.ids, make.Bytes("ids", BufferKind::kHost, uint64_t{max_rows} * sizeof(int32_t)));
  ASSAY_ASSIGN_OR_RETURN(max.x, make.F32("x", kActivation, max_rows, config.hidden));
  ASSAY_ASSIGN_OR_RETURN(max.norm, make.Rows("norm", norm, max_rows, config.hidden));
  ASSAY_ASSIGN_OR_RETURN(max.q, make.F32("q", kActivation, max_rows, q_dim));
  ASSAY_ASSIGN_OR_RETURN(max.k, make.F32("k", kActivation, max_rows, kv_dim));
  ASSAY_ASSIGN_OR_RETURN(max.v, make.F32("v", kActivation, max_rows, kv_dim));
  ASSAY_ASSIGN_OR_RETURN(max.attended, make.Rows("attended", attended, max_rows, q_dim));
  const kernels::AttentionRoomBytes room =
      ops.RoomForAttention(max_rows, config.heads, config.kv_heads, config.head_dim, context);
  scratch.attention_turn_ = room.turn;
  if (room.partials > 0) {
    ASSAY_ASSIGN_OR_RETURN(max.room.partials,
                           make.Bytes("attention_partials", kScratch, room.partials));
    ASSAY_ASSIGN_OR_RETURN(max.room.counters,
                           make.Bytes("attention_counters", kScratch, room.counters));
    // They are zeros already; written, so that whoever reads a trace knows it.
    ASSAY_TRY(device.Write(max.room.counters, std::vector<std::byte>(room.counters)));
  }
  const uint32_t wide_rows = max_rows * fan;
  ASSAY_ASSIGN_OR_RETURN(max.gate, make.F32("gate", kActivation, wide_rows, config.feed_forward));
  ASSAY_ASSIGN_OR_RETURN(max.up, make.F32("up", kActivation, wide_rows, config.feed_forward));
  ASSAY_ASSIGN_OR_RETURN(max.gated, make.Rows("gated", gated, wide_rows, config.feed_forward));
  if (config.experts > 0) {
    ASSAY_ASSIGN_OR_RETURN(max.router, make.F32("router", kActivation, max_rows, config.experts));
    const uint64_t pair_bytes = uint64_t{wide_rows} * sizeof(float);
    ASSAY_ASSIGN_OR_RETURN(max.expert_ids, make.Bytes("expert_ids", kScratch, pair_bytes));
    ASSAY_ASSIGN_OR_RETURN(max.expert_weights, make.Bytes("expert_weights", kScratch, pair_bytes));
    ASSAY_ASSIGN_OR_RETURN(max.expert_out,
                           make.F32("expert_out", kActivation, wide_rows, config.hidden));
  }
  ASSAY_ASSIGN_OR_RETURN(max.output_norm, make.Rows("output_norm", output, 1, config.hidden));
  ASSAY_ASSIGN_OR_RETURN(max.logits, make.F32("logits", BufferKind::kHost, 1, config.vocabulary));
  ASSAY_ASSIGN_OR_RETURN(max.best, make.Bytes("best", BufferKind::kHost, sizeof(int32_t)));
  return scratch;
}

Result<StepBuffers> Scratch::CutRows(uint32_t rows) const {
  StepBuffers cut = max_;
  const uint32_t fan = max_.gate.rows / max_.rows;
  const uint64_t pair_bytes = uint64_t{rows} * fan * sizeof(float);
  cut.rows = rows;
  ASSAY_ASSIGN_OR_RETURN(cut.ids, Head(max_.ids, uint64_t{rows} * sizeof(int32_t)));
  ASSAY_ASSIGN_OR_RETURN(cut.x, Head(max_.x, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.norm, Head(max_.norm, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.q, Head(max_.q, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.k, Head(max_.k, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.v, Head(max_.v, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.attended, Head(max_.attended, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.gate, Head(max_.gate, rows * fan));
  ASSAY_ASSIGN_OR_RETURN(cut.up, Head(max_.up, rows * fan));
  ASSAY_ASSIGN_OR_RETURN(cut.gated, Head(max_.gated, rows * fan));
  ASSAY_ASSIGN_OR_RETURN(cut.router, Head(max_.router, rows));
  ASSAY_ASSIGN_OR_RETURN(cut.expert_ids, Head(max_.expert_ids, pair_bytes));
  ASSAY_ASSIGN_OR_RETURN(cut.expert_weights, Head(max_.expert_weights, pair_bytes));
  ASSAY_ASSIGN_OR_RETURN(cut.expert_out, Head(max_.expert_out, rows * fan));
  return cut;
}

Result<PassBuffers> Scratch::Cut(uint32_t rows) const {
  PassBuffers pass;
  ASSAY_ASSIGN_OR_RETURN(pass.all, CutRows(rows));
  ASSAY_ASSIGN_OR_RETURN(pass.last, CutRows(1));
  ASSAY_ASSIGN_OR_RETURN(pass.last.x, LastRow(pass.all.x));
  ASSAY_ASSIGN_OR_RETURN(pass.last.norm.f32, LastRow(pass.all.norm.f32));
  ASSAY_ASSIGN_OR_RETURN(pass.last.norm.q8, LastRow(pass.all.norm.q8));
  return pass;
}

std::vector<gpu::BufferView> Scratch::Dead() const {
  std::vector<gpu::BufferView> dead;
  for (const gpu::BufferView* view :
       {&max_.x.view, &max_.norm.f32.view, &max_.norm.q8.view, &max_.q.view, &max_.k.view,
        &max_.v.view, &max_.attended.f32.view, &max_.attended.q8.view, &max_.router.view,
        &max_.expert_ids, &max_.expert_weights, &max_.gate.view, &max_.up.view,
        &max_.gated.f32.view, &max_.gated.q8.view, &max_.expert_out.view,
        &max_.output_norm.f32.view, &max_.output_norm.q8.view, &max_.room.partials}) {
    if (*view) dead.push_back(*view);
  }
  return dead;
}

Result<uint64_t> KvCacheBytes(const Config& config, KvType type, uint32_t context) {
  ASSAY_ASSIGN_OR_RETURN(const uint64_t row_bytes,
                         kernels::RowBytes(DTypeOf(type), config.kv_heads * config.head_dim));
  return row_bytes * context * config.layers * 2;
}

Result<KvCache> CreateKvCache(gpu::Device& device, const Config& config, KvType type,
                              uint32_t context) {
  const kernels::DType dtype = DTypeOf(type);
  const uint32_t kv_dim = config.kv_heads * config.head_dim;
  ASSAY_ASSIGN_OR_RETURN(const uint64_t row_bytes, kernels::RowBytes(dtype, kv_dim));
  const uint64_t most = device.info().max_binding_bytes;
  if (most > 0 && row_bytes * context > most) {
    return Fail(
        ErrorCode::kUnsupported, "cache",
        fmt::format("The keys of a layer take {} bytes for {} positions, and the device "
                    "\"{}\" binds {} bytes at most, which are {} positions.",
                    row_bytes * context, context, device.info().name, most, most / row_bytes));
  }
  KvCache cache;
  cache.k.reserve(config.layers);
  cache.v.reserve(config.layers);
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    for (auto* side : {&cache.k, &cache.v}) {
      ASSAY_ASSIGN_OR_RETURN(
          const gpu::Buffer buffer,
          device.CreateBuffer(
              {.size_bytes = row_bytes * context,
               .kind = BufferKind::kKv,
               .label = fmt::format("{}_cache.{}", side == &cache.k ? "k" : "v", layer),
               .digest = {}}));
      side->push_back({.view = buffer.All(), .type = dtype, .rows = context, .cols = kv_dim});
    }
  }
  return cache;
}

}  // namespace assay::llm
