#include "cli/counts_command.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/output_paths.h"
#include "prove/counts.h"

namespace assay::cli {
namespace {

class CountsCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "counts",
        .summary = "Counts what a token costs: dispatches, barriers, bytes bound, commits.",
        .description =
            "Reads a trace, or each trace of a folder of evidence. A token is what is committed "
            "between two waits; counted are the decode steps that the trace says it holds, at its "
            "end, or all where it does not say. Bytes bound are those of all accesses of all "
            "dispatches.\n\n"
            "With --check a count that rose over the file is status 1: a gate that needs no second "
            "build.",
        .positionals = {{.name = "PATH",
                         .value = TextValue{&path_},
                         .help = "A trace (plain or .zst) or a folder of evidence."}},
        .flags = {{.names = "--check",
                   .value = TextValue{&check_},
                   .placeholder = "FILE",
                   .help = "Holds the counts against those in FILE.",
                   .show_default = false},
                  {.names = "--update",
                   .value = SwitchValue{&update_},
                   .help = "Writes the counts to the file of --check instead."},
                  {.names = "--json",
                   .value = SwitchValue{&json_},
                   .help = "Prints the counts as they stand in such a file."}},
        .examples = {{"assay counts run.trace", "What a token of run.trace costs."},
                     {"assay counts --check counts.json out", "Fails when a count rose."}},
        .exit_meanings = {{kExitOk, "Counted; with --check: nothing rose."},
                          {kExitDifferent, "With --check: something rose."},
                          {kExitFailed,
                           "Refused or unreadable, or the file is about other traces."}},
        .quiet_help = "Prints nothing but errors.",
    };
  }

  Status CheckArguments() override {
    if (!update_) return {};
    if (!check_.empty()) return CheckOutput("--update", check_, std::array{path_});
    return Fail(ErrorCode::kInvalidArgument, "--update", "--update needs --check FILE.");
  }

  Result<int> Run(Context& context) override {
    ASSAY_ASSIGN_OR_RETURN(
        const prove::CountsByTrace counts,
        SayStopped(prove::ReadCountsOf(path_, [&] { return context.cancelled(); }),
                   "Stopped before the counts were complete."));
    if (json_) {
      context.Print(prove::FormatCountsJson(counts));
    } else if (!context.quiet()) {
      context.Print(prove::FormatCountsText(counts));
    }
    if (check_.empty()) return kExitOk;
    if (update_) {
      ASSAY_TRY(WriteFile(check_, prove::FormatCountsJson(counts)));
      return kExitOk;
    }
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(check_));
    ASSAY_ASSIGN_OR_RETURN(const prove::CountsByTrace allowed,
                           prove::ParseCountsJson(text, check_, path_));
    ASSAY_ASSIGN_OR_RETURN(const prove::CountsCheck check, prove::CheckCounts(counts, allowed));
    for (const std::string& sentence : check.risen) context.PrintError(sentence);
    for (const std::string& sentence : check.fallen) {
      context.Note(fmt::format("{} Take it over with `assay counts --check {} --update {}`.",
                               sentence, check_, path_));
    }
    return check.risen.empty() ? kExitOk : kExitDifferent;
  }

 private:
  std::string path_;
  std::string check_;
  bool update_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCountsCommand() { return std::make_unique<CountsCommand>(); }

}  // namespace assay::cli
