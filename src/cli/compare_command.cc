#include "cli/compare_command.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "assay/compare.h"
#include "assay/prove.h"
#include "assay/trace.h"

#include "cli/report_flags.h"

namespace assay::cli {
namespace {

class CompareCommand final : public Command {
 public:
  CommandSpec Describe() override {
    CommandSpec spec = {
        .name = "compare",
        .summary = "Says whether two traces, or two folders of evidence, are the same.",
        .description =
            "Two traces are identical when both are whole, of version 2, without refused buffers, "
            "and the same bytes: that is a proof. Equal traces of version 1 are identical as well, "
            "with "
            "a note on why that proves less. Anything else is said with its reason: the same "
            "but for the numbers of buffers, different (with the first difference and the count of "
            "all), or refused.\n\n"
            "Two folders written by `assay trace` are the same when every trace in them and all "
            "generated ids are.",
        .positionals = {{.name = "A",
                         .value = TextValue{&a_},
                         .help = "A trace (plain or .zst) or a folder."},
                        {.name = "B", .value = TextValue{&b_}, .help = "The one to compare with."}},
        .flags = {{.names = "--json",
                   .value = SwitchValue{&json_},
                   .help = "Prints the report as one JSON object."},
                  {.names = "--max-differences",
                   .value = IntegerValue{&max_differences_, 1, 1'000'000},
                   .placeholder = "N",
                   .help = "Shows the first N differences of a trace; all are counted."}},
        .examples = {{"assay compare before.trace after.trace", "Two traces."},
                     {"assay compare out/first out/second && echo same",
                      "Two recordings, used in a script."},
                     {"assay compare --html page.html before.trace after.trace",
                      "The two streams side by side in a browser."}},
        .exit_meanings = {{kExitOk, "Identical: a proof, for traces of version 2."},
                          {kExitDifferent, "Different."},
                          {kExitFailed, "Refused or unreadable: nothing can be said."},
                          {kExitRenumbered, "The same but for the numbers of buffers: no proof."}},
        .quiet_help = "Prints nothing but errors; the exit status says the verdict.",
    };
    reports_.AddTo(&spec);
    return spec;
  }

  Status CheckArguments() override { return reports_.Check(json_, std::array{a_, b_}); }

  Result<int> Run(Context& context) override {
    ASSAY_TRY(reports_.CheckFiles());
    auto max_differences = static_cast<size_t>(max_differences_);
    // Enough to say of what kind all of them are.
    if (reports_.any()) max_differences = std::max(max_differences, prove::kClassifiedDifferences);
    const compare::Options options{.max_differences = max_differences,
                                   .stop = [&context] { return context.cancelled(); }};
    ASSAY_ASSIGN_OR_RETURN(const bool folders, AreFolders());
    Outcome outcome;
    {
      const Progress progress = context.StartProgress("comparing");
      ASSAY_ASSIGN_OR_RETURN(outcome, folders ? CompareFolders(options) : CompareFiles(options));
    }
    if (context.cancelled()) {
      return Fail(ErrorCode::kCancelled, "", "The comparison was stopped by a signal.");
    }
    if ((json_ || !context.quiet()) && !reports_.takes_output()) context.Print(outcome.text);
    std::error_code ignored;
    if (outcome.verdict == compare::Verdict::kRefused) {
      context.PrintError(outcome.reason);
    } else if (std::filesystem::equivalent(a_, b_, ignored)) {
      context.Note(
          fmt::format("\"{}\" is compared with itself, which says nothing of a second run.", a_));
    }
    if (!folders && outcome.verdict == compare::Verdict::kIdentical) {
      ASSAY_ASSIGN_OR_RETURN(const bool dispatches, HasDispatch(context));
      if (!dispatches) {
        context.Note("Neither trace holds a dispatch, so that this says nothing of what runs.");
      }
    }
    if (outcome.summary) ASSAY_TRY(reports_.Write(context, *outcome.summary));
    return static_cast<int>(outcome.verdict);
  }

 private:
  struct Outcome {
    compare::Verdict verdict = compare::Verdict::kRefused;
    std::string reason;
    std::string text;
    std::optional<prove::Summary> summary;
  };

  Result<bool> AreFolders() const {
    std::error_code ignored;
    const bool a = std::filesystem::is_directory(a_, ignored);
    const bool b = std::filesystem::is_directory(b_, ignored);
    if (a == b) return a;
    return Fail(ErrorCode::kInvalidArgument, a ? b_ : a_,
                fmt::format("\"{}\" is a folder and \"{}\" is not; name two traces or two folders.",
                            a ? a_ : b_, a ? b_ : a_));
  }

  // Of two traces that are the same: whether there is anything in them.
  Result<bool> HasDispatch(const Context& context) const {
    ASSAY_ASSIGN_OR_RETURN(
        const auto reader,
        trace::TraceReader::Open(a_, {.stop = [&context] { return context.cancelled(); }}));
    for (;;) {
      ASSAY_ASSIGN_OR_RETURN(const std::optional<trace::Event> event, reader->Next());
      if (!event) return false;
      if (std::holds_alternative<trace::DispatchEvent>(*event)) return true;
    }
  }

  // What a reader of the text does not want to see all of.
  void KeepWanted(compare::Report* report) const {
    const auto wanted = static_cast<size_t>(max_differences_);
    if (report->differences.size() > wanted) report->differences.resize(wanted);
  }

  Result<Outcome> CompareFiles(const compare::Options& options) const {
    compare::Report report = compare::CompareTraces(a_, b_, options);
    Outcome outcome{.verdict = report.verdict, .reason = report.reason, .text = {}, .summary = {}};
    if (reports_.any()) {
      ASSAY_ASSIGN_OR_RETURN(outcome.summary, prove::Summarize(report));
    }
    KeepWanted(&report);
    // Standard error says it; a program gets all in one object.
    if (!json_) report.reason.clear();
    outcome.text = json_ ? compare::FormatJson(report) : compare::FormatText(report);
    return outcome;
  }

  Result<Outcome> CompareFolders(const compare::Options& options) const {
    prove::EvidenceReport report = prove::CompareEvidence(a_, b_, options);
    Outcome outcome{.verdict = report.verdict, .reason = report.reason, .text = {}, .summary = {}};
    if (reports_.any()) {
      ASSAY_ASSIGN_OR_RETURN(outcome.summary, prove::Summarize(report));
    }
    for (auto& depth : report.depths) {
      if (depth.report) KeepWanted(&*depth.report);
    }
    if (!json_) {
      report.reason.clear();
      for (auto& depth : report.depths) {
        if (depth.report) depth.report->reason.clear();
      }
    }
    outcome.text = json_ ? prove::FormatEvidenceJson(report) : prove::FormatEvidenceText(report);
    return outcome;
  }

  std::string a_, b_;
  bool json_ = false;
  ReportFlags reports_;
  int64_t max_differences_ = 20;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace assay::cli
