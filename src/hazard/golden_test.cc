// Hand-checked traces and what the checker says of them: one for each rule, each with a near miss
// that must not fire. ASSAY_UPDATE_GOLDEN=1 writes the expected files anew.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/hazard.h"

#include "base/file.h"

namespace assay::hazard {
namespace {

std::string GoldenFolder() { return std::string(ASSAY_SOURCE_DIR) + "/tests/golden/hazard/"; }

struct Case {
  std::string name;
  // What the case is about; all its findings, notes included, are of these rules.
  std::set<std::string> rules;
  int status;
};

std::ostream& operator<<(std::ostream& out, const Case& golden) { return out << golden.name; }

Report CheckCase(const Case& golden) {
  const std::string file = golden.name + ".trace";
  const Result<std::string> text = ReadFile(GoldenFolder() + file);
  EXPECT_TRUE(text.has_value());
  const Result<Report> report = CheckTraceText(*text, file, {});
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  return *report;
}

void ExpectGolden(const std::string& file, const std::string& actual) {
  const std::string path = GoldenFolder() + file;
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFile(path, actual).has_value());
  }
  const Result<std::string> expected = ReadFile(path);
  ASSERT_TRUE(expected.has_value());
  EXPECT_EQ(actual, *expected);
}

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, H1_H2_H3_H5_TextIsAsCheckedByHand) {
  const Report report = CheckCase(GetParam());
  EXPECT_EQ(ExitStatus(report, {}), GetParam().status);
  std::set<std::string> rules;
  for (const Finding& finding : report.findings) rules.emplace(RuleName(finding.rule));
  for (const Finding& note : report.notes) rules.emplace(RuleName(note.rule));
  if (!report.redundant_barriers.empty()) rules.emplace(RuleName(Rule::kRedundantBarrier));
  EXPECT_EQ(rules, GetParam().rules);
  ExpectGolden(GetParam().name + ".txt", FormatText(report, {}));
}

std::vector<Case> Cases() {
  return {{"raw", {"raw"}, 1},
          {"raw_near", {}, 0},
          {"war", {"war"}, 1},
          {"war_near", {}, 0},
          {"waw", {"waw"}, 1},
          {"waw_near", {}, 0},
          {"merged", {"raw"}, 1},
          {"merged_near", {}, 0},
          {"possible", {"raw"}, 0},
          {"possible_near", {}, 0},
          {"undeclared", {"raw", "war"}, 0},
          {"undeclared_near", {}, 0},
          {"host_read", {"host-read"}, 1},
          {"host_read_near", {}, 0},
          {"host_write", {"host-write"}, 1},
          {"host_write_near", {}, 0},
          {"free_in_flight", {"free-in-flight"}, 1},
          {"free_in_flight_near", {}, 0},
          {"use_after_free", {"use-after-free"}, 1},
          {"use_after_free_near", {}, 0},
          {"double_free", {"double-free"}, 1},
          {"double_free_near", {}, 0},
          {"bounds", {"bounds"}, 1},
          {"bounds_near", {}, 0},
          {"self", {"self"}, 1},
          {"self_near", {}, 0},
          {"never_written", {"never-written"}, 0},
          {"never_written_near", {}, 0},
          {"redundant", {"redundant-barrier"}, 0},
          {"redundant_near", {}, 0},
          {"double_barrier", {"redundant-barrier"}, 0},
          {"least", {"redundant-barrier"}, 0},
          {"read_write", {"raw", "waw"}, 1},
          {"immediate", {"raw", "waw"}, 1},
          {"looks_through", {"raw", "waw"}, 1},
          {"suggestion", {"raw", "war", "waw"}, 1},
          {"layers", {"raw"}, 1},
          {"since", {"war", "waw"}, 1},
          {"hidden_reader", {"war"}, 1},
          {"undeclared_twice", {"waw"}, 0},
          {"refused", {}, 2}};
}

INSTANTIATE_TEST_SUITE_P(Hazard, Golden, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& param) {
                           return param.param.name;
                         });

TEST(GoldenFiles, EveryTraceIsACase) {
  std::set<std::string> traces;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder())) {
    if (entry.path().extension() == ".trace") traces.insert(entry.path().stem());
  }
  std::set<std::string> cases;
  for (const Case& golden : Cases()) cases.insert(golden.name);
  EXPECT_EQ(traces, cases);
}

// The output with the program's version taken out.
std::string WithoutVersion(std::string text) {
  const std::string key = "\"semanticVersion\":\"";
  const size_t begin = text.find(key);
  if (begin == std::string::npos) return text;
  const size_t value = begin + key.size();
  return text.erase(value, text.find('"', value) - value);
}

TEST(GoldenFiles, H5_JsonAndSarifHaveEveryField) {
  for (const std::string name : {"suggestion", "use_after_free", "redundant", "undeclared"}) {
    const Report report = CheckCase({name, {}, 0});
    ExpectGolden(name + ".json", FormatJson(report, {}));
    ExpectGolden(name + ".sarif", WithoutVersion(FormatSarif(report, {})));
  }
}

}  // namespace
}  // namespace assay::hazard
