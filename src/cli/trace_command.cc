#include "cli/trace_command.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "assay/record.h"
#include "assay/trace.h"

#include "base/counted.h"
#include "base/text.h"
#include "cli/context_fit.h"
#include "cli/decode_loop.h"
#include "cli/decode_rig.h"
#include "cli/engine_flags.h"
#include "cli/kernel_scan.h"
#include "cli/runner.h"
#include "gpu/backend.h"
#include "prove/evidence.h"

namespace assay::cli {
namespace {

using llm::TokenId;
using prove::EvidenceFacts;
using prove::EvidenceWriter;
using prove::IdSequence;

constexpr std::string_view kStopped = "Stopped before the recording was complete.";

class TraceCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override;
  Result<int> Run(Context& context) override;

 private:
  std::map<std::string, std::string> Meta(int64_t depth, const llm::Config& config,
                                          const std::string& model_digest,
                                          const gpu::DeviceInfo& device) const;
  EvidenceFacts Facts(const std::string& model_digest, const gpu::DeviceInfo& device) const;
  // Records one trace, from the load to the release of the last buffer, and returns the ids.
  Result<IdSequence> Record(Context& context, std::unique_ptr<gpu::Backend> backend,
                            std::shared_ptr<const gguf::File> file, const std::string& path,
                            int64_t depth, const trace::WriterOptions& options) const;
  Result<IdSequence> Decode(Context& context, llm::Decoder& decoder, uint32_t vocabulary,
                            int64_t depth) const;

  EngineFlags engine_;
  std::string folder_;
  std::vector<int64_t> depths_ = {0, 600};
  int64_t steps_ = 8;
  int64_t trace_version_ = trace::kCurrentVersion;
  bool zst_ = false;
  bool force_ = false;
};

CommandSpec TraceCommand::Describe() {
  const std::string recording = "recording";
  CommandSpec spec{
      .name = "trace",
      .summary = "Records the encode trace of decode steps into a folder.",
      .description =
          "Writes one trace for each depth, the ids that were generated, and a manifest that is "
          "written last: a folder without it is not whole. Each trace holds everything from the "
          "load of the weights to the release of the last buffer. A depth is the number of tokens "
          "of a fixed prompt that are in the cache before the first recorded step; each step feeds "
          "one token and takes the likeliest next one.\n\n"
          "The same program, model and flags write the same bytes on any number of threads and "
          "loaders. `assay compare` proves it.",
      .flags = engine_.Flags(),
      .examples = {{"assay trace -o a --loaders 4",
                    "Records the built-in model at depths 0 and "
                    "600."},
                   {"assay trace -m model.gguf -o b --depth 0,100 --steps 4 --zst",
                    "Records another model, compressed."}},
      .exit_meanings = {{0, "The folder is whole."},
                        {2,
                         "The model or the folder was refused, or recording failed; no folder "
                         "is left that could be taken for whole."}},
      .quiet_help = "Prints no summary and no progress.",
  };
  const auto add = [&](Flag flag) { spec.flags.push_back(std::move(flag)); };
  add(engine_.ThreadsFlag());
  add(engine_.ScheduleFlag());
  add(engine_.DropBarrierFlag());
  add(engine_.CommitEveryFlag());
  add({.names = "-o,--output",
       .value = TextValue{&folder_},
       .placeholder = "DIR",
       .help = "The folder to write. It must not exist or be empty, unless --force is given.",
       .show_default = false,
       .group = recording});
  add({.names = "--depth",
       .value = IntegerListValue{&depths_, 0, INT32_MAX},
       .placeholder = "N,...",
       .help = "Tokens in the cache before the first recorded step; one trace for each.",
       .group = recording});
  add({.names = "-n,--steps",
       .value = IntegerValue{&steps_, 1, INT32_MAX},
       .placeholder = "N",
       .help = "Decode steps at each depth.",
       .group = recording});
  add({.names = "--trace-version",
       .value = IntegerValue{&trace_version_, trace::kCreationOrderVersion, trace::kCurrentVersion},
       .placeholder = "V",
       .help = "1 numbers buffers in order of creation, which several loaders change from run to "
               "run: it proves nothing and is there to show that.",
       .group = recording});
  add({.names = "--zst",
       .value = SwitchValue{&zst_},
       .help = "Compresses the traces with zstd.",
       .group = recording});
  add({.names = "--force",
       .value = SwitchValue{&force_},
       .help = "Replaces the evidence that is in the folder, once the new recording is whole.",
       .group = recording});
  return spec;
}

Status TraceCommand::CheckArguments() {
  ASSAY_TRY(engine_.Check());
  if (folder_.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "--output",
                "There is no folder to write: give one with -o.");
  }
  std::sort(depths_.begin(), depths_.end());
  return CheckNamedOnce("--depth", depths_);
}

std::map<std::string, std::string> TraceCommand::Meta(int64_t depth, const llm::Config& config,
                                                      const std::string& model_digest,
                                                      const gpu::DeviceInfo& device) const {
  const llm::DecoderOptions options = engine_.decoder_options();
  const uint32_t positions = options.context > 0 ? options.context : config.context;
  std::map<std::string, std::string> meta = {
      {"backend", engine_.backend},
      {"barriers", engine_.barriers},
      {"context", fmt::format("{}", positions)},
      {"depth", fmt::format("{}", depth)},
      {"graph", engine_.graph},
      {"kv", engine_.kv},
      {"model-digest", model_digest},
      {"prefill-chunk", fmt::format("{}", options.prefill_chunk)},
      {"steps", fmt::format("{}", steps_)},
      {"weights", engine_.mmap ? "mapped" : "read"},
  };
  if (engine_.cooperative_matrix) meta["cooperative-matrix"] = "on";
  if (engine_.drop_barrier != 0) meta["drop-barrier"] = fmt::format("{}", engine_.drop_barrier);
  // As it is, given or not: it parts what is committed.
  if (const uint32_t every = llm::CommitEvery(options, device); every != 0) {
    meta["commit-every"] = fmt::format("{}", every);
  }
  return meta;
}

EvidenceFacts TraceCommand::Facts(const std::string& model_digest,
                                  const gpu::DeviceInfo& device) const {
  EvidenceFacts facts;
  facts.tool_version = Version();
  facts.command = "assay trace";
  facts.trace_version = static_cast<int>(trace_version_);
  facts.command_options = {
      {"backend", engine_.backend},
      {"barriers", engine_.barriers},
      {"checked", engine_.checked ? "true" : "false"},
      {"ctx", fmt::format("{}", engine_.context)},
      {"graph", engine_.graph},
      {"kv", engine_.kv},
      {"loaders", fmt::format("{}", engine_.loaders)},
      {"mmap", engine_.mmap ? "true" : "false"},
      {"schedule", engine_.schedule},
      {"threads", fmt::format("{}", engine_.threads)},
  };
  if (engine_.backend == "vulkan") {
    facts.command_options["commit-every"] =
        fmt::format("{}", llm::CommitEvery(engine_.decoder_options(), device));
    facts.command_options["device"] = device.name;
    facts.command_options["kernels"] = engine_.kernels;
    facts.command_options["vulkan-disable"] =
        engine_.vulkan_disable.empty() ? "none" : engine_.vulkan_disable;
  }
  facts.model_digest = model_digest;
  facts.steps = steps_;
  return facts;
}

Result<IdSequence> TraceCommand::Decode(Context& context, llm::Decoder& decoder,
                                        uint32_t vocabulary, int64_t depth) const {
  const auto prompt_size = static_cast<size_t>(depth);
  const std::vector<TokenId> fixed = FixedIds(prompt_size + 1, vocabulary);
  const size_t chunk = engine_.decoder_options().prefill_chunk;
  auto progress = context.StartProgress(fmt::format("recording depth {}", depth),
                                        prompt_size + static_cast<uint64_t>(steps_), "tokens");
  DecodeLoop loop(&context, &decoder, kStopped);
  ASSAY_TRY(loop.FeedPrompt(std::span(fixed).first(prompt_size), chunk,
                            [&](size_t done) { progress.Update(done); }));
  IdSequence sequence{.depth = depth, .ids = {}};
  const auto take = [&](size_t) -> Result<TokenId> {
    ASSAY_ASSIGN_OR_RETURN(const TokenId id, decoder.Greedy());
    sequence.ids.push_back(id);
    progress.Update(decoder.position());
    return id;
  };
  ASSAY_TRY(loop.Steps(fixed.back(), static_cast<size_t>(steps_), take));
  return sequence;
}

Result<IdSequence> TraceCommand::Record(Context& context, std::unique_ptr<gpu::Backend> backend,
                                        std::shared_ptr<const gguf::File> file,
                                        const std::string& path, int64_t depth,
                                        const trace::WriterOptions& options) const {
  ASSAY_ASSIGN_OR_RETURN(const auto writer, trace::TraceWriter::Create(path, options));
  IdSequence sequence;
  {
    ASSAY_ASSIGN_OR_RETURN(
        const auto device,
        gpu::Device::Create(record::MakeRecordingBackend(std::move(backend), writer.get()),
                            engine_.device_options()));
    ASSAY_ASSIGN_OR_RETURN(const auto model,
                           LoadModel(context, engine_, device.get(), std::move(file)));
    ASSAY_ASSIGN_OR_RETURN(const auto decoder,
                           MakeDecoder(engine_, *model, engine_.decoder_options(), kStopped));
    ASSAY_ASSIGN_OR_RETURN(sequence, Decode(context, *decoder, model->config().vocabulary, depth));
  }
  // Only now: the frees of the last buffers belong to the trace.
  ASSAY_TRY(writer->Close());
  return sequence;
}

Result<int> TraceCommand::Run(Context& context) {
  ASSAY_ASSIGN_OR_RETURN(const auto file, OpenModel(engine_));
  ASSAY_ASSIGN_OR_RETURN(const llm::Config config, llm::ReadConfig(*file));
  ASSAY_TRY(CheckFits(engine_, config, depths_.back(), StepsAfter(steps_)));
  ASSAY_TRY(CheckDropBarrier(context, engine_, file));
  ASSAY_ASSIGN_OR_RETURN(auto backend, MakeBackend(context, engine_, engine_.threads));
  const gpu::DeviceInfo info = backend->info();
  ASSAY_ASSIGN_OR_RETURN(const std::string model_digest, ModelDigest(context, engine_));
  ASSAY_ASSIGN_OR_RETURN(EvidenceWriter evidence, EvidenceWriter::Create(folder_, force_));
  std::vector<IdSequence> sequences;
  for (const int64_t depth : depths_) {
    trace::WriterOptions options;
    options.version = static_cast<int>(trace_version_);
    options.meta = Meta(depth, config, model_digest, info);
    const std::string path = evidence.TracePath(depth, zst_);
    // The first depth takes the one that has said what it is.
    if (backend == nullptr) {
      ASSAY_ASSIGN_OR_RETURN(backend, MakeBackend(context, engine_, engine_.threads));
    }
    auto sequence = Record(context, std::move(backend), file, path, depth, options);
    if (!sequence) {
      if (sequence.error().code() == ErrorCode::kCancelled) return Fail(sequence.error());
      return Fail(std::move(sequence).error().While(fmt::format("recording depth {}", depth)));
    }
    sequences.push_back(std::move(*sequence));
    if (!context.quiet()) {
      const std::string ids = !engine_.computes()
                                  ? "no ids: backend null computes nothing"
                                  : fmt::format("ids {}", fmt::join(sequences.back().ids, ","));
      context.Print(fmt::format("{}: {} at depth {}, {}\n",
                                Printable(evidence.FinalTracePath(depth)),
                                Counted(static_cast<uint64_t>(steps_), "step"), depth, ids));
      context.Flush();
    }
  }
  EvidenceFacts facts = Facts(model_digest, info);
  if (!engine_.computes()) {
    // Zeros that would be equal to any other zeros.
    sequences.clear();
    facts.steps = 0;
  }
  ASSAY_TRY(evidence.Finish(facts, sequences, ScanBackend(engine_.backend)));
  return kExitOk;
}

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace assay::cli
