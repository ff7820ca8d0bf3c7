#include "cli/check_command.h"

#include <string>
#include <utility>

#include "assay/hazard.h"

#include "base/file.h"

namespace assay::cli {
namespace {

class CheckCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override {
    if (!json_ || !sarif_) return {};
    return Fail(ErrorCode::kInvalidArgument, "--sarif", "--json and --sarif exclude each other.");
  }
  Result<int> Run(Context& context) override;

 private:
  std::string path_;
  std::string suppress_path_;
  int64_t max_findings_ = 1'000'000;
  bool strict_ = false;
  bool json_ = false;
  bool sarif_ = false;
};

CommandSpec CheckCommand::Describe() {
  return {
      .name = "check",
      .summary = "Finds every hazard of a trace: missing barriers, host races, bad lifetimes.",
      .description =
          "Lists every pair of dispatches that touch the same bytes in conflict with no barrier "
          "between them, what the host does to buffers in flight, uses of freed buffers, bindings "
          "that leave their buffer or overlap, and barriers that nothing needs. No device is "
          "needed.\n\n"
          "A finding is certain when the trace says exactly which bytes are touched, and possible "
          "when it gives an upper bound. Each finding has a fingerprint that stays the same when "
          "other events are added; a suppression file names fingerprints, one a line, "
          "\"0123456789abcdef:1\" for one finding or \"0123456789abcdef:*\" for all alike, with "
          "comments from '#' on.\n\n"
          "The last line of the text is for scripts: \"check: rc R; hazards N (raw a, war b, waw "
          "c, host d, lifetime e, bounds f, self g); possible p; barriers issued I redundant R "
          "least L\".",
      .positionals = {{.name = "TRACE", .value = TextValue{&path_}, .help = "A trace."}},
      .flags = {{.names = "--strict",
                 .value = SwitchValue{&strict_},
                 .help = "Possible findings count as hazards for the exit status."},
                {.names = "--suppress",
                 .value = TextValue{&suppress_path_},
                 .placeholder = "FILE",
                 .help = "Findings that this file names count for nothing.",
                 .show_default = false},
                {.names = "--max-findings",
                 .value = IntegerValue{&max_findings_, 0, INT64_MAX},
                 .placeholder = "N",
                 .help = "Lists at most so many findings of each sort; all are counted."},
                {.names = "--json",
                 .value = SwitchValue{&json_},
                 .help = "Prints one JSON object instead of text."},
                {.names = "--sarif",
                 .value = SwitchValue{&sarif_},
                 .help = "Prints SARIF 2.1.0 instead of text."}},
      .examples = {{"assay check run.trace", "Lists the hazards of run.trace."},
                   {"assay check --strict --suppress known.txt --sarif run.trace",
                    "Writes what a code scanning service reads."}},
      .exit_meanings = {{0, "No hazards."},
                        {1, "At least one hazard."},
                        {2, "The trace is refused or cannot be read."}},
      .quiet_help = "Prints nothing but errors; the exit status says the verdict.",
  };
}

Result<int> CheckCommand::Run(Context& context) {
  hazard::Options options{.suppressions = {},
                          .strict = strict_,
                          .max_listed = static_cast<uint64_t>(max_findings_),
                          .stop = [&context] { return context.cancelled(); }};
  if (!suppress_path_.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(suppress_path_));
    ASSAY_ASSIGN_OR_RETURN(options.suppressions, hazard::ParseSuppressions(text, suppress_path_));
  }
  Result<hazard::Report> checked = hazard::CheckTrace(path_, options);
  hazard::Report report;
  if (!checked && checked.error().code() == ErrorCode::kCancelled) {
    return SayStopped(Result<int>(Fail(checked.error())),
                      "Stopped before the whole trace was checked.");
  }
  if (checked) {
    report = std::move(*checked);
  } else {
    // A file that cannot be read is refused like one that proves nothing, so that a script finds
    // the same output whatever happened.
    report.name = path_;
    report.refused = checked.error().ToString();
  }
  if (!report.refused.empty()) context.PrintError(report.refused);
  if (context.quiet() && !json_ && !sarif_) return hazard::ExitStatus(report, options);
  std::string text = json_    ? hazard::FormatJson(report, options)
                     : sarif_ ? hazard::FormatSarif(report, options)
                              : hazard::FormatText(report, options);
  if (!report.refused.empty() && !json_ && !sarif_) {
    // Standard error has the reason; here is the line that every check ends in.
    text.erase(0, text.rfind('\n', text.size() - 2) + 1);
  }
  context.Print(text);
  return hazard::ExitStatus(report, options);
}

}  // namespace

std::unique_ptr<Command> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace assay::cli
