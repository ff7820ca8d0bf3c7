#include <algorithm>
#include <filesystem>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/gpu_devices.h"
#include "assay/trace.h"

#include "base/file.h"
#include "cli/commands.h"
#include "cli/kernel_scan.h"
#include "cli/program.h"
#include "cli/runner.h"
#include "kernels/kernel_table.h"
#include "kernels/vulkan/spirv_table.h"
#include "prove/evidence.h"
#include "support/address_space.h"
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ScanCommandTest, S1_AProgramThatCannotBeReadNowIsNotScannedByAnotherMethod) {
  const prove::Scan scan = [] {
    // The spare is less than the program's file takes.
    const AddressSpaceLimit limit(MappedBytes() + (uint64_t{1} << 20));
    return ScanBackend("cpu");
  }();
  EXPECT_EQ(scan.method, kCodeMethod);
  EXPECT_THAT(scan.failed, HasSubstr("Cannot allocate memory"));
}
#endif

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

TEST_F(ScanCommandTest, S1_EveryShaderHasARow) {
  ASSERT_EQ(Run({"scan", "--backend", "vulkan", "-o", In("shaders")}), 0) << err_;
  const prove::Scan scan = prove::ReadScan(In("shaders")).value();
  EXPECT_EQ(scan.method, kSpirvMethod);
  ASSERT_EQ(scan.rows.size(), kernels::SpirvTable().size());
  for (size_t i = 0; i < kernels::SpirvTable().size(); ++i) {
    const gpu::KernelDesc desc = kernels::SpirvDesc(i);
    const auto row = std::ranges::find(scan.rows, desc.name, &prove::ScanRow::kernel);
    ASSERT_NE(row, scan.rows.end()) << desc.name;
    EXPECT_EQ(row->target, "spirv");
    EXPECT_EQ(row->workgroup, desc.workgroup) << desc.name;
    EXPECT_EQ(row->bindings, desc.binding_count);
    EXPECT_EQ(row->constant_bytes, desc.constant_bytes);
    EXPECT_GT(row->instructions.at("memory"), 0U) << desc.name;
    EXPECT_LE(row->code_bytes, kernels::SpirvTable()[i].code->words.size_bytes());
  }
  EXPECT_EQ(ScanBackend("vulkan"), ScanShaders());
  EXPECT_EQ(ScanBackend("cpu").method, kCodeMethod);
}

TEST_F(ScanCommandTest, S2_ScansOfShadersCompareAmongThemselvesAlone) {
  ASSERT_EQ(Run({"scan", "--backend", "vulkan", "-o", In("shaders")}), 0) << err_;
  ASSERT_EQ(Run({"scan", "-o", In("cpu")}), 0) << err_;
  EXPECT_EQ(Run({"scan", "--compare", In("shaders"), In("shaders")}), 0);
  EXPECT_EQ(Run({"scan", "--compare", In("shaders"), In("cpu")}), 2);
  // A driver that says nothing, or none at all, is a failed scan; figures are rows of their own.
  const int made =
      Run({"scan", "--backend", "vulkan", "--method", "spirv-driver-1", "-o", In("driver")});
  const prove::Scan driver = prove::ReadScan(In("driver")).value();
  EXPECT_EQ(driver.rows.size(), made == 0 ? 2 * kernels::SpirvTable().size() : 0);
  EXPECT_EQ(driver.failed.empty(), made == 0) << err_;
  if (made != 0 && gpu::ListDevices("vulkan")) {
    EXPECT_THAT(driver.failed, HasSubstr("VK_KHR_pipeline_executable_properties"));
  }
  EXPECT_EQ(Run({"scan", "--compare", In("shaders"), In("driver")}), 2);
  ASSERT_NE(Run({"scan", "--backend", "vulkan", "--method", "spirv-driver-1", "--device",
                 "no such device", "-o", In("none")}),
            0);
  EXPECT_THAT(prove::ReadScan(In("none"))->failed, testing::Not(testing::IsEmpty()));
}

// One digest of a shader's code: in the evidence's scan, in its traces, and of the same shader
// compiled at run time.
TEST_F(ScanCommandTest, S1_TheTraceHasTheDigestsOfTheScan) {
  // Without a driver there is no trace to hold the scan against.
  if (!gpu::ListDevices("vulkan")) return;
  for (const char* code : {"spirv", "source"}) {
    ASSERT_EQ(Run({"trace", "--backend", "vulkan", "--kernels", code, "--depth", "0", "--steps",
                   "1", "-q", "-o", In(code)}),
              0)
        << err_;
    const prove::Scan scan = prove::ReadScan(In(code)).value();
    EXPECT_EQ(prove::FormatScan(scan), prove::FormatScan(ScanShaders()));
    auto reader = trace::TraceReader::Open(In(code) + "/depth-0.trace").value();
    size_t kernels = 0;
    for (;;) {
      const auto event = reader->Next();
      ASSERT_TRUE(event) << event.error().ToString();
      if (!*event) break;
      const auto* kernel = std::get_if<trace::KernelEvent>(&**event);
      if (kernel == nullptr) continue;
      ++kernels;
      const auto row = std::ranges::find(scan.rows, kernel->name, &prove::ScanRow::kernel);
      ASSERT_NE(row, scan.rows.end()) << kernel->name;
      EXPECT_EQ(row->digest, kernel->digest) << kernel->name;
    }
    EXPECT_GT(kernels, 5U);
  }
  EXPECT_EQ(Run({"compare", In("spirv"), In("source")}), 0) << out_;
}

TEST_F(ScanCommandTest, C1_WrongWordsAreUsageErrors) {
  EXPECT_EQ(Run({"scan", "--method", "spirv-1"}), 64);
  EXPECT_EQ(Run({"scan", "--backend", "vulkan", "--method", "cpu-code-1"}), 64);
  EXPECT_EQ(Run({"scan", "--backend", "vulkan", "--device", "0"}), 64);
  EXPECT_THAT(err_, HasSubstr("the method is best; give --method spirv-driver-1."));
  EXPECT_EQ(Run({"scan", "--device", "0"}), 64);
  EXPECT_THAT(err_, HasSubstr("give --backend vulkan --method spirv-driver-1."));
  EXPECT_EQ(Run({"scan", "--backend", "null"}), 64);
  EXPECT_EQ(Run({"scan", "--compare", "one"}), 64);
  EXPECT_EQ(Run({"scan", "--compare", "one", ""}), 64);
  EXPECT_THAT(err_, HasSubstr("SCAN is empty"));
  for (const auto& [flag, value] : {std::pair{"--backend", "vulkan"},
                                    {"--backend", "cpu"},
                                    {"--method", "best"},
                                    {"--device", "0"},
                                    {"-o", "file"}}) {
    EXPECT_EQ(Run({"scan", "--compare", flag, value, "one", "two"}), 64) << flag;
    EXPECT_THAT(err_, HasSubstr("does not go with --compare")) << flag;
  }
  EXPECT_EQ(Run({"scan", "--backend", "vulkan", "--method", "spirv-driver-1", "--device", " "}),
            64);
  EXPECT_EQ(Run({"scan", "one"}), 64);
  EXPECT_EQ(Run({"scan", "--json"}), 64);
  EXPECT_EQ(Run({"scan", "--method", "guess"}), 64);
  EXPECT_EQ(Run({"scan", "--compare", In("none"), In("none")}), 2);
}

TEST_F(ScanCommandTest, ADashIsStandardOutput) {
  ASSERT_EQ(Run({"scan", "--backend", "vulkan"}), 0) << err_;
  const std::string scan = out_;
  ASSERT_EQ(Run({"scan", "--backend", "vulkan", "-o", "-"}), 0) << err_;
  EXPECT_EQ(out_, scan);
  EXPECT_FALSE(fs::exists("-"));
}

}  // namespace
}  // namespace assay::cli
