#include "cli/export_command.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "assay/trace.h"

#include "base/counted.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/output_paths.h"
#include "cli/perfetto_export.h"

namespace assay::cli {
namespace {

class ExportCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "export",
        .summary = "Writes a trace as events for Perfetto or chrome://tracing.",
        .description =
            "A trace holds no times, so the time that is shown is logical: what runs between two "
            "barriers begins together, each dispatch a step long and on a lane of its own. Arrows "
            "lead from who wrote bytes last to each dispatch or host access that reads them, where "
            "there are many writers of a buffer from the latest; one "
            "between two dispatches that no barrier orders is of the category \"unordered\".\n\n"
            "Open the file at ui.perfetto.dev, which reads it in the browser, or in "
            "chrome://tracing.",
        .positionals = {{.name = "TRACE",
                         .value = TextValue{&path_},
                         .help = "A trace, plain or .zst."}},
        .flags = {{.names = "--perfetto",
                   .value = SwitchValue{&perfetto_},
                   .help = "Writes Chrome trace event JSON. Required, since it names the format."},
                  {.names = "-o,--output",
                   .value = TextValue{&output_},
                   .placeholder = "FILE",
                   .help = "Where to write; - is standard output."},
                  {.names = "--limit",
                   .value = IntegerValue{&limit_, 1, 100'000'000},
                   .placeholder = "N",
                   .help = "Leaves out what comes behind the first N dispatches; viewers grow slow "
                           "with more."},
                  {.names = "--lanes",
                   .value = IntegerValue{&lanes_, 1, 10'000},
                   .placeholder = "N",
                   .help = "Dispatches of one group that are shown at once; further ones follow "
                           "a step later."},
                  {.names = "--arrows",
                   .value = IntegerValue{&arrows_, 0, 1'000'000},
                   .placeholder = "N",
                   .help = "Arrows from the latest writers of a buffer to one that reads it; the "
                           "others are left out and counted."}},
        .examples = {{"assay export --perfetto run.trace -o run.json", "For ui.perfetto.dev."},
                     {"assay export --perfetto run.trace --limit 1000 | gzip > run.json.gz",
                      "The beginning of a long trace."}},
        .exit_meanings = {{kExitOk, "The trace was whole and was written."},
                          {kExitFailed,
                           "It could not be read, or is not whole, or the file could "
                           "not be written; an older file is unchanged."}},
    };
  }

  Status CheckArguments() override {
    if (perfetto_) return CheckOutput("-o", output_, std::array{path_});
    return Fail(ErrorCode::kInvalidArgument, "--perfetto",
                "The format is missing: give --perfetto.");
  }

  Result<int> Run(Context& context) override {
    ASSAY_ASSIGN_OR_RETURN(
        const auto reader,
        trace::TraceReader::Open(path_, {.stop = [&context] { return context.cancelled(); }}));
    std::optional<AtomicFile> file;
    if (output_ != "-") {
      ASSAY_ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::Create(output_));
      file.emplace(std::move(created));
    }
    // Written in blocks, since the events are small.
    constexpr size_t kBlockBytes = size_t{1} << 20;
    std::string block;
    const auto flush = [&]() -> Status {
      if (file) {
        ASSAY_TRY(file->Write(block));
      } else {
        context.Print(block);
      }
      block.clear();
      return {};
    };
    PerfettoExport exporting({.max_dispatches = static_cast<uint64_t>(limit_),
                              .lanes = static_cast<uint32_t>(lanes_),
                              .arrows = static_cast<uint32_t>(arrows_)},
                             [&](std::string_view text) -> Status {
                               block += text;
                               return block.size() < kBlockBytes ? Status() : flush();
                             });
    ASSAY_TRY(exporting.Begin(path_));
    const Progress progress = context.StartProgress("exporting");
    for (;;) {
      ASSAY_ASSIGN_OR_RETURN(const auto event,
                             SayStopped(reader->Next(), "The trace was not exported to its end."));
      if (!event) break;
      if (context.print_failed()) return kExitFailed;
      ASSAY_TRY(exporting.Add(*event, reader->line_number()));
    }
    ASSAY_TRY(exporting.Finish());
    ASSAY_TRY(flush());
    if (file) ASSAY_TRY(file->Commit());
    if (!reader->refusals().empty()) {
      context.Warn(
          "The trace holds buffers without a deterministic place; no arrows lead to them.");
    }
    if (exporting.left_out() > 0) {
      context.Warn(fmt::format("{} of {} {} left out; --limit says how many are written.",
                               exporting.left_out(),
                               Counted(exporting.left_out() + exporting.dispatches(), "dispatch"),
                               exporting.left_out() == 1 ? "was" : "were"));
    }
    if (const uint64_t arrows = exporting.arrows_left_out(); arrows > 0) {
      context.Warn(
          fmt::format("{} {} left out; --arrows says from how many of a buffer's latest "
                      "writers one leads to a reader.",
                      Counted(arrows, "arrow"), arrows == 1 ? "was" : "were"));
    }
    if (file && !context.quiet()) {
      context.Print(fmt::format("{}: {}, {}\n", Printable(output_),
                                Counted(exporting.dispatches(), "dispatch"),
                                Counted(exporting.arrows(), "arrow")));
    }
    return kExitOk;
  }

 private:
  std::string path_;
  std::string output_ = "-";
  bool perfetto_ = false;
  int64_t limit_ = 100'000;
  int64_t lanes_ = 32;
  int64_t arrows_ = 8;
};

}  // namespace

std::unique_ptr<Command> MakeExportCommand() { return std::make_unique<ExportCommand>(); }

}  // namespace assay::cli
