#include "llm/models/qwen3_moe.h"

#include "llm/config.h"
#include "llm/models/transformer.h"

namespace assay::llm {
namespace {

Status ReadKeys(const ConfigReader& reader, Config& config) {
  ASSAY_ASSIGN_OR_RETURN(config.experts, reader.Count("expert_count", 1, kMaxExperts));
  ASSAY_ASSIGN_OR_RETURN(config.experts_used, reader.Count("expert_used_count", 1, config.experts));
  ASSAY_ASSIGN_OR_RETURN(config.feed_forward,
                         reader.Count("expert_feed_forward_length", 1, kMaxFeedForward));
  return {};
}

void Plan(const Config& config, const std::string& prefix, LayerWeights& layer,
          std::vector<TensorSlot>& slots) {
  const uint64_t hidden = config.hidden;
  const uint64_t wide = config.feed_forward;
  const uint64_t experts = config.experts;
  slots.push_back(
      {.name = prefix + "ffn_gate_inp.weight", .dims = {hidden, experts}, .matrix = &layer.router});
  slots.push_back({.name = prefix + "ffn_gate_exps.weight",
                   .dims = {hidden, wide, experts},
                   .matrix = &layer.gate});
  slots.push_back({.name = prefix + "ffn_up_exps.weight",
                   .dims = {hidden, wide, experts},
                   .matrix = &layer.up});
  slots.push_back({.name = prefix + "ffn_down_exps.weight",
                   .dims = {wide, hidden, experts},
                   .matrix = &layer.down});
}

Status Encode(LayerEncoder& encoder, const LayerWeights& layer) {
  const StepBuffers& step = encoder.step();
  kernels::Ops& ops = encoder.ops();
  gpu::Session& session = encoder.session();
  const uint32_t experts = encoder.config().experts;
  const uint32_t used = encoder.config().experts_used;
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.MatMul(session, layer.router, encoder.NormFor(layer.router), step.router);
  }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.Route(session, step.router, used, /*normalise=*/true, step.expert_ids,
                     step.expert_weights);
  }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.MatMulByExpert(session, layer.gate, experts, step.expert_ids,
                              encoder.NormFor(layer.gate), step.gate);
  }));
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.MatMulByExpert(session, layer.up, experts, step.expert_ids,
                              encoder.NormFor(layer.up), step.up);
  }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed(
      [&] { return ops.SiluMul(session, step.gate, step.up, encoder.GatedFor(layer.down)); }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.MatMulByExpert(session, layer.down, experts, step.expert_ids,
                              encoder.GatedFor(layer.down), step.expert_out);
  }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.WeightedSum(session, step.expert_out, step.expert_weights, used, step.x,
                           step.x.view);
  }));
  return encoder.Barrier();
}

}  // namespace

constexpr Architecture kQwen3Moe = {
    .name = "qwen3moe",
    .read_config = ReadKeys,
    .plan_feed_forward = Plan,
    .encode_feed_forward = Encode,
};

}  // namespace assay::llm
