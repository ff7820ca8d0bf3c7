// One sequence: feeding ids through the model in chunks, and the logits of the last one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "assay/llm.h"

#include "llm/memory_need.h"
#include "llm/model_state.h"
#include "llm/models/transformer.h"

namespace assay::llm {
namespace {

// Rows of a pass times the experts used by each stay far below 2^32.
constexpr uint32_t kMaxPrefillChunk = 65536;
// Shapes of passes that a decoder remembers. Those of single tokens, with and without logits, are
// two.
constexpr size_t kMostPlans = 8;
// Where the device runs while the host encodes on. Of the some three hundred dispatches of a pass,
// few enough that the device is never without work, and many enough that submitting costs little.
constexpr uint32_t kCommitEvery = 64;

}  // namespace

// Passes of one shape: the graph of the last one, and how to run it.
struct PlannedPass {
  uint32_t rows = 0;
  bool want_logits = false;
  gpu::Graph graph;
  gpu::GraphPlan plan;
};

struct Decoder::State {
  const Model::State* model = nullptr;
  std::unique_ptr<kernels::Ops> ops;
  std::unique_ptr<gpu::Session> session;
  KvCache cache;
  std::unique_ptr<Scratch> scratch;
  PassBuffers one;  // The views of a pass over one token, which decoding repeats.
  uint32_t context = 0;
  uint32_t position = 0;
  bool graph = false;
  // The most recently used one last.
  std::vector<std::unique_ptr<PlannedPass>> planned;
  bool has_logits = false;
  // The logits on the host, filled at the first question after a pass.
  std::vector<float> logits;
  bool logits_read = false;

  Status Check(std::span<const TokenId> ids) const;
  Status Pass(std::span<const TokenId> ids, uint32_t first_position, bool want_logits);
  Status Encode(const PassBuffers& pass, uint32_t first_position, bool want_logits,
                bool place_barriers, bool positions_only = false);
  Status EncodePlanned(const PassBuffers& pass, uint32_t first_position, bool want_logits);
  Result<PlannedPass*> PlanFor(const PassBuffers& pass, bool want_logits);
  Status Run(const PassBuffers& pass, std::span<const TokenId> ids, uint32_t first_position,
             bool want_logits);
  Status RequireLogits() const;
  // The error of logits that are all NaN.
  Error NoNumber() const;
  // True when the newest row of `rows`, keys or values of the cache, holds a NaN or an infinity.
  Result<bool> NewestIsBroken(const kernels::Matrix& rows) const;
};

Status Decoder::State::Check(std::span<const TokenId> ids) const {
  if (ids.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "", "There are no ids to feed; give at least one.");
  }
  const auto vocabulary = static_cast<TokenId>(model->config.vocabulary);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      return Fail(ErrorCode::kInvalidArgument, "",
                  fmt::format("Id {} (number {}) is outside the vocabulary of {}.", ids[i], i + 1,
                              vocabulary));
    }
  }
  if (ids.size() > context - position) {
    return Fail(ErrorCode::kInvalidArgument, "",
                fmt::format("{} ids after position {} need a context of {}; this one holds {}.",
                            ids.size(), position, position + ids.size(), context));
  }
  return {};
}

Status Decoder::State::Encode(const PassBuffers& pass, uint32_t first_position, bool want_logits,
                              bool place_barriers, bool positions_only) {
  LayerEncoder encoder(*session, *ops, model->config, pass, place_barriers, positions_only);
  return encoder.Encode(*model->architecture, model->weights, cache, first_position, want_logits);
}

Result<PlannedPass*> Decoder::State::PlanFor(const PassBuffers& pass, bool want_logits) {
  const auto known = std::ranges::find_if(planned, [&](const auto& shape) {
    return shape->rows == pass.all.rows && shape->want_logits == want_logits;
  });
  if (known != planned.end()) {
    std::rotate(known, known + 1, planned.end());
    return planned.back().get();
  }
  // The first position, the last one, and where attention turns to other parts: what they bind
  // spans what every pass between them binds.
  std::vector<uint32_t> positions = {0};
  for (const uint32_t seen : {scratch->attention_turn(), context}) {
    if (seen > positions.back() + pass.all.rows) positions.push_back(seen - pass.all.rows);
  }
  std::vector<gpu::Graph> samples(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    ASSAY_TRY(session->BeginCapture());
    ASSAY_TRY(Encode(pass, positions[i], want_logits, /*place_barriers=*/true));
    ASSAY_ASSIGN_OR_RETURN(samples[i], session->EndCapture());
  }
  auto made = std::make_unique<PlannedPass>();
  made->rows = pass.all.rows;
  made->want_logits = want_logits;
  std::vector<const gpu::Graph*> spanned;
  for (const gpu::Graph& sample : samples) spanned.push_back(&sample);
  const gpu::PlanOptions options{.fusions = kernels::FusionRules(model->device->info()),
                                 .scratch = scratch->Dead()};
  ASSAY_ASSIGN_OR_RETURN(made->plan, gpu::GraphPlan::Create(*model->device, spanned, options));
  made->graph = std::move(samples[0]);
  // The plan of single tokens, which decoding comes back to, stays.
  if (planned.size() == kMostPlans) {
    planned.erase(
        std::ranges::find_if(planned, [](const auto& shape) { return shape->rows != 1; }));
  }
  planned.push_back(std::move(made));
  return planned.back().get();
}

Status Decoder::State::EncodePlanned(const PassBuffers& pass, uint32_t first_position,
                                     bool want_logits) {
  auto found = PlanFor(pass, want_logits);
  if (!found) {
    return Fail(std::move(found).error().While(
        fmt::format("planning a pass over {} tokens", pass.all.rows)));
  }
  PlannedPass& shape = **found;
  ASSAY_TRY(session->BeginRecapture(std::move(shape.graph)));
  ASSAY_TRY(Encode(pass, first_position, want_logits, /*place_barriers=*/false,
                   /*positions_only=*/true));
  ASSAY_ASSIGN_OR_RETURN(shape.graph, session->EndCapture());
  return session->Replay(shape.graph, shape.plan);
}

Status Decoder::State::Run(const PassBuffers& pass, std::span<const TokenId> ids,
                           uint32_t first_position, bool want_logits) {
  ASSAY_TRY(model->device->Write(pass.all.ids, std::as_bytes(ids)));
  if (graph) {
    ASSAY_TRY(EncodePlanned(pass, first_position, want_logits));
  } else {
    ASSAY_TRY(Encode(pass, first_position, want_logits,
                     session->barrier_mode() == gpu::BarrierMode::kManual));
  }
  ASSAY_TRY(session->Commit());
  return session->Wait();
}

Status Decoder::State::Pass(std::span<const TokenId> ids, uint32_t first_position,
                            bool want_logits) {
  Status status;
  if (ids.size() == 1) {
    status = Run(one, ids, first_position, want_logits);
  } else {
    ASSAY_ASSIGN_OR_RETURN(const PassBuffers pass, scratch->Cut(static_cast<uint32_t>(ids.size())));
    status = Run(pass, ids, first_position, want_logits);
  }
  if (status) return {};
  // What was encoded before the failure must not run with a later pass, and what was committed has
  // to end before the host writes the ids of another. The first error is the one to tell.
  session->Reset();
  (void)session->Wait();
  return status;
}

Status Decoder::State::RequireLogits() const {
  if (has_logits) return {};
  return Fail(ErrorCode::kInvalidArgument, "",
              "There are no logits before the first id has been fed.");
}

Result<bool> Decoder::State::NewestIsBroken(const kernels::Matrix& rows) const {
  const bool half = rows.type == kernels::DType::kF16;
  const uint64_t row_bytes = uint64_t{rows.cols} * (half ? sizeof(uint16_t) : sizeof(uint32_t));
  ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView newest,
                         rows.view.Slice((position - 1) * row_bytes, row_bytes));
  const auto broken = [&](auto all_ones_exponent) -> Result<bool> {
    std::vector<decltype(all_ones_exponent)> bits(rows.cols);
    ASSAY_TRY(model->device->Read(newest, std::as_writable_bytes(std::span(bits))));
    return std::ranges::any_of(
        bits, [&](auto value) { return (value & all_ones_exponent) == all_ones_exponent; });
  };
  return half ? broken(uint16_t{0x7C00}) : broken(uint32_t{0x7F800000});
}

Error Decoder::State::NoNumber() const {
  // The cache still holds what each layer made of its input at this position.
  const auto first_broken = [&]() -> Result<size_t> {
    for (size_t i = 0; i < cache.k.size(); ++i) {
      ASSAY_ASSIGN_OR_RETURN(const bool keys, NewestIsBroken(cache.k[i]));
      ASSAY_ASSIGN_OR_RETURN(const bool values, NewestIsBroken(cache.v[i]));
      if (keys || values) return i;
    }
    return cache.k.size();
  };
  const Result<size_t> found = first_broken();
  if (!found) return found.error();
  const size_t layer = *found;
  const std::string where =
      layer == cache.k.size()
          ? fmt::format(
                "the keys and values of every layer are finite, so it comes from layer {} "
                "behind its attention's input, or from the output's weights",
                layer - 1)
          : fmt::format(
                "the first keys or values that are not finite are those of layer {}, so it "
                "comes from {} or from the keys and values of layer {}",
                layer, layer == 0 ? "the embedding" : fmt::format("layer {}", layer - 1), layer);
  return Error(ErrorCode::kFormat, "logits",
               fmt::format("Each of the {} logits after position {} is NaN; {}. The model's file "
                           "holds values that are no numbers, or too large for this arithmetic: "
                           "try keys and values in f32, or another file.",
                           logits.size(), position - 1, where));
}

Decoder::Decoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Decoder::~Decoder() = default;
uint32_t Decoder::position() const { return state_->position; }
uint32_t Decoder::context() const { return state_->context; }
const gpu::Counters& Decoder::counters() const { return state_->session->counters(); }

const gpu::PlanReport* Decoder::token_plan() const {
  for (const auto& one : state_->planned) {
    if (one->rows == 1 && one->want_logits) return &one->plan.report();
  }
  return nullptr;
}

uint32_t CommitEvery(const DecoderOptions& options, const gpu::DeviceInfo& device) {
  const bool parts = device.overlaps_encoding && options.drop_barrier == 0;
  return options.commit_every.value_or(parts ? kCommitEvery : 0);
}

Result<std::unique_ptr<Decoder>> Decoder::Create(const Model* model,
                                                 const DecoderOptions& options) {
  const Model::State& from = model->state();
  if (options.context > from.config.context) {
    return Fail(ErrorCode::kInvalidArgument, "",
                fmt::format("A context of {} is longer than the model's ({}).", options.context,
                            from.config.context));
  }
  if (options.prefill_chunk < 1 || options.prefill_chunk > kMaxPrefillChunk) {
    return Fail(ErrorCode::kInvalidArgument, "",
                fmt::format("The prefill chunk is {}; it must be between 1 and {}.",
                            options.prefill_chunk, kMaxPrefillChunk));
  }
  auto state = std::make_unique<State>();
  state->model = &from;
  state->graph = options.graph;
  state->context = options.context > 0 ? options.context : from.config.context;
  const uint32_t chunk = std::min(options.prefill_chunk, state->context);
  ASSAY_ASSIGN_OR_RETURN(
      state->ops,
      kernels::Ops::Create(from.device, {.cooperative_matrix = options.cooperative_matrix}));
  ASSAY_ASSIGN_OR_RETURN(
      state->session,
      from.device->CreateSession({.barriers = options.barriers,
                                  .drop_barrier = options.drop_barrier,
                                  .commit_every = CommitEvery(options, from.device->info())}));
  ASSAY_ASSIGN_OR_RETURN(const uint64_t cache_bytes,
                         KvCacheBytes(from.config, options.kv, state->context));
  const MemoryNeed need(*from.device,
                        fmt::format("The keys and values of {} positions in {}", state->context,
                                    options.kv == KvType::kF16 ? "f16" : "f32"),
                        cache_bytes);
  ASSAY_TRY(need.Check());
  auto cache = CreateKvCache(*from.device, from.config, options.kv, state->context);
  if (!cache) {
    Error error = need.Explain(std::move(cache).error().While(
        fmt::format("making the cache of {} positions", state->context)));
    // A buffer is larger than the device takes any.
    if (error.code() != ErrorCode::kUnsupported) return Fail(std::move(error));
    return Fail(std::move(error).Add("Ask for fewer positions."));
  }
  state->cache = std::move(*cache);
  auto scratch =
      Scratch::Create(*from.device, *state->ops, from.config, from.weights, chunk, state->context);
  if (!scratch) {
    return Fail(need.Explain(std::move(scratch).error().While("making the work space")));
  }
  state->scratch = std::make_unique<Scratch>(std::move(*scratch));
  ASSAY_ASSIGN_OR_RETURN(state->one, state->scratch->Cut(1));
  state->logits.resize(from.config.vocabulary);
  return std::unique_ptr<Decoder>(new Decoder(std::move(state)));
}

Status Decoder::Feed(std::span<const TokenId> ids) {
  ASSAY_TRY(state_->Check(ids));
  uint32_t position = state_->position;
  while (!ids.empty()) {
    const size_t count = std::min<size_t>(ids.size(), state_->scratch->max_rows());
    const bool last = count == ids.size();
    // Rows of the cache past `position` are rewritten before anything reads them, so a failed pass
    // leaves nothing behind but the lost logits.
    if (last) state_->has_logits = false;
    ASSAY_TRY_WHILE(state_->Pass(ids.first(count), position, last),
                    fmt::format("feeding positions {} to {}", position, position + count - 1));
    position += static_cast<uint32_t>(count);
    ids = ids.subspan(count);
  }
  state_->position = position;
  state_->has_logits = true;
  state_->logits_read = false;
  return {};
}

Result<std::span<const float>> Decoder::Logits() {
  ASSAY_TRY(state_->RequireLogits());
  if (!state_->logits_read) {
    ASSAY_TRY(state_->model->device->Read(state_->one.all.logits.view,
                                          std::as_writable_bytes(std::span(state_->logits))));
    if (std::ranges::all_of(state_->logits, [](float logit) { return std::isnan(logit); })) {
      return Fail(state_->NoNumber());
    }
    state_->logits_read = true;
  }
  return std::span<const float>(state_->logits);
}

Result<TokenId> Decoder::Greedy() {
  ASSAY_TRY(state_->RequireLogits());
  TokenId best = 0;
  ASSAY_TRY(state_->model->device->Read(state_->one.all.best,
                                        std::as_writable_bytes(std::span(&best, 1))));
  if (best < 0) return Fail(state_->NoNumber());
  return best;
}

void Decoder::Reset() {
  state_->position = 0;
  state_->has_logits = false;
}

}  // namespace assay::llm
