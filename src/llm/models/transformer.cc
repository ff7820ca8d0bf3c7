#include "llm/models/transformer.h"

#include <cmath>
#include <initializer_list>

namespace assay::llm {

using kernels::ActivationFormat;
using kernels::Matrix;

Status LayerEncoder::Norm(const gpu::BufferView& weight,
                          std::initializer_list<const Matrix*> readers) {
  bool f32 = false;
  bool q8 = false;
  for (const Matrix* reader : readers) {
    if (reader->rows == 0) continue;
    (ops_.InputFormat(reader->type) == ActivationFormat::kQ8 ? q8 : f32) = true;
  }
  // Both only read x, so they need no barrier between them.
  if (f32)
    ASSAY_TRY(Fixed([&] {
      return ops_.RmsNorm(session_, step_->x, weight, config_.rms_eps, step_->norm.f32);
    }));
  if (q8)
    ASSAY_TRY(Fixed(
        [&] { return ops_.RmsNorm(session_, step_->x, weight, config_.rms_eps, step_->norm.q8); }));
  return Barrier();
}

Status LayerEncoder::KeysAndValues(const LayerWeights& layer, const Matrix& k_cache,
                                   const Matrix& v_cache, uint32_t first_position,
                                   const StepBuffers* queries) {
  const StepBuffers& all = pass_.all;
  ASSAY_TRY(Norm(layer.attn_norm, {&layer.q, &layer.k, &layer.v}));
  if (queries != nullptr) {
    const auto& norm = queries->norm.In(ops_.InputFormat(layer.q.type));
    ASSAY_TRY(Fixed([&] { return ops_.MatMul(session_, layer.q, norm, queries->q); }));
  }
  ASSAY_TRY(Fixed([&] { return ops_.MatMul(session_, layer.k, NormFor(layer.k), all.k); }));
  ASSAY_TRY(Fixed([&] { return ops_.MatMul(session_, layer.v, NormFor(layer.v), all.v); }));
  ASSAY_TRY(Barrier());
  if (queries != nullptr) {
    const uint32_t position = first_position + all.rows - queries->rows;
    ASSAY_TRY(ops_.HeadNormRope(session_, queries->q, config_.head_dim, layer.q_norm,
                                config_.rms_eps, position, config_.rope_base));
  }
  ASSAY_TRY(ops_.HeadNormRope(session_, all.k, config_.head_dim, layer.k_norm, config_.rms_eps,
                              first_position, config_.rope_base));
  ASSAY_TRY(Barrier());
  ASSAY_TRY(ops_.KvAppend(session_, all.k, all.v, first_position, k_cache, v_cache));
  return Barrier();
}

Status LayerEncoder::Attend(const LayerWeights& layer, const Matrix& k_cache, const Matrix& v_cache,
                            uint32_t first_position) {
  const auto& attended = step_->attended.In(ops_.InputFormat(layer.o.type));
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
  const uint32_t position = first_position + pass_.all.rows - step_->rows;
  ASSAY_TRY(ops_.Attention(session_, step_->q, k_cache, v_cache, config_.head_dim, position, scale,
                           attended, step_->room));
  ASSAY_TRY(Barrier());
  ASSAY_TRY(
      Fixed([&] { return ops_.MatMul(session_, layer.o, attended, step_->x, step_->x.view); }));
  return Barrier();
}

Status LayerEncoder::Output(const Weights& weights) {
  const auto& norm = step_->output_norm.In(ops_.InputFormat(weights.output.type));
  ASSAY_TRY(Fixed([&] {
    return ops_.RmsNorm(session_, step_->x, weights.output_norm, config_.rms_eps, norm);
  }));
  ASSAY_TRY(Barrier());
  ASSAY_TRY(Fixed([&] { return ops_.MatMul(session_, weights.output, norm, step_->logits); }));
  ASSAY_TRY(Barrier());
  return Fixed([&] { return ops_.ArgMax(session_, step_->logits, step_->best); });
}

Status LayerEncoder::Encode(const Architecture& architecture, const Weights& weights,
                            const KvCache& cache, uint32_t first_position, bool want_logits) {
  step_ = &pass_.all;
  ASSAY_TRY(
      Fixed([&] { return ops_.Embedding(session_, weights.embedding, step_->ids, step_->x); }));
  ASSAY_TRY(Barrier());
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    const bool last = i + 1 == weights.layers.size();
    const StepBuffers* queries = !last ? &pass_.all : want_logits ? &pass_.last : nullptr;
    ASSAY_TRY(KeysAndValues(layer, cache.k[i], cache.v[i], first_position, queries));
    // Nothing reads the residual stream of a pass whose logits nobody wants.
    if (queries == nullptr) return {};
    step_ = queries;
    ASSAY_TRY(Attend(layer, cache.k[i], cache.v[i], first_position));
    ASSAY_TRY(Norm(layer.ffn_norm, {&layer.router, &layer.gate, &layer.up}));
    ASSAY_TRY(architecture.encode_feed_forward(*this, layer));
  }
  return Output(weights);
}

}  // namespace assay::llm
