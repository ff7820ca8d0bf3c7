#include "kernels/simd/isa.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/kernel_table.h"

namespace assay::kernels {
namespace {

TEST(Isa, NamesGoBothWays) {
  for (size_t i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    EXPECT_EQ(ParseIsa(IsaName(isa)), isa);
  }
  EXPECT_EQ(ParseIsa("AVX9"), std::nullopt);
}

TEST(Isa, TheBestSupportedOneIsChosen) {
  EXPECT_EQ(ChooseIsa("").value(), SupportedIsas().front());
  for (const Isa isa : SupportedIsas()) EXPECT_EQ(ChooseIsa(IsaName(isa)).value(), isa);
}

TEST(Isa, AnUnknownForceIsRefusedWithTheKnownOnes) {
  const auto refused = ChooseIsa("AVX9");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("AVX9"));
  EXPECT_THAT(refused.error().message(),
              ::testing::HasSubstr(std::string(IsaName(SupportedIsas().back()))));
}

// Every kernel has code for every instruction set that this processor runs.
TEST(Isa, EveryKernelHasEverySupportedTarget) {
  for (const KernelRow& row : KernelTable()) {
    for (const Isa isa : SupportedIsas())
      EXPECT_NE(row.pick(isa), nullptr) << row.name << " " << IsaName(isa);
  }
}

// In a process of its own, since the choice is made once: exit status 0 when the kernels that would
// run are those of `isa`.
[[noreturn]] void ExitAfterForcing(Isa isa) {
  setenv("ASSAY_FORCE_ISA", std::string(IsaName(isa)).c_str(), 1);
  for (const KernelRow& row : KernelTable()) {
    if (row.cpu.target() != IsaName(isa) || row.cpu.resolve() != row.pick(isa)) std::exit(1);
  }
  std::exit(0);
}

[[noreturn]] void ExitAfterForcingNonsense() {
  setenv("ASSAY_FORCE_ISA", "AVX9", 1);
  for (const KernelRow& row : KernelTable()) {
    if (row.cpu.resolve() != nullptr) std::exit(1);
  }
  std::exit(0);
}

TEST(IsaDeathTest, TheForcedTargetRuns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Isa isa : SupportedIsas()) {
    EXPECT_EXIT(ExitAfterForcing(isa), ::testing::ExitedWithCode(0), "") << IsaName(isa);
  }
  EXPECT_EXIT(ExitAfterForcingNonsense(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace assay::kernels
