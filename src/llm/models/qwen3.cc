#include "llm/models/qwen3.h"

#include "llm/config.h"
#include "llm/models/transformer.h"

namespace assay::llm {
namespace {

Status ReadKeys(const ConfigReader& reader, Config& config) {
  ASSAY_ASSIGN_OR_RETURN(config.feed_forward,
                         reader.Count("feed_forward_length", 1, kMaxFeedForward));
  return {};
}

void Plan(const Config& config, const std::string& prefix, LayerWeights& layer,
          std::vector<TensorSlot>& slots) {
  const uint64_t hidden = config.hidden;
  const uint64_t wide = config.feed_forward;
  slots.push_back(
      {.name = prefix + "ffn_gate.weight", .dims = {hidden, wide}, .matrix = &layer.gate});
  slots.push_back({.name = prefix + "ffn_up.weight", .dims = {hidden, wide}, .matrix = &layer.up});
  slots.push_back(
      {.name = prefix + "ffn_down.weight", .dims = {wide, hidden}, .matrix = &layer.down});
}

Status Encode(LayerEncoder& encoder, const LayerWeights& layer) {
  const StepBuffers& step = encoder.step();
  kernels::Ops& ops = encoder.ops();
  gpu::Session& session = encoder.session();
  ASSAY_TRY(encoder.Fixed(
      [&] { return ops.MatMul(session, layer.gate, encoder.NormFor(layer.gate), step.gate); }));
  ASSAY_TRY(encoder.Fixed(
      [&] { return ops.MatMul(session, layer.up, encoder.NormFor(layer.up), step.up); }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed(
      [&] { return ops.SiluMul(session, step.gate, step.up, encoder.GatedFor(layer.down)); }));
  ASSAY_TRY(encoder.Barrier());
  ASSAY_TRY(encoder.Fixed([&] {
    return ops.MatMul(session, layer.down, encoder.GatedFor(layer.down), step.x, step.x.view);
  }));
  return encoder.Barrier();
}

}  // namespace

constexpr Architecture kQwen3 = {
    .name = "qwen3",
    .read_config = ReadKeys,
    .plan_feed_forward = Plan,
    .encode_feed_forward = Encode,
};

}  // namespace assay::llm
