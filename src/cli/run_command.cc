#include "cli/run_command.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/counted.h"
#include "base/file.h"
#include "cli/context_fit.h"
#include "cli/decode_loop.h"
#include "cli/decode_rig.h"
#include "cli/engine_flags.h"
#include "cli/run_report.h"
#include "cli/standard_input.h"
#include "gpu/backend.h"
#include "llm/tokenizer/utf8_streamer.h"

namespace assay::cli {
namespace {

using llm::TokenId;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Ids of the prompt that are fed at once where the processor plays the GPU, or shares its memory
// with it: the dispatch that runs when the user wants to stop is waited for, and one over a whole
// chunk takes seconds there.
constexpr size_t kSlowPiece = 64;
constexpr std::string_view kStopped = "Stopped before the text was complete.";

class RunCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override;
  Result<int> Run(Context& context) override;

 private:
  Result<std::string> PromptText(const Context& context) const;
  Result<std::vector<TokenId>> PromptIds(const Context& context,
                                         const llm::Tokenizer& tokenizer) const;
  Status Generate(Context& context, const llm::Tokenizer& tokenizer, llm::Decoder& decoder,
                  Generation& generation);
  Status DecodeTokens(Context& context, const llm::Tokenizer& tokenizer, llm::Decoder& decoder,
                      llm::Sampler& sampler, Generation& generation);
  Status FeedPrompt(Context& context, llm::Decoder& decoder, Generation& generation) const;
  // Streams the ids as text, in whole characters, or with --ids as numbers.
  Status Show(Context& context, const llm::Tokenizer& tokenizer, std::span<const TokenId> ids,
              bool first);
  // Ends the command after its text or its object, which holds the error already.
  Result<int> EndWith(Context& context, const Error& error) const;

  EngineFlags engine_;
  std::string prompt_;
  std::string prompt_file_;
  std::vector<int64_t> prompt_ids_;
  bool prompt_given_ = false;
  bool prompt_ids_given_ = false;
  int64_t predict_ = 128;
  bool predict_given_ = false;
  int64_t seed_ = 0;
  double temperature_ = 0;
  int64_t top_k_ = 0;
  double top_p_ = 1;
  double min_p_ = 0;
  bool ids_ = false;
  bool json_ = false;
  bool ignore_eos_ = false;
  bool no_display_prompt_ = false;

  llm::Utf8Streamer streamer_;
};

CommandSpec RunCommand::Describe() {
  const std::string prompt = "prompt";
  const std::string sampling = "sampling";
  const std::string output = "output";
  CommandSpec spec{
      .name = "run",
      .summary = "Continues a text with a model.",
      .description =
          "Prints the prompt and what the model continues it with, token by token. The "
          "same model, prompt, flags and seed give the same text on any number of "
          "threads. Without -m the built-in model is used: it tells old tales and "
          "knows nothing else.",
      .flags = engine_.Flags(),
      .examples = {{"assay run -p \"Once upon a time\"", "A tale by the built-in model."},
                   {"assay run -m model.gguf -f question.txt -n 256 --temp 0.7 --seed 1",
                    "A sampled text, the same each time."},
                   {"assay run --prompt-ids 49,1757,606 -n 16 --ids",
                    "Token ids in, token ids out."}},
      .exit_meanings = {{0, "The text is complete."},
                        {2,
                         "The model, the prompt or the device was refused or failed, or the "
                         "context was full before -n tokens were there."}},
      .quiet_help = "Prints no timings and no progress.",
  };
  const auto add = [&](Flag flag) { spec.flags.push_back(std::move(flag)); };
  add(engine_.ThreadsFlag());
  add(engine_.ScheduleFlag());
  add(engine_.DropBarrierFlag());
  add(engine_.CommitEveryFlag());
  add({.names = "-p,--prompt",
       .value = TextValue{&prompt_, /*may_be_empty=*/true},
       .placeholder = "TEXT",
       .help = "The text to continue. Texts of control tokens, such as <|im_start|>, become those "
               "tokens.",
       .given = &prompt_given_,
       .show_default = false,
       .group = prompt});
  add({.names = "-f,--file",
       .value = TextValue{&prompt_file_},
       .placeholder = "FILE",
       .help = "Reads the prompt from a file, or with - from standard input, without its final "
               "newline.",
       .show_default = false,
       .group = prompt});
  add({.names = "--prompt-ids",
       .value = IntegerListValue{&prompt_ids_, 0, INT32_MAX},
       .placeholder = "ID,...",
       .help = "The prompt as token ids.",
       .given = &prompt_ids_given_,
       .show_default = false,
       .group = prompt});
  add({.names = "-n,--predict",
       .value = IntegerValue{&predict_, -1, INT32_MAX},
       .placeholder = "N",
       .help = "Tokens to generate at most; -1 goes on to the end of the text or of the context.",
       .given = &predict_given_});
  add({.names = "--ignore-eos",
       .value = SwitchValue{&ignore_eos_},
       .help = "Goes on past end-of-text tokens."});
  add({.names = "--temp",
       .value = RealValue{&temperature_, 0, 100},
       .placeholder = "T",
       .help = "Temperature; 0 takes the likeliest token each time.",
       .group = sampling});
  add({.names = "--top-k",
       .value = IntegerValue{&top_k_, 0, INT32_MAX},
       .placeholder = "K",
       .help = "Samples from the K likeliest tokens; 0 is all.",
       .group = sampling});
  add({.names = "--top-p",
       .value = RealValue{&top_p_, 0.001, 1},
       .placeholder = "P",
       .help = "Samples from the fewest tokens whose probabilities sum to P.",
       .group = sampling});
  add({.names = "--min-p",
       .value = RealValue{&min_p_, 0, 1},
       .placeholder = "P",
       .help = "Leaves out tokens less likely than P times the likeliest.",
       .group = sampling});
  add({.names = "-s,--seed",
       .value = IntegerValue{&seed_, 0, INT64_MAX},
       .placeholder = "N",
       .help = "Seed of the sampling.",
       .group = sampling});
  add({.names = "--ids",
       .value = SwitchValue{&ids_},
       .help = "Prints the generated token ids, separated by commas, instead of text.",
       .group = output});
  add({.names = "--json",
       .value = SwitchValue{&json_},
       .help = "Prints one JSON object at the end: prompt and generated ids, text, why it ended, a "
               "digest of the logits of every step, timings; what was not measured is null.",
       .group = output});
  add({.names = "--no-display-prompt",
       .value = SwitchValue{&no_display_prompt_},
       .help = "Prints only what the model adds.",
       .group = output});
  return spec;
}

Status RunCommand::CheckArguments() {
  ASSAY_TRY(engine_.Check());
  const int given = int{prompt_given_} + int{!prompt_file_.empty()} + int{prompt_ids_given_};
  if (given != 1) {
    return Fail(ErrorCode::kInvalidArgument, "--prompt",
                given == 0 ? "There is no prompt: give one with -p, -f or --prompt-ids."
                           : "-p, -f and --prompt-ids exclude each other: give one of them.");
  }
  if (!engine_.computes()) {
    return Fail(ErrorCode::kInvalidArgument, "--backend",
                "Backend null computes nothing, so there is no text to print; use --backend cpu. "
                "`assay trace` and `assay bench` take null, to show what encoding does and costs.");
  }
  if (ids_ && json_) {
    return Fail(ErrorCode::kInvalidArgument, "--json", "--ids and --json exclude each other.");
  }
  return {};
}

Result<std::string> RunCommand::PromptText(const Context& context) const {
  if (prompt_given_) return prompt_;
  // More than any context holds.
  constexpr uint64_t kMaxPromptBytes = uint64_t{16} << 20;
  std::string text;
  if (prompt_file_ == "-") {
    ASSAY_ASSIGN_OR_RETURN(text, ReadToEnd(context, STDIN_FILENO, kMaxPromptBytes));
  } else {
    ASSAY_ASSIGN_OR_RETURN(text, ReadFile(prompt_file_, kMaxPromptBytes));
  }
  // Editors end a file with it; the writer of the prompt rarely means it.
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<std::vector<TokenId>> RunCommand::PromptIds(const Context& context,
                                                   const llm::Tokenizer& tokenizer) const {
  std::vector<TokenId> ids;
  if (prompt_ids_given_) {
    for (const int64_t id : prompt_ids_) ids.push_back(static_cast<TokenId>(id));
    return ids;
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string text, PromptText(context));
  ASSAY_ASSIGN_OR_RETURN(ids, tokenizer.Encode(text, /*parse_special=*/true));
  if (ids.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "--prompt",
                "The prompt holds no text; give at least one character.");
  }
  // A model that was trained on texts that begin with it says so in its file.
  const std::optional<TokenId> begin = tokenizer.begin_of_text();
  if (begin && ids.front() != *begin) ids.insert(ids.begin(), *begin);
  return ids;
}

Status RunCommand::Show(Context& context, const llm::Tokenizer& tokenizer,
                        std::span<const TokenId> ids, bool first) {
  if (json_) return {};
  if (ids_) {
    context.Print(fmt::format("{}{}", first ? "" : ",", fmt::join(ids, ",")));
  } else {
    ASSAY_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids));
    context.Print(streamer_.Push(text));
  }
  context.Flush();
  return {};
}

Status RunCommand::FeedPrompt(Context& context, llm::Decoder& decoder,
                              Generation& generation) const {
  auto progress = context.StartProgress("reading the prompt", generation.prompt.size(), "tokens");
  return DecodeLoop(&context, &decoder, kStopped)
      .FeedPrompt(generation.prompt, generation.piece, [&](size_t done) { progress.Update(done); });
}

Status RunCommand::Generate(Context& context, const llm::Tokenizer& tokenizer,
                            llm::Decoder& decoder, Generation& generation) {
  ASSAY_ASSIGN_OR_RETURN(llm::Sampler sampler,
                         llm::Sampler::Create({.temperature = static_cast<float>(temperature_),
                                               .top_k = static_cast<uint32_t>(top_k_),
                                               .top_p = static_cast<float>(top_p_),
                                               .min_p = static_cast<float>(min_p_),
                                               .seed = static_cast<uint64_t>(seed_)}));
  const Clock::time_point start = Clock::now();
  ASSAY_TRY(FeedPrompt(context, decoder, generation));
  const Clock::time_point fed = Clock::now();
  generation.timings.prompt_s = Seconds(fed - start);
  Status decoded = DecodeTokens(context, tokenizer, decoder, sampler, generation);
  if (!generation.ids.empty()) generation.timings.decode_s = Seconds(Clock::now() - fed);
  return decoded;
}

Status RunCommand::DecodeTokens(Context& context, const llm::Tokenizer& tokenizer,
                                llm::Decoder& decoder, llm::Sampler& sampler,
                                Generation& generation) {
  const size_t wanted = predict_ < 0 ? SIZE_MAX : static_cast<size_t>(predict_);
  while (generation.ids.size() < wanted) {
    if (context.cancelled() || context.print_failed()) {
      return Fail(ErrorCode::kCancelled, "", std::string(kStopped));
    }
    if (json_) {
      ASSAY_ASSIGN_OR_RETURN(const std::span<const float> logits, decoder.Logits());
      generation.logits.Update(std::as_bytes(logits));
      generation.logits_seen = true;
    }
    TokenId id = 0;
    if (temperature_ == 0) {
      ASSAY_ASSIGN_OR_RETURN(id, decoder.Greedy());
    } else {
      ASSAY_ASSIGN_OR_RETURN(const std::span<const float> logits, decoder.Logits());
      id = sampler.Sample(logits);
    }
    if (!ignore_eos_ && tokenizer.IsEndOfText(id)) {
      generation.stop = Stop::kEndOfText;
      break;
    }
    ASSAY_TRY(Show(context, tokenizer, {&id, 1}, generation.ids.empty()));
    generation.ids.push_back(id);
    if (generation.ids.size() == wanted) break;
    if (decoder.position() == decoder.context()) {
      generation.stop = Stop::kContext;
      break;
    }
    ASSAY_TRY(DecodeLoop(&context, &decoder, kStopped).Feed({&id, 1}));
    ++generation.decode_passes;
  }
  return {};
}

Result<int> RunCommand::EndWith(Context& context, const Error& error) const {
  if (!json_) return Fail(error);
  context.PrintError(error.ToString());
  return context.cancelled() ? 128 + context.stop_signal() : kExitFailed;
}

Result<int> RunCommand::Run(Context& context) {
  const Clock::time_point start = Clock::now();
  ASSAY_ASSIGN_OR_RETURN(const auto file, OpenModel(engine_));
  ASSAY_ASSIGN_OR_RETURN(const llm::Config config, llm::ReadConfig(*file));
  ASSAY_TRY(CheckContext(engine_, config));
  ASSAY_ASSIGN_OR_RETURN(const auto tokenizer, llm::Tokenizer::FromGguf(*file));
  Generation generation;
  ASSAY_ASSIGN_OR_RETURN(generation.prompt, PromptIds(context, *tokenizer));
  ASSAY_TRY(CheckDropBarrier(context, engine_, file));
  ASSAY_ASSIGN_OR_RETURN(auto backend, MakeBackend(context, engine_, engine_.threads));
  ASSAY_ASSIGN_OR_RETURN(const auto device,
                         gpu::Device::Create(std::move(backend), engine_.device_options()));
  ASSAY_ASSIGN_OR_RETURN(const auto model, LoadModel(context, engine_, device.get(), file));
  ASSAY_ASSIGN_OR_RETURN(const auto decoder,
                         MakeDecoder(engine_, *model, engine_.decoder_options(), kStopped));
  generation.timings.load_s = Seconds(Clock::now() - start);

  // Before any text is shown.
  generation.piece = engine_.decoder_options().prefill_chunk;
  if (device->info().backend == "vulkan" && device->info().host_visible) {
    generation.piece = kSlowPiece;
  }
  if (generation.prompt.size() > decoder->context()) {
    return Fail(ErrorCode::kInvalidArgument, "--prompt",
                fmt::format("The prompt is {} long and the context holds {}; shorten the "
                            "prompt{}.",
                            Counted(generation.prompt.size(), "token"), decoder->context(),
                            ContextAdvice(decoder->context(), generation.prompt.size(), config)));
  }
  if (!no_display_prompt_ && !ids_) {
    ASSAY_TRY(Show(context, *tokenizer, generation.prompt, true));
  }
  Status whole = Generate(context, *tokenizer, *decoder, generation);
  if (!whole && whole.error().code() != ErrorCode::kCancelled) return Fail(whole.error());
  if (!whole) generation.stop = Stop::kCancelled;
  if (generation.stop == Stop::kContext && predict_given_ && predict_ >= 0) {
    whole =
        Fail(ErrorCode::kInvalidArgument, "--ctx",
             fmt::format("The context of {} is full after {} of {}; ask for "
                         "fewer (-n){}.",
                         Counted(decoder->context(), "position"), generation.ids.size(),
                         Counted(static_cast<uint64_t>(predict_), "token"),
                         ContextAdvice(decoder->context(),
                                       generation.prompt.size() + static_cast<uint64_t>(predict_),
                                       config)));
  }
  if (json_) {
    ASSAY_ASSIGN_OR_RETURN(const std::string text, tokenizer->Decode(generation.ids));
    context.Print(FormatRunJson(generation, text, whole));
  } else {
    context.Print(streamer_.Finish() + "\n");
  }
  context.Flush();
  if (generation.stop == Stop::kCancelled) return EndWith(context, whole.error());
  context.Note(FormatRunNote(generation));
  if (!whole) return EndWith(context, whole.error());
  return kExitOk;
}

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace assay::cli
