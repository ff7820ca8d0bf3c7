#include "assay/compare.h"

#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "compare/differ.h"
#include "compare/difference_log.h"
#include "compare/input.h"
#include "compare/line_feed.h"
#include "compare/pairing.h"
#include "compare/renumber.h"
#include "compare/votes.h"
#include "compare/whole.h"

namespace assay::compare {
namespace {

class Comparison {
 public:
  Comparison(const Input& a, const Input& b, const Options& options)
      : a_(a), b_(b), options_(options) {
    report_.sides = options.sides;
    report_.name_a = a.name();
    report_.name_b = b.name();
  }

  Report Run() {
    const Status status = Judge();
    // Whatever could not be read decides nothing.
    if (!status) Refuse(status.error().ToString());
    return std::move(report_);
  }

 private:
  void Refuse(std::string reason) {
    report_ = {.verdict = Verdict::kRefused,
               .name_a = a_.name(),
               .name_b = b_.name(),
               .version_a = report_.version_a,
               .version_b = report_.version_b,
               .digest = {},
               .reason = std::move(reason),
               .notes = {},
               .lines_a = report_.lines_a,
               .lines_b = report_.lines_b,
               .differences = {},
               .first_event = {},
               .counts = {},
               .sides = options_.sides};
  }

  Status Judge() {
    SideReading reading_a(a_);
    ASSAY_ASSIGN_OR_RETURN(const BothWhole whole, CheckBothWhole(a_, b_, &reading_a));
    std::string reasons;
    if (whole.same_bytes) {
      // A right end line seals any text; only what the reader takes is a trace.
      AddReason(reading_a.Result(), &reasons);
      if (reasons.empty() && !whole.a) reasons = Changed(a_);
    } else {
      CheckProves(a_, whole.a, &reasons);
      CheckProves(b_, whole.b, &reasons);
    }
    if (!reasons.empty()) {
      Refuse(std::move(reasons));
      return {};
    }
    report_.version_a = whole.a->version;
    report_.version_b = whole.b->version;
    report_.lines_a = whole.a->lines;
    report_.lines_b = whole.b->lines;
    NoteVersions();
    if (whole.same_bytes) {
      report_.verdict = Verdict::kIdentical;
      report_.digest = whole.a->digest;
      return {};
    }
    // A renumbering keeps the number of lines; counting first spares most different traces a pass.
    if (report_.lines_a == report_.lines_b) {
      ASSAY_ASSIGN_OR_RETURN(const auto renumbering, FindRenumbering(a_, b_));
      if (renumbering && IsRenumbered(*renumbering)) {
        SetRenumbered(*renumbering);
        return {};
      }
    }
    report_.verdict = Verdict::kDifferent;
    return FindDifferences();
  }

  // Adds to `reasons` when the trace proves nothing.
  static void CheckProves(const Input& input, const std::optional<WholeFacts>& facts,
                          std::string* reasons) {
    if (facts && !facts->maybe_refused) return;
    std::optional<std::string> why = WhyRefused(input);
    if (!why && !facts) {
      why = Changed(input);
    }
    AddReason(why, reasons);
  }

  // The quick check refuses nothing that the reader takes, unless the file changed meanwhile.
  static std::string Changed(const Input& input) {
    return fmt::format("\"{}\" changed while it was read.", input.name());
  }

  static void AddReason(const std::optional<std::string>& why, std::string* reasons) {
    if (!why) return;
    if (!reasons->empty()) *reasons += ' ';
    *reasons += *why;
  }

  void NoteVersions() {
    constexpr int kOld = trace::kCreationOrderVersion;
    const int a = report_.version_a, b = report_.version_b;
    if (a == kOld && b == kOld) {
      report_.notes.push_back(
          "Both traces are version 1, which numbers buffers in the order in which they were made: "
          "equal bytes may be luck of the schedule, and other numbers say nothing.");
    } else if (a != b) {
      report_.notes.push_back(fmt::format(
          "{} is version {} and {} is version {}: they are compared up to the numbering "
          "of buffers and are never identical.",
          report_.sides.a, a, report_.sides.b, b));
    }
  }

  // Two traces of version 2 that differ in the order of lines only are not renumbered.
  bool IsRenumbered(const Renumbering& renumbering) const {
    const bool both_current =
        report_.version_a == trace::kCurrentVersion && report_.version_b == trace::kCurrentVersion;
    return renumbering.renumbered > 0 || !both_current;
  }

  void SetRenumbered(const Renumbering& renumbering) {
    report_.verdict = Verdict::kRenumbered;
    report_.buffers = renumbering.buffers;
    report_.buffers_renumbered = renumbering.renumbered;
    if (renumbering.order_differs) {
      report_.notes.push_back("Buffers made one after another were made in another order.");
    }
  }

  Status FindDifferences() {
    ASSAY_ASSIGN_OR_RETURN(const Declarations names_a, ReadDeclarations(a_));
    ASSAY_ASSIGN_OR_RETURN(const Declarations names_b, ReadDeclarations(b_));
    const std::vector<std::string> notes = report_.notes;
    const auto log_with = [&](const Pairing& pairing, const AlikeNames& alike) -> Result<uint64_t> {
      report_.notes = notes;
      report_.differences.clear();
      report_.first_event.reset();
      report_.counts = {};
      NoteNumbers("buffer", pairing.buffers_renumbered());
      NoteNumbers("kernel", pairing.kernels_renumbered());
      const Names names{names_a, names_b, pairing};
      DifferenceLog log(names, alike, options_.max_differences, &report_);
      ASSAY_ASSIGN_OR_RETURN(LineFeed feed_a, LineFeed::Open(a_));
      ASSAY_ASSIGN_OR_RETURN(LineFeed feed_b, LineFeed::Open(b_));
      LineWindow window_a(std::move(feed_a), pairing.a());
      LineWindow window_b(std::move(feed_b), pairing.b());
      ASSAY_TRY(StreamDifferences(&window_a, &window_b, pairing.identity(), &log));
      return log.doubtful();
    };

    const Pairing pairing(names_a, names_b);
    const AlikeNames alike(names_a, names_b, pairing);
    ASSAY_ASSIGN_OR_RETURN(const uint64_t doubtful, log_with(pairing, alike));
    if (doubtful > 0) {
      ASSAY_ASSIGN_OR_RETURN(const Partners partners,
                             VoteForPartners(a_, b_, names_a, names_b, alike, pairing.identity()));
      ASSAY_TRY(log_with(Pairing(names_a, names_b, partners), alike));
    }
    if (Differs()) return {};
    // Only the order of buffers that are declared alike and never used differs: by number, then.
    ASSAY_TRY(log_with(Pairing(names_a, names_b, PartnersByNumber(names_a, names_b)), alike));
    if (Differs()) return {};
    ASSAY_TRY(FindOtherNumbers(names_a, names_b));
    if (Differs()) return {};
    // Names that are declared twice or not at all can hide a difference; the reader refuses them.
    std::string reasons;
    for (const Input* input : {&a_, &b_}) AddReason(WhyRefused(*input), &reasons);
    if (reasons.empty()) {
      return Fail(ErrorCode::kInternal, "",
                  "The traces differ, but not in any line that was found.");
    }
    Refuse(std::move(reasons));
    return {};
  }

  // Line by line the traces say the same of what their names stand for: only the numbers of the
  // names differ, which their declarations show.
  Status FindOtherNumbers(const Declarations& names_a, const Declarations& names_b) {
    const Pairing pairing(names_a, names_b);
    const AlikeNames alike(names_a, names_b, pairing);
    const Names names{names_a, names_b, pairing};
    DifferenceLog log(names, alike, options_.max_differences, &report_);
    ASSAY_ASSIGN_OR_RETURN(LineFeed feed_a, LineFeed::Open(a_));
    ASSAY_ASSIGN_OR_RETURN(LineFeed feed_b, LineFeed::Open(b_));
    std::string_view line_a, line_b;
    while (feed_a.Next(&line_a) && feed_b.Next(&line_b)) {
      log.SameButForNumber(line_a, line_b);
      feed_a.Release(line_a);
      feed_b.Release(line_b);
    }
    ASSAY_TRY(feed_a.status());
    return feed_b.status();
  }

  bool Differs() const {
    return report_.counts.changed + report_.counts.only_in_a + report_.counts.only_in_b > 0;
  }

  void NoteNumbers(std::string_view one, uint64_t renumbered) {
    if (renumbered == 0) return;
    report_.notes.push_back(fmt::format(
        "{} {} another number in {} than in {}; lines are compared by what the names stand for.",
        Counted(renumbered, one), renumbered == 1 ? "has" : "have", report_.sides.b,
        report_.sides.a));
  }

  const Input& a_;
  const Input& b_;
  const Options& options_;
  Report report_;
};

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kRenumbered:
      return "renumbered";
  }
  return "refused";
}

Report CompareTraces(const std::string& path_a, const std::string& path_b, const Options& options) {
  const Input a = Input::File(path_a, options.stop), b = Input::File(path_b, options.stop);
  return Comparison(a, b, options).Run();
}

Report CompareTraceTexts(std::string_view a, std::string_view b, const Options& options) {
  const Input input_a = Input::Memory("A", a, options.stop);
  const Input input_b = Input::Memory("B", b, options.stop);
  return Comparison(input_a, input_b, options).Run();
}

}  // namespace assay::compare
