#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/prove.h"

namespace assay::prove {
namespace {

using compare::Verdict;
using testing::HasSubstr;

ScanRow Row(const std::string& kernel, const std::string& digest) {
  return {.kernel = kernel, .target = "AVX2", .digest = digest, .bindings = 3};
}
Scan Rows(std::vector<ScanRow> rows) { return {"cpu-code-1", "", std::move(rows)}; }

TEST(Scan, S1_ReadsBackWhatWasWrittenInSortedOrder) {
  ScanRow full{.kernel = "a kernel \"quoted\"",
               .target = "AVX3",
               .digest = "ab",
               .workgroup = {64, 2, 1},
               .shared_bytes = 1024,
               .bindings = 4,
               .constant_bytes = 12,
               .spec = "rows=4,cols=2",
               .code_bytes = 99,
               .instructions = {{"branch", 3}, {"vector", 5}},
               .figures = {{"registers", 40}}};
  const Scan scan = Rows({Row("b", "12"), full});
  const std::string text = FormatScan(scan);
  const Result<Scan> read = ParseScan(text, "x");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->rows, (std::vector<ScanRow>{full, Row("b", "12")}));
  EXPECT_EQ(FormatScan(*read), text);
  EXPECT_EQ(FormatScan(Rows({full, Row("b", "12")})), text);
}

TEST(Scan, S2_AFailedScanSaysSoAndHasNoRows) {
  const Scan failed{"cpu-code-1", "no \"symbols\"", {Row("a", "1")}};
  const std::string text = FormatScan(failed);
  EXPECT_THAT(text, HasSubstr("failed \"no \\\"symbols\\\"\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("kernel ")));
  const Result<Scan> read = ParseScan(text, "x");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->failed, failed.failed);
  for (const auto& [a, b] : {std::pair(*read, *read), {*read, Rows({})}, {Rows({}), *read}}) {
    const ScanComparison comparison = CompareScans(a, b);
    EXPECT_EQ(comparison.verdict, Verdict::kRefused);
    EXPECT_THAT(FormatScanText(comparison), HasSubstr("symbols"));
    EXPECT_THAT(FormatScanText(comparison), testing::Not(HasSubstr("summary")));
  }
}

TEST(Scan, S2_SummaryCountsEachRowOnce) {
  const ScanComparison comparison =
      CompareScans(Rows({Row("gone", "1"), Row("same", "2"), Row("other", "3")}),
                   Rows({Row("same", "2"), Row("other", "4"), Row("new", "5"), Row("newer", "6")}));
  EXPECT_EQ(comparison.verdict, Verdict::kDifferent);
  EXPECT_EQ(FormatScanSummary(comparison), "summary: added=2 removed=1 changed=1 same=1\n");
  EXPECT_THAT(FormatScanText(comparison),
              HasSubstr("changed: other (AVX2): digest is 3 in A and 4 in B\n"));
  EXPECT_THAT(FormatScanJson(comparison), HasSubstr("\"exit_status\": 1"));
  EXPECT_EQ(CompareScans(Rows({Row("a", "1")}), Rows({Row("a", "1")})).verdict,
            Verdict::kIdentical);
}

TEST(Scan, S2_ScansOfTwoMethodsDoNotCompare) {
  Scan other = Rows({});
  other.method = "cpu-source-1";
  const ScanComparison comparison = CompareScans(Rows({}), other);
  EXPECT_EQ(comparison.verdict, Verdict::kRefused);
  EXPECT_THAT(comparison.reason, HasSubstr("cpu-source-1"));
}

TEST(Scan, S2_EveryCutAndEveryChangedByteIsRefused) {
  const std::string text = FormatScan(Rows({Row("a", "1"), Row("b", "2")}));
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseScan(std::string_view(text).substr(0, size), "x")) << size;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'0', ' ', '\n', 'z'}) {
      std::string changed = text;
      changed[at] = byte;
      if (changed == text) continue;
      EXPECT_FALSE(ParseScan(changed, "x")) << at << byte;
    }
  }
  EXPECT_FALSE(ParseScan(text + "x\n", "x"));
  EXPECT_EQ(ParseScan("assay-scan 9\n", "x").error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace assay::prove
