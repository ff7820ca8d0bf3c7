#include "gpu/spirv/module.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::gpu::spirv {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

using Words = std::vector<uint32_t>;

// What glslc makes of scale.comp and of scale_renamed.comp (CMakeLists.txt).
const Words kPlain = {
#include "spirv_variants/plain.inc"
};
const Words kDebug = {
#include "spirv_variants/debug.inc"
};
const Words kRenamed = {
#include "spirv_variants/renamed.inc"
};
const Words kConstant = {
#include "spirv_variants/constant.inc"
};
const Words kWorkgroup = {
#include "spirv_variants/workgroup.inc"
};
const Words kSpecialized = {
#include "spirv_variants/specialized.inc"
};
const Words kUnoptimized = {
#include "spirv_variants/unoptimized.inc"
};
const Words kUnoptimizedRenamed = {
#include "spirv_variants/unoptimized_renamed.inc"
};

ModuleFacts Read(const Words& words, const Words& specialization = {}) {
  Result<ModuleFacts> facts = ReadModule(words, specialization);
  EXPECT_TRUE(facts) << facts.error().ToString();
  return facts ? *facts : ModuleFacts{};
}

std::string DigestOfAll(const Words& words) { return Read(words).digest; }

TEST(SpirvModule, S1_NamesLinesAndPathsDoNotChangeTheDigest) {
  ASSERT_NE(kPlain, kDebug);
  ASSERT_NE(kDebug, kRenamed);
  EXPECT_EQ(DigestOfAll(kPlain), DigestOfAll(kDebug));
  EXPECT_EQ(DigestOfAll(kPlain), DigestOfAll(kRenamed));
  ASSERT_NE(kUnoptimized, kUnoptimizedRenamed);
  EXPECT_EQ(DigestOfAll(kUnoptimized), DigestOfAll(kUnoptimizedRenamed));
  EXPECT_EQ(Read(kPlain).instructions, Read(kRenamed).instructions);
  EXPECT_EQ(Read(kPlain).code_bytes, Read(kRenamed).code_bytes);
}

TEST(SpirvModule, S1_TheCompilersNameAndBoundDoNotChangeTheDigest) {
  Words other = kPlain;
  other[2] = 99;
  other[3] += 1000;
  EXPECT_EQ(DigestOfAll(other), DigestOfAll(kPlain));
}

TEST(SpirvModule, S1_ConstantWorkgroupAndSpecializationChangeTheDigest) {
  const std::vector<std::string> digests = {
      DigestOfAll(kPlain),
      DigestOfAll(kConstant),
      DigestOfAll(kWorkgroup),
      DigestOfAll(kUnoptimized),
      DigestOfAll(kSpecialized),
      Read(kSpecialized, {64}).digest,
      Read(kSpecialized, {64, 16}).digest,
      Read(kSpecialized, {64, 17}).digest,
  };
  for (size_t i = 0; i < digests.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(digests[i], digests[j]) << i << " and " << j;
  }
}

TEST(SpirvModule, S1_EveryWordThatIsNoIdCounts) {
  // The last word of the constant 2.0.
  Words changed = kPlain;
  const auto two = std::ranges::find(changed, 0x40000000U);
  ASSERT_NE(two, changed.end());
  *two = 0x40000001U;
  EXPECT_NE(DigestOfAll(changed), DigestOfAll(kPlain));
}

TEST(SpirvModule, S1_TellsWorkgroupAndSharedMemory) {
  EXPECT_EQ(Read(kPlain).workgroup, (Extent3{64, 1, 1}));
  EXPECT_EQ(Read(kWorkgroup).workgroup, (Extent3{32, 1, 1}));
  // 16 pairs of four floats, three words.
  EXPECT_EQ(Read(kPlain).shared_bytes, 16U * 16 + 12);
  EXPECT_EQ(Read(kSpecialized, {128, 4}).workgroup, (Extent3{128, 1, 1}));
  EXPECT_EQ(Read(kSpecialized, {128, 4}).shared_bytes, 4U * 16 + 12);
  EXPECT_EQ(Read(kSpecialized).shared_bytes, 16U * 16 + 12);
}

// A function that loads a cooperative matrix, multiplies and stores, with its ids counted from
// `first` on and what the load says of its memory.
Words MatrixModule(uint32_t first, uint32_t load_access) {
  const auto op = [](uint32_t words, uint32_t number) { return words << 16 | number; };
  const auto id = [&](uint32_t i) { return first + i; };
  return {
      0x07230203,  0x10500, 0,      100,   0,              //
      op(6, 5358), id(0),   id(1),  id(2), id(3),  id(3),  // The type.
      op(5, 54),   id(4),   id(5),  0,     id(6),          //
      op(8, 5359), id(0),   id(7),  id(8), id(9),  id(10), load_access,
      id(2),                                                       // Visible to a scope.
      op(6, 5361), id(0),   id(11), id(7), id(7),  id(7),          //
      op(7, 5360), id(8),   id(11), id(9), id(10), 0x28,   id(2),  // Available to a scope.
      op(1, 56),
  };
}

TEST(SpirvModule, S1_CooperativeMatricesAreReadOperandByOperand) {
  const ModuleFacts facts = Read(MatrixModule(1, 0x30));
  EXPECT_THAT(facts.instructions, Contains(Pair("memory", 2)));
  EXPECT_THAT(facts.instructions, Contains(Pair("arithmetic", 1)));
  EXPECT_EQ(Read(MatrixModule(40, 0x30)).digest, facts.digest);
  EXPECT_NE(Read(MatrixModule(1, 0x10)).digest, facts.digest);
}

TEST(SpirvModule, S1_CountsInstructionsByClass) {
  const auto counts = Read(kUnoptimized).instructions;
  EXPECT_THAT(counts, Contains(Pair("barrier", 1)));
  EXPECT_THAT(counts, Contains(Pair("math", 1)));  // exp
  EXPECT_THAT(counts, Contains(Pair("call", 1)));
  EXPECT_THAT(counts, Contains(Key("memory")));
  EXPECT_THAT(counts, Contains(Key("arithmetic")));
  EXPECT_THAT(counts, Contains(Key("conversion")));
  EXPECT_THAT(counts, Contains(Key("address")));
  EXPECT_THAT(counts, Not(Contains(Key(""))));
}

// A module of its header and `instructions`.
Words Module(std::initializer_list<Words> instructions) {
  Words words = {0x07230203, 0x00010500, 0, 100, 0};
  for (const Words& instruction : instructions) {
    words.push_back(static_cast<uint32_t>(instruction.size()) << 16 | instruction[0]);
    words.insert(words.end(), instruction.begin() + 1, instruction.end());
  }
  return words;
}

TEST(SpirvModule, S1_DebugInstructionsOfAnExtendedSetDoNotCount) {
  // "NonSemantic.X", and an instruction of it in place of nothing.
  const Words import = {11, 90, 0x536E6F4E, 0x6E616D65, 0x2E636974, 0x00000058};
  const Words with = Module({import, {19, 7}, {12, 7, 91, 90, 3, 5}});
  EXPECT_EQ(DigestOfAll(with), DigestOfAll(Module({{19, 7}})));
  // The same of a set with a meaning.
  Words meaning = import;
  meaning[2] = 0x536E6F4D;
  EXPECT_NE(DigestOfAll(Module({meaning, {19, 7}})), DigestOfAll(Module({{19, 7}})));
}

TEST(SpirvModule, S1_ASwitchTakesNumbersAsWideAsItsSelector) {
  // A 64-bit integer type 1, a constant 2 of it, and the cases 5 and 6 of two words each.
  const auto cases = [](uint32_t low, uint32_t label) {
    return Module({{21, 1, 64, 0}, {43, 1, 2, 9, 0}, {251, 2, 50, low, 0, label, 6, 0, 52}});
  };
  EXPECT_EQ(DigestOfAll(cases(5, 51)), DigestOfAll(cases(5, 61)));
  EXPECT_NE(DigestOfAll(cases(5, 51)), DigestOfAll(cases(7, 51)));
}

TEST(SpirvModule, S1_WhatIsNoModuleIsRefused) {
  for (const Words& words : {Words{}, Words{0x07230203}, Words(10, 0), Words(10, 0x03022307)}) {
    const Result<ModuleFacts> facts = ReadModule(words, {});
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code(), ErrorCode::kFormat);
  }
  const Result<ModuleFacts> unknown = ReadModule(Module({{9999, 1}}), {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(unknown.error().message(), HasSubstr("9999"));
  // A word too many, a string without an end, a length of 0 and one past the end.
  for (const Words& tail : {Words{0x00030013, 1, 2}, Words{0x0002000A, 0x41414141},
                            Words{0x00000013}, Words{0x00090013, 1}}) {
    Words words = Module({});
    words.insert(words.end(), tail.begin(), tail.end());
    EXPECT_FALSE(ReadModule(words, {})) << tail[0];
    EXPECT_FALSE(DigestOf(words, {}).empty());
  }
}

TEST(SpirvModule, S1_EveryCutIsReadOrRefused) {
  for (size_t size = 0; size < kPlain.size(); ++size) {
    (void)ReadModule(std::span(kPlain).first(size), {});
  }
  for (size_t at = 0; at < kPlain.size(); ++at) {
    Words changed = kPlain;
    changed[at] = ~changed[at];
    (void)ReadModule(changed, {});
  }
}

TEST(SpirvModule, S1_AModuleThatCannotBeReadHasTheDigestOfItsWords) {
  const Words unknown = Module({{9999, 1}});
  const Words other = Module({{9999, 2}});
  EXPECT_NE(DigestOf(unknown, {}), DigestOf(other, {}));
  EXPECT_EQ(DigestOf(kPlain, {}), DigestOfAll(kPlain));
}

}  // namespace
}  // namespace assay::gpu::spirv
