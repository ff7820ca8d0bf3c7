#include "cli/decode_rig.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "assay/record.h"
#include "assay/trace.h"

#include "cli/decode_loop.h"
#include "gpu/schedule/scheduled_backend.h"

namespace assay::cli {

using llm::TokenId;

namespace {

constexpr std::string_view kStopped = "Stopped before every order was tried.";

// Is given the step, from 0, with what it leaves; gives the next id to feed, or a negative one to
// end the decode.
using TakeStep = std::function<TokenId(size_t step, std::span<const float> logits, TokenId best)>;

// Returns the barriers that the last step issued.
Result<uint64_t> Decode(const Context& context, const EngineFlags& flags, const llm::Model& model,
                        const DecodePlan& plan, const TakeStep& take) {
  llm::DecoderOptions options = flags.decoder_options();
  options.drop_barrier = plan.drop_barrier;
  // A command buffer is a pass here, whose barriers are numbered through.
  options.commit_every = 0;
  const auto prompt = static_cast<size_t>(plan.depth);
  // No more cache than it takes: each decode makes one and clears it.
  if (options.context == 0) options.context = static_cast<uint32_t>(plan.depth + plan.steps);
  ASSAY_ASSIGN_OR_RETURN(const auto decoder, MakeDecoder(flags, model, options, kStopped));
  DecodeLoop loop(&context, decoder.get(), kStopped);
  const std::vector<TokenId> ids = FixedIds(prompt + 1, model.config().vocabulary);
  ASSAY_TRY(loop.FeedPrompt(std::span(ids).first(prompt), prompt));
  uint64_t issued = decoder->counters().barriers;
  uint64_t barriers = 0;
  const auto take_step = [&](size_t step) -> Result<TokenId> {
    barriers = decoder->counters().barriers - std::exchange(issued, decoder->counters().barriers);
    ASSAY_ASSIGN_OR_RETURN(const TokenId best, decoder->Greedy());
    ASSAY_ASSIGN_OR_RETURN(const std::span<const float> logits, decoder->Logits());
    return take(step, logits, best);
  };
  ASSAY_TRY(loop.Steps(ids.back(), static_cast<size_t>(plan.steps), take_step));
  return barriers;
}

}  // namespace

std::vector<Flag> DecodePlanFlags(std::vector<int64_t>* depths, int64_t* steps) {
  const std::string group = "decode";
  return {{.names = "--depth",
           .value = IntegerListValue{depths, 0, INT32_MAX},
           .placeholder = "N,...",
           .help = "Tokens of a fixed prompt ahead of the first step.",
           .group = group},
          {.names = "-n,--steps",
           .value = IntegerValue{steps, 1, INT32_MAX},
           .placeholder = "N",
           .help = "Decode steps at each depth.",
           .group = group}};
}

class DecodeRig::ChosenOrder final : public gpu::Arranger {
 public:
  gpu::Arrangement Choose(const gpu::Group& group) override { return choose_(group); }
  bool reports_conflicts() const override { return false; }
  void Set(DecodeRig::Choose choose) { choose_ = std::move(choose); }

 private:
  DecodeRig::Choose choose_;
};

DecodeRig::~DecodeRig() = default;

Result<std::unique_ptr<DecodeRig>> DecodeRig::Create(Context* context, const EngineFlags& flags,
                                                     std::shared_ptr<const gguf::File> file) {
  std::unique_ptr<DecodeRig> rig(new DecodeRig(context, flags));
  rig->flags_.schedule = "recorded";
  rig->order_ = std::make_shared<ChosenOrder>();
  ASSAY_ASSIGN_OR_RETURN(auto backend, MakeBackend(*context, rig->flags_, flags.threads));
  ASSAY_ASSIGN_OR_RETURN(
      rig->device_, gpu::Device::Create(gpu::MakeScheduledBackend(std::move(backend), rig->order_),
                                        flags.device_options()));
  ASSAY_ASSIGN_OR_RETURN(rig->model_,
                         LoadModel(*context, flags, rig->device_.get(), std::move(file)));
  return rig;
}

const gpu::DeviceInfo& DecodeRig::info() const { return device_->info(); }

int64_t DecodeRig::PrefillPasses(int64_t depth) const {
  const int64_t chunk = flags_.decoder_options().prefill_chunk;
  return (depth + chunk - 1) / chunk;
}

Result<Baseline> DecodeRig::RunRecorded(const DecodePlan& plan) {
  Baseline baseline;
  const auto choose = [&](const gpu::Group& group) {
    const size_t size = group.dispatches.size();
    baseline.passes = group.command_buffer;
    baseline.dispatches += size;
    ++baseline.groups;
    if (size > 1) ++baseline.wide_groups;
    baseline.widest_group = std::max<uint64_t>(baseline.widest_group, size);
    return gpu::RecordedArrangement(size);
  };
  ++runs_;
  order_->Set(choose);
  const auto keep = [&](size_t, std::span<const float> logits, TokenId best) {
    baseline.steps.push_back({.logits = {logits.begin(), logits.end()}, .best = best});
    return best;
  };
  ASSAY_ASSIGN_OR_RETURN(baseline.step_barriers, Decode(*context_, flags_, *model_, plan, keep));
  const bool computed = std::ranges::any_of(baseline.steps, [](const StepResult& step) {
    return std::ranges::any_of(step.logits, [](float logit) { return logit != 0; });
  });
  if (computed) return baseline;
  return Fail(ErrorCode::kUnsupported, info().backend,
              fmt::format("All logits on the device \"{}\" are zero, so that no order of the "
                          "dispatches could show; choose a device that computes.",
                          info().name));
}

Result<std::optional<StepDifference>> DecodeRig::Run(const DecodePlan& plan,
                                                     const Baseline& baseline,
                                                     const Choose& choose) {
  std::optional<StepDifference> difference;
  size_t steps = 0;
  ++runs_;
  order_->Set(choose);
  const auto decoded =
      Decode(*context_, flags_, *model_, plan,
             [&](size_t step, std::span<const float> logits, TokenId best) {
               ++steps;
               const StepResult& want = baseline.steps[step];
               if (std::memcmp(logits.data(), want.logits.data(), logits.size_bytes()) == 0 &&
                   best == want.best) {
                 return best;
               }
               difference = StepDifference{.step = static_cast<int64_t>(step) + 1};
               for (size_t i = logits.size(); i-- > 0;) {
                 if (std::memcmp(&logits[i], &want.logits[i], sizeof(float)) == 0) continue;
                 ++difference->logits;
                 difference->first_logit = i;
                 difference->got = logits[i];
                 difference->want = want.logits[i];
               }
               return TokenId{-1};
             });
  if (decoded) return difference;
  // Logits that are all NaN are an error of the decoder's, and a difference here.
  if (decoded.error().code() != ErrorCode::kFormat) return Fail(decoded.error());
  return StepDifference{.step = static_cast<int64_t>(steps) + 1,
                        .logits = baseline.steps[steps].logits.size(),
                        .first_logit = 0,
                        .got = std::numeric_limits<float>::quiet_NaN(),
                        .want = baseline.steps[steps].logits[0]};
}

Status CheckDropBarrier(Context& context, const EngineFlags& flags,
                        std::shared_ptr<const gguf::File> file) {
  if (flags.drop_barrier == 0) return {};
  EngineFlags counted = flags;
  counted.backend = "null";
  counted.schedule = "recorded";
  counted.checked = false;
  ASSAY_ASSIGN_OR_RETURN(auto backend, MakeBackend(context, counted, 1));
  ASSAY_ASSIGN_OR_RETURN(const auto device,
                         gpu::Device::Create(std::move(backend), counted.device_options()));
  ASSAY_ASSIGN_OR_RETURN(const auto model,
                         LoadModel(context, counted, device.get(), std::move(file)));
  ASSAY_ASSIGN_OR_RETURN(const uint64_t barriers,
                         Decode(context, counted, *model, {.depth = 0, .steps = 1},
                                [](size_t, std::span<const float>, TokenId best) { return best; }));
  if (static_cast<uint64_t>(flags.drop_barrier) <= barriers) return {};
  return Fail(ErrorCode::kInvalidArgument, "--drop-barrier",
              fmt::format("Barrier {} cannot be left out: a decode step of this model has {}; give "
                          "a number up to that.",
                          flags.drop_barrier, barriers));
}

Result<std::string> RecordDecode(Context* context, const EngineFlags& flags,
                                 std::shared_ptr<const gguf::File> file, const DecodePlan& plan) {
  std::string text;
  ASSAY_ASSIGN_OR_RETURN(const auto writer, trace::TraceWriter::CreateInMemory(&text, {}));
  {
    ASSAY_ASSIGN_OR_RETURN(auto backend, MakeBackend(*context, flags, flags.threads));
    ASSAY_ASSIGN_OR_RETURN(
        const auto device,
        gpu::Device::Create(record::MakeRecordingBackend(std::move(backend), writer.get()),
                            flags.device_options()));
    ASSAY_ASSIGN_OR_RETURN(const auto model,
                           LoadModel(*context, flags, device.get(), std::move(file)));
    const auto progress = context->StartProgress("recording a decode");
    ASSAY_TRY(Decode(*context, flags, *model, plan,
                     [](size_t, std::span<const float>, TokenId best) { return best; }));
  }
  ASSAY_TRY(writer->Close());
  return text;
}

}  // namespace assay::cli
