// DecodeRig: a model on a device whose order of dispatches can be chosen anew for each decode, for
// the commands that look for a difference between two orders.
#ifndef ASSAY_CLI_DECODE_RIG_H_
#define ASSAY_CLI_DECODE_RIG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/llm.h"

#include "cli/context.h"
#include "cli/engine_flags.h"
#include "gpu/schedule/arranger.h"

namespace assay::cli {

// A decode of fixed ids (FixedIds): `depth` of them at once, then one a step, then each step's
// likeliest next one.
struct DecodePlan {
  int64_t depth = 0;
  int64_t steps = 1;
  uint64_t drop_barrier = 0;  // Of every pass, from 1; 0: none.
};

// --depth and --steps, which write into the targets.
std::vector<Flag> DecodePlanFlags(std::vector<int64_t>* depths, int64_t* steps);

// What a step leaves: the logits and the id that the device took from them.
struct StepResult {
  std::vector<float> logits;
  llm::TokenId best = 0;
};

// What a decode in recorded order, one dispatch after another, leaves and consists of.
struct Baseline {
  std::vector<StepResult> steps;
  uint64_t passes = 0;  // Command buffers.
  uint64_t dispatches = 0;
  uint64_t groups = 0;
  uint64_t wide_groups = 0;  // Of more than one dispatch.
  uint64_t widest_group = 0;
  uint64_t step_barriers = 0;  // That the last step issued.
};

// Where a decode first differed from its baseline.
struct StepDifference {
  int64_t step = 0;   // From 1.
  size_t logits = 0;  // How many differ; 0 when only the id does.
  size_t first_logit = 0;
  float got = 0;
  float want = 0;
};

// One thread. Each decode has a cache of its own, so that it finds fresh memory: what a dispatch
// that runs too early reads is the same on every run.
class DecodeRig final {
 public:
  using Choose = std::function<gpu::Arrangement(const gpu::Group& group)>;

  // Loads the model. `context` is borrowed; decodes end with kCancelled when the user asks to stop.
  static Result<std::unique_ptr<DecodeRig>> Create(Context* context, const EngineFlags& flags,
                                                   std::shared_ptr<const gguf::File> file);
  DecodeRig(const DecodeRig&) = delete;
  DecodeRig& operator=(const DecodeRig&) = delete;
  ~DecodeRig();

  // Of the device without the schedule, whatever `flags` says of one.
  const gpu::DeviceInfo& info() const;
  // The passes that a prompt of `depth` takes.
  int64_t PrefillPasses(int64_t depth) const;

  // Errors: kUnsupported where the device computes nothing, so that no order could show.
  Result<Baseline> RunRecorded(const DecodePlan& plan);
  // Decodes the same ids with every group arranged by `choose`, up to the first step that differs
  // in any bit; nullopt when none does. Conflicts are not reported.
  Result<std::optional<StepDifference>> Run(const DecodePlan& plan, const Baseline& baseline,
                                            const Choose& choose);
  // Decodes, so far.
  uint64_t runs() const { return runs_; }

 private:
  class ChosenOrder;
  DecodeRig(Context* context, const EngineFlags& flags) : context_(context), flags_(flags) {}

  Context* context_;
  EngineFlags flags_;
  std::shared_ptr<ChosenOrder> order_;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<llm::Model> model_;
  uint64_t runs_ = 0;
};

// Error kInvalidArgument when --drop-barrier names a barrier that a decode step of the model does
// not have, so that nothing would be left out. Counts them on a device that runs nothing.
Status CheckDropBarrier(Context& context, const EngineFlags& flags,
                        std::shared_ptr<const gguf::File> file);

// The trace of such a decode, from the load of the weights to the release of the last buffer, on a
// device of its own.
Result<std::string> RecordDecode(Context* context, const EngineFlags& flags,
                                 std::shared_ptr<const gguf::File> file, const DecodePlan& plan);

}  // namespace assay::cli

#endif  // ASSAY_CLI_DECODE_RIG_H_
