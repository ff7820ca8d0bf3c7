// Turns the aligned streams into the differences of a report.
#ifndef ASSAY_COMPARE_DIFFERENCE_LOG_H_
#define ASSAY_COMPARE_DIFFERENCE_LOG_H_

#include <string_view>

#include "assay/compare.h"

#include "compare/differ.h"
#include "compare/fields.h"
#include "compare/votes.h"

namespace assay::compare {

// Follows one side to say where a line stands.
class PlaceTracker final {
 public:
  explicit PlaceTracker(const Declarations& declarations) : declarations_(declarations) {}
  void Pass(std::string_view line);
  // Passes `line` and says where it stands.
  Place Take(std::string_view line);

 private:
  const Declarations& declarations_;
  uint64_t line_ = 1;             // Of the line passed last; the first line says the version.
  uint64_t command_buffers_ = 0;  // Begun.
  bool inside_ = false;
  uint64_t dispatches_ = 0;  // In the command buffer.
};

class DifferenceLog final : public DiffSink {
 public:
  // `report` gets the first `max_differences`, the first of an event, and all counts.
  DifferenceLog(const Names& names, const AlikeNames& alike, size_t max_differences, Report* report)
      : names_(names),
        alike_a_(alike.a),
        alike_b_(alike.b),
        max_differences_(max_differences),
        report_(*report),
        place_a_(names.a),
        place_b_(names.b) {}

  void Equal(Lines a, Lines b) override;
  void EqualBytes(std::string_view lines) override;
  void Unlike(Lines a, Lines b) override;
  // Lines that are the same but for numbers; declarations are reported where theirs differ.
  void SameButForNumber(std::string_view line_a, std::string_view line_b);

  // Changed lines that differ only in which of several buffers declared alike they name: either the
  // program changed, or those buffers were paired wrongly.
  uint64_t doubtful() const { return doubtful_; }

 private:
  bool Wanted() const { return report_.differences.size() < max_differences_ || !event_seen_; }
  void Keep(Difference difference);
  void OnlyInA(std::string_view line);
  void OnlyInB(std::string_view line);
  void Changed(std::string_view line_a, std::string_view line_b);

  const Names& names_;
  LineTokenizer alike_a_, alike_b_;
  const size_t max_differences_;
  Report& report_;
  uint64_t doubtful_ = 0;
  bool event_seen_ = false;  // A difference that is no fact of the run.
  // Kept up only while differences are wanted.
  PlaceTracker place_a_, place_b_;
};

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_DIFFERENCE_LOG_H_
