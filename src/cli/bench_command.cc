#include "cli/bench_command.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "assay/record.h"
#include "assay/trace.h"

#include "base/counted.h"
#include "base/text.h"
#include "cli/context_fit.h"
#include "cli/decode_loop.h"
#include "cli/decode_rig.h"
#include "cli/engine_flags.h"
#include "gpu/backend.h"

namespace assay::cli {
namespace {

using llm::TokenId;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kStopped = "Stopped before everything was measured.";

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// One measurement, repeated.
struct Row {
  uint32_t threads = 0;  // Of the host that compute; 0 where a device of its own does.
  std::string kind;      // "load", "prefill", "decode".
  // A repetition's, and those in the cache before it began; none for load.
  std::optional<int64_t> tokens;
  std::optional<int64_t> depth;
  std::vector<double> values;
  // Of one decoded token: as the model encodes it, and as it is issued.
  uint64_t dispatches_encoded = 0;
  uint64_t barriers_encoded = 0;
  uint64_t dispatches = 0;
  uint64_t barriers = 0;
  uint64_t commits = 0;

  // Seconds for load, tokens a second for the others.
  std::string_view unit() const { return kind == "load" ? "s" : "tok/s"; }
};

std::string Shown(std::optional<int64_t> number) { return number ? std::to_string(*number) : "-"; }

// Bytes of memory that the process held at most.
uint64_t PeakRssBytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

class BenchCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override {
    ASSAY_TRY(engine_.Check());
    return CheckNamedOnce("--depth", depths_);
  }
  Result<int> Run(Context& context) override;

 private:
  Status CheckAllFit(const llm::Config& config) const;
  Status BenchThreads(Context& context, const std::shared_ptr<const gguf::File>& file,
                      int64_t threads);
  Status BenchModel(Context& context, const llm::Model& model, uint32_t threads);
  Status Prefill(Context& context, llm::Decoder& decoder, uint32_t vocabulary, Row& row) const;
  Status Decode(Context& context, llm::Decoder& decoder, uint32_t vocabulary, Row& row) const;
  Status CheckCancelled(const Context& context) const;
  void PrintText(Context& context, const gguf::File& file) const;
  void PrintJson(Context& context, const gguf::File& file) const;

  EngineFlags engine_;
  std::vector<int64_t> threads_ = {0};
  std::vector<int64_t> prompt_sizes_ = {512};
  std::vector<int64_t> decode_sizes_ = {128};
  std::vector<int64_t> depths_ = {0};
  int64_t repetitions_ = 5;
  bool json_ = false;
  std::string trace_;

  std::vector<Row> rows_;
};

CommandSpec BenchCommand::Describe() {
  const std::string sizes = "sizes";
  CommandSpec spec{
      .name = "bench",
      .summary = "Measures load, prefill and decode speed.",
      .description =
          "Feeds a fixed sequence of ids, as `assay trace` does, and prints the median, the lowest "
          "and the highest of several repetitions, after one that does not count.",
      .flags = engine_.Flags(),
      .examples = {{"assay bench", "The built-in model on all cores."},
                   {"assay bench -m model.gguf -p 128 -n 32 --depth 0,512 -t 1,2 -r 3 --json",
                    "Two thread counts and two depths, for programs."}},
      .exit_meanings = {{0, "Everything was measured."},
                        {2, "The model was refused or a measurement failed."}},
      .quiet_help = "Prints no progress.",
  };
  const auto add = [&](Flag flag) { spec.flags.push_back(std::move(flag)); };
  add({.names = "-t,--threads",
       .value = IntegerListValue{&threads_, 0, 1024},
       .placeholder = "N,...",
       .help = "Threads of the backend cpu that compute, one run for each; 0 is one for each core. "
               "Without effect on the other backends.",
       .group = "model and device"});
  add(engine_.ScheduleFlag());
  add(engine_.DropBarrierFlag());
  add(engine_.CommitEveryFlag());
  add({.names = "-p,--n-prompt",
       .value = IntegerListValue{&prompt_sizes_, 0, INT32_MAX},
       .placeholder = "N,...",
       .help = "Prompt sizes to prefill; 0 leaves prefill out.",
       .group = sizes});
  add({.names = "-n,--n-gen",
       .value = IntegerListValue{&decode_sizes_, 0, INT32_MAX},
       .placeholder = "N,...",
       .help = "Numbers of tokens to decode one by one; 0 leaves decode out.",
       .group = sizes});
  add({.names = "-d,--depth",
       .value = IntegerListValue{&depths_, 0, INT32_MAX},
       .placeholder = "N,...",
       .help = "Tokens in the cache before each measurement.",
       .group = sizes});
  add({.names = "-r,--repetitions",
       .value = IntegerValue{&repetitions_, 1, 10000},
       .placeholder = "N",
       .help = "Repetitions that count.",
       .group = sizes});
  add({.names = "--json", .value = SwitchValue{&json_}, .help = "Prints one JSON object."});
  add({.names = "--trace",
       .value = TextValue{&trace_},
       .placeholder = "FILE",
       .help = "Records an encode trace of all of it into FILE, to measure what recording costs.",
       .show_default = false});
  return spec;
}

Status BenchCommand::CheckCancelled(const Context& context) const {
  if (!context.cancelled()) return {};
  return Fail(ErrorCode::kCancelled, "", std::string(kStopped));
}

Status BenchCommand::Prefill(Context& context, llm::Decoder& decoder, uint32_t vocabulary,
                             Row& row) const {
  const auto depth = static_cast<size_t>(*row.depth);
  const auto tokens = static_cast<size_t>(*row.tokens);
  const std::vector<TokenId> ids = FixedIds(depth + tokens, vocabulary);
  DecodeLoop loop(&context, &decoder, kStopped);
  for (int64_t repetition = -1; repetition < repetitions_; ++repetition) {
    decoder.Reset();
    ASSAY_TRY(loop.FeedPrompt(std::span(ids).first(depth), depth));
    const Clock::time_point start = Clock::now();
    ASSAY_TRY(loop.Feed(std::span(ids).subspan(depth)));
    const double seconds = Seconds(Clock::now() - start);
    if (repetition >= 0) row.values.push_back(static_cast<double>(tokens) / seconds);
  }
  return {};
}

Status BenchCommand::Decode(Context& context, llm::Decoder& decoder, uint32_t vocabulary,
                            Row& row) const {
  const auto depth = static_cast<size_t>(*row.depth);
  const auto tokens = static_cast<size_t>(*row.tokens);
  const std::vector<TokenId> ids = FixedIds(depth + 1, vocabulary);
  DecodeLoop loop(&context, &decoder, kStopped);
  gpu::Counters before;
  for (int64_t repetition = -1; repetition < repetitions_; ++repetition) {
    decoder.Reset();
    ASSAY_TRY(loop.FeedPrompt(std::span(ids).first(depth), depth));
    before = decoder.counters();
    const Clock::time_point start = Clock::now();
    ASSAY_TRY(loop.Steps(ids.back(), tokens, [&](size_t) { return decoder.Greedy(); }));
    const double seconds = Seconds(Clock::now() - start);
    if (repetition >= 0) row.values.push_back(static_cast<double>(tokens) / seconds);
  }
  // Every token is encoded alike.
  row.dispatches = (decoder.counters().dispatches - before.dispatches) / tokens;
  row.barriers = (decoder.counters().barriers - before.barriers) / tokens;
  row.commits = (decoder.counters().commits - before.commits) / tokens;
  const gpu::PlanReport* const plan = decoder.token_plan();
  row.dispatches_encoded = plan == nullptr ? row.dispatches : plan->dispatches_recorded;
  row.barriers_encoded = plan == nullptr ? row.barriers : plan->barriers_recorded;
  return {};
}

Status BenchCommand::BenchModel(Context& context, const llm::Model& model, uint32_t threads) {
  ASSAY_ASSIGN_OR_RETURN(const auto decoder,
                         MakeDecoder(engine_, model, engine_.decoder_options(), kStopped));
  const uint32_t vocabulary = model.config().vocabulary;
  const std::string on = threads == 0 ? "" : ", " + Counted(threads, "thread");
  for (const int64_t depth : depths_) {
    for (const int64_t tokens : prompt_sizes_) {
      if (tokens == 0) continue;
      Row row{
          .threads = threads, .kind = "prefill", .tokens = tokens, .depth = depth, .values = {}};
      const auto progress =
          context.StartProgress(fmt::format("prefill of {} at depth {}{}", tokens, depth, on));
      ASSAY_TRY(Prefill(context, *decoder, vocabulary, row));
      rows_.push_back(std::move(row));
    }
    for (const int64_t tokens : decode_sizes_) {
      if (tokens == 0) continue;
      Row row{.threads = threads, .kind = "decode", .tokens = tokens, .depth = depth, .values = {}};
      const auto progress =
          context.StartProgress(fmt::format("decode of {} at depth {}{}", tokens, depth, on));
      ASSAY_TRY(Decode(context, *decoder, vocabulary, row));
      rows_.push_back(std::move(row));
    }
  }
  return {};
}

Status BenchCommand::BenchThreads(Context& context, const std::shared_ptr<const gguf::File>& file,
                                  int64_t threads) {
  std::unique_ptr<trace::TraceWriter> writer;
  if (!trace_.empty()) {
    ASSAY_ASSIGN_OR_RETURN(writer, trace::TraceWriter::Create(trace_, {}));
  }
  {
    ASSAY_ASSIGN_OR_RETURN(auto backend, MakeBackend(context, engine_, threads));
    if (writer) backend = record::MakeRecordingBackend(std::move(backend), writer.get());
    ASSAY_ASSIGN_OR_RETURN(const auto device,
                           gpu::Device::Create(std::move(backend), engine_.device_options()));
    const uint32_t computing = device->info().threads;
    Row load{.threads = computing, .kind = "load", .tokens = {}, .depth = {}, .values = {}};
    std::unique_ptr<llm::Model> model;
    for (int64_t repetition = 0; repetition < repetitions_; ++repetition) {
      ASSAY_TRY(CheckCancelled(context));
      model.reset();
      const Clock::time_point start = Clock::now();
      ASSAY_ASSIGN_OR_RETURN(model, LoadModel(context, engine_, device.get(), file));
      load.values.push_back(Seconds(Clock::now() - start));
    }
    rows_.push_back(std::move(load));
    ASSAY_TRY(BenchModel(context, *model, computing));
  }
  return writer ? writer->Close() : Status();
}

void BenchCommand::PrintText(Context& context, const gguf::File& file) const {
  context.Print(fmt::format("{}, {} bytes, backend {}, kv {}, graph {}, barriers {}{}\n",
                            Printable(file.name()), file.size_bytes(), engine_.backend, engine_.kv,
                            engine_.graph, engine_.barriers, engine_.checked ? ", checked" : ""));
  context.Print(fmt::format("{:>7}  {:<8} {:>6} {:>6} {:>10} {:>10} {:>10}\n", "threads", "what",
                            "tokens", "depth", "median", "lowest", "highest"));
  for (const Row& row : rows_) {
    const auto [low, high] = std::minmax_element(row.values.begin(), row.values.end());
    context.Print(fmt::format("{:>7}  {:<8} {:>6} {:>6} {:>10.4g} {:>10.4g} {:>10.4g} {}\n",
                              row.threads == 0 ? "-" : std::to_string(row.threads), row.kind,
                              Shown(row.tokens), Shown(row.depth), Median(row.values), *low, *high,
                              row.unit()));
  }
  // The same at any depth and number of threads.
  const auto decode = std::ranges::find(rows_, "decode", &Row::kind);
  if (decode != rows_.end()) {
    context.Print(fmt::format(
        "a token: {}, {}, {}; as encoded {}, {}\n", Counted(decode->dispatches, "dispatch"),
        Counted(decode->barriers, "barrier"), Counted(decode->commits, "commit"),
        decode->dispatches_encoded, decode->barriers_encoded));
  }
  context.Print(fmt::format("peak memory {:.1f} MiB\n",
                            static_cast<double>(PeakRssBytes()) / (1024.0 * 1024.0)));
}

void BenchCommand::PrintJson(Context& context, const gguf::File& file) const {
  ordered_json json;
  json["model"] = file.name();
  json["model_bytes"] = file.size_bytes();
  json["backend"] = engine_.backend;
  json["kv"] = engine_.kv;
  json["barriers"] = engine_.barriers;
  json["graph"] = engine_.graph;
  json["mmap"] = engine_.mmap;
  json["checked"] = engine_.checked;
  json["rows"] = ordered_json::array();
  for (const Row& row : rows_) {
    ordered_json item;
    item["threads"] = row.threads == 0 ? ordered_json() : ordered_json(row.threads);
    item["what"] = row.kind;
    item["tokens"] = row.tokens ? ordered_json(*row.tokens) : ordered_json();
    item["depth"] = row.depth ? ordered_json(*row.depth) : ordered_json();
    item["unit"] = row.unit();
    item["median"] = Median(row.values);
    item["values"] = row.values;
    if (row.kind == "decode") {
      item["token"] = {{"dispatches", row.dispatches},
                       {"barriers", row.barriers},
                       {"commits", row.commits},
                       {"dispatches_encoded", row.dispatches_encoded},
                       {"barriers_encoded", row.barriers_encoded}};
    }
    json["rows"].push_back(std::move(item));
  }
  json["peak_rss_bytes"] = PeakRssBytes();
  context.Print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

// Before anything is measured, what would fail behind hours of it.
Status BenchCommand::CheckAllFit(const llm::Config& config) const {
  ASSAY_TRY(CheckContext(engine_, config));
  for (const int64_t depth : depths_) {
    for (const int64_t tokens : prompt_sizes_) {
      if (tokens == 0) continue;
      ASSAY_TRY(CheckFits(engine_, config, depth, {tokens, "token", "--n-prompt"}));
    }
    for (const int64_t tokens : decode_sizes_) {
      if (tokens == 0) continue;
      ASSAY_TRY(CheckFits(engine_, config, depth, {tokens, "token", "--n-gen"}));
    }
  }
  return {};
}

Result<int> BenchCommand::Run(Context& context) {
  ASSAY_ASSIGN_OR_RETURN(const auto file, OpenModel(engine_));
  ASSAY_ASSIGN_OR_RETURN(const llm::Config config, llm::ReadConfig(*file));
  ASSAY_TRY(CheckAllFit(config));
  ASSAY_TRY(CheckDropBarrier(context, engine_, file));
  // Elsewhere every number of threads is the same run.
  if (engine_.backend != "cpu") threads_ = {0};
  for (const int64_t threads : threads_) ASSAY_TRY(BenchThreads(context, file, threads));
  if (json_) {
    PrintJson(context, *file);
  } else {
    PrintText(context, *file);
  }
  return kExitOk;
}

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace assay::cli
