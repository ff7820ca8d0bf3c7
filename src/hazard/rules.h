// The table of rules: what each is called and means.
#ifndef ASSAY_HAZARD_RULES_H_
#define ASSAY_HAZARD_RULES_H_

#include <array>
#include <string_view>

#include "assay/hazard.h"

namespace assay::hazard {

struct RuleRow {
  Rule rule;
  std::string_view name;  // Stable: outputs, fingerprints and suppressions depend on it.
  Category category;
  std::string_view title;  // A sentence, for SARIF and for people.
  std::string_view help;   // How to mend it.
};

// In the order of Rule.
const std::array<RuleRow, kRuleCount>& Rules();
const RuleRow& RowOf(Rule rule);

// "raw", "war", "waw", "host", "lifetime", "bounds", "self".
std::string_view CategoryName(Category category);

// What no check of a trace can see; one line.
std::string_view BlindSpots();

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_RULES_H_
