#include "prove/program_code.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/temp_folder.h"

// Functions of the test program itself. Each has a name of its own and is not folded into another
// of the same code, so that what is equal is equal by its digest.
#ifdef __clang__
#define ASSAY_KEEP [[gnu::noinline]]
#else
#define ASSAY_KEEP [[gnu::noinline, gnu::noclone, gnu::no_icf]]
#endif

// Three functions of the same instructions with a table as a compiler makes for a switch; the third
// goes to other places.
#define ASSAY_SWITCH(NAME, FIRST, SECOND)                                       \
  ".text\n.type " NAME ",@function\n" NAME                                      \
  ":\n"                                                                         \
  "lea 3f(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n" \
  "1: mov $7, %eax\nret\n2: mov $9, %eax\nret\n.size " NAME ", . - " NAME       \
  "\n"                                                                          \
  ".section .rodata\n.balign 4\n3: .long " FIRST " - 3b, " SECOND               \
  " - 3b\n.long 0x7fffffff\n.text\n"
asm(ASSAY_SWITCH("assay_test_switch", "1b", "2b") ASSAY_SWITCH("assay_test_switch_twin", "1b", "2b")
        ASSAY_SWITCH("assay_test_switch_other", "2b", "1b"));
extern "C" {
int assay_test_switch(uint64_t x);
int assay_test_switch_twin(uint64_t x);
int assay_test_switch_other(uint64_t x);
}

namespace assay::prove {
namespace {

constexpr double kTable[4] = {1.0, 2.0, 3.0, 5.0};
constexpr double kOther[4] = {1.0, 2.0, 3.0, 7.0};

ASSAY_KEEP double Scale(double x) { return x * 3.5 + 1.0; }
ASSAY_KEEP double ScaleTwin(double x) { return x * 3.5 + 1.0; }
ASSAY_KEEP double ScaleOther(double x) { return x * 4.5 + 1.0; }

ASSAY_KEEP double Calls(double x) { return Scale(x) + 1.0; }
ASSAY_KEEP double CallsTwin(double x) { return ScaleTwin(x) + 1.0; }
ASSAY_KEEP double CallsOther(double x) { return ScaleOther(x) + 1.0; }

ASSAY_KEEP double Imports(double x) { return std::sin(x) + 1.0; }
ASSAY_KEEP double ImportsOther(double x) { return std::cos(x) + 1.0; }

ASSAY_KEEP double Looks(size_t i) { return kTable[i & 3]; }
ASSAY_KEEP double LooksTwin(size_t i) { return kTable[i & 3]; }
ASSAY_KEEP double LooksOther(size_t i) { return kOther[i & 3]; }

double (*volatile g_target)(double) = nullptr;
ASSAY_KEEP void Takes() { g_target = &Scale; }
ASSAY_KEEP void TakesOther() { g_target = &ScaleOther; }

class ProgramCodeTest : public testing::Test {
 protected:
  template <typename Function>
  CodeDigest Of(Function* function) {
    const auto digest = program_->DigestOf(reinterpret_cast<uint64_t>(function));
    EXPECT_TRUE(digest) << digest.error().ToString();
    return digest.value_or(CodeDigest{});
  }
  std::unique_ptr<ProgramCode> program_ = ProgramCode::OpenRunning().value();
};

TEST_F(ProgramCodeTest, S1_SameCodeElsewhereHasTheSameDigest) {
  EXPECT_EQ(Of(&Scale).digest, Of(&ScaleTwin).digest);
  EXPECT_EQ(Of(&Calls).digest, Of(&CallsTwin).digest);
  EXPECT_EQ(Of(&Looks).digest, Of(&LooksTwin).digest);
}

TEST_F(ProgramCodeTest, S1_OtherConstantIsOtherCode) {
  EXPECT_NE(Of(&Scale).digest, Of(&ScaleOther).digest);
  EXPECT_NE(Of(&Looks).digest, Of(&LooksOther).digest);
}

TEST_F(ProgramCodeTest, S1_CodeThatIsCalledCounts) {
  EXPECT_NE(Of(&Calls).digest, Of(&CallsOther).digest);
  EXPECT_NE(Of(&Takes).digest, Of(&TakesOther).digest);
  EXPECT_NE(Of(&Imports).digest, Of(&ImportsOther).digest);
  EXPECT_GT(Of(&Calls).code_bytes, Of(&Scale).code_bytes);
}

TEST_F(ProgramCodeTest, S1_ACaseThatGoesElsewhereIsOtherCode) {
  EXPECT_EQ(assay_test_switch(0), 7);
  EXPECT_EQ(assay_test_switch_other(0), 9);
  EXPECT_EQ(Of(&assay_test_switch).digest, Of(&assay_test_switch_twin).digest);
  EXPECT_NE(Of(&assay_test_switch).digest, Of(&assay_test_switch_other).digest);
}

TEST_F(ProgramCodeTest, S1_InstructionsAreCountedByClass) {
  const auto counts = Of(&Calls).instructions;
  EXPECT_GE(counts.at("call") + counts.at("branch"), 2U);
  EXPECT_GE(counts.at("vector"), 2U);
}

TEST_F(ProgramCodeTest, S2_AddressOfNoFunctionIsAnError) {
  const auto inside = program_->DigestOf(reinterpret_cast<uint64_t>(&Scale) + 1);
  ASSERT_FALSE(inside);
  EXPECT_EQ(inside.error().code(), ErrorCode::kNotFound);
}

TEST_F(ProgramCodeTest, S2_FilesThatAreNoProgramsAreRefused) {
  const TempFolder temp;
  const std::string path = (temp.path() / "program").string();
  ASSERT_TRUE(WriteFile(path, "no program"));
  EXPECT_EQ(ProgramCode::Open(path).error().code(), ErrorCode::kFormat);
  // Cut anywhere, a program is refused or read in part, never beyond its end.
  const std::string whole = ReadFile("/proc/self/exe", UINT64_MAX).value();
  for (const size_t size : {size_t{10}, size_t{64}, whole.size() / 2, whole.size() - 1}) {
    ASSERT_TRUE(WriteFile(path, std::string_view(whole).substr(0, size)));
    EXPECT_FALSE(ProgramCode::Open(path)) << size;
  }
}

}  // namespace
}  // namespace assay::prove
