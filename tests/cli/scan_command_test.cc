#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/kernel_scan.h"
#include "cli/program.h"
#include "cli/runner.h"
#include "kernels/kernel_table.h"
#include "support/temp_folder.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ScanCommandTest : public testing::Test {
 protected:
  std::string In(const char* name) const { return (dir_ / name).string(); }
  int Run(const std::vector<std::string>& words) {
    StringOutput out, err;
    const int status = RunProgram(words, Commands(), {.out = &out, .err = &err});
    out.Flush();
    err.Flush();
    out_ = out.text();
    err_ = err.text();
    return status;
  }

  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
  std::string out_, err_;
};

TEST_F(ScanCommandTest, S1_EveryKernelHasARowForEveryTarget) {
  const prove::Scan scan = ScanKernels(kCodeMethod);
  ASSERT_EQ(scan.failed, "");
  size_t wanted = 0;
  for (const kernels::KernelRow& kernel : kernels::KernelTable()) {
    for (size_t i = 0; i < kernels::kIsaCount; ++i) {
      wanted += kernel.pick(static_cast<kernels::Isa>(i)) != nullptr ? 1 : 0;
    }
  }
  EXPECT_EQ(scan.rows.size(), wanted);
  for (const prove::ScanRow& row : scan.rows) {
    EXPECT_GT(row.code_bytes, 16U) << row.kernel;
    EXPECT_GT(row.instructions.at("branch"), 0U) << row.kernel;
  }
}

// This test is another program than assay, linked from the same libraries in another order.
TEST_F(ScanCommandTest, S1_TheScanDoesNotDependOnWhereTheLinkerPutsCode) {
  ASSERT_EQ(Run({"scan", "-o", In("test.scan")}), 0) << err_;
  ASSERT_EQ(RunAssay({"scan", "-o", In("program.scan")}).status, 0);
  EXPECT_EQ(ReadFile(In("program.scan")).value(), ReadFile(In("test.scan")).value());
  EXPECT_EQ(Run({"scan", "--compare", In("test.scan"), In("program.scan")}), 0);
  EXPECT_THAT(out_, HasSubstr("summary: added=0 removed=0 changed=0 same="));
}

TEST_F(ScanCommandTest, S2_MethodsDoNotCompareAndDifferencesAreStatusOne) {
  ASSERT_EQ(Run({"scan", "-o", In("code")}), 0) << err_;
  ASSERT_EQ(Run({"scan", "--method", "cpu-source-1", "-o", In("source")}), 0) << err_;
  EXPECT_EQ(Run({"scan", "--compare", In("code"), In("source")}), 2);
  EXPECT_THAT(err_, HasSubstr("cpu-source-1"));
  prove::Scan scan = ScanKernels(kCodeMethod);
  scan.rows.pop_back();
  ASSERT_TRUE(WriteFile(In("fewer"), prove::FormatScan(scan)));
  EXPECT_EQ(Run({"scan", "--compare", In("code"), In("fewer")}), 1);
  EXPECT_THAT(out_, HasSubstr("removed=1"));
  EXPECT_EQ(Run({"scan", "--compare", "--json", In("code"), In("fewer")}), 1);
  EXPECT_THAT(out_, HasSubstr("\"removed\": 1"));
}

TEST_F(ScanCommandTest, C1_WrongWordsAreUsageErrors) {
  EXPECT_EQ(Run({"scan", "--compare", "one"}), 64);
  EXPECT_EQ(Run({"scan", "one"}), 64);
  EXPECT_EQ(Run({"scan", "--json"}), 64);
  EXPECT_EQ(Run({"scan", "--method", "guess"}), 64);
  EXPECT_EQ(Run({"scan", "--compare", In("none"), In("none")}), 2);
}

}  // namespace
}  // namespace assay::cli
