// The pairs of traces under tests/golden/compare and the reports on them.
#include "support/golden.h"

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/compare.h"

#include "base/file.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;

TEST(CompareGoldenTest, ReportsAreWhatTheGoldensSay) {
  const fs::path folder = fs::path(ASSAY_SOURCE_DIR) / "tests/golden/compare";
  std::set<Verdict> verdicts;
  size_t cases = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename());
    const std::string a = ReadFile((entry.path() / "a.trace").string()).value();
    const std::string b = ReadFile((entry.path() / "b.trace").string()).value();
    const Report report = CompareTraceTexts(a, b);
    const std::string name = "compare/" + entry.path().filename().string();
    ExpectGolden(name + "/report.txt", FormatText(report));
    ExpectGolden(name + "/report.json", FormatJson(report));
    verdicts.insert(report.verdict);
    ++cases;
  }
  EXPECT_GE(cases, 18U);
  EXPECT_EQ(verdicts.size(), 4U);
}

}  // namespace
}  // namespace assay::compare
