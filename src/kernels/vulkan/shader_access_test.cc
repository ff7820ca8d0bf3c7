#include "kernels/vulkan/shader_access.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access_shaders/kFOURTH_BINDING.h"
#include "access_shaders/kHonest.h"
#include "access_shaders/kLONG_PUSH.h"
#include "access_shaders/kOTHER_SET.h"
#include "access_shaders/kREADS_BACK.h"
#include "access_shaders/kREADS_OUTPUT.h"
#include "access_shaders/kTHREADS.h"
#include "access_shaders/kUNIFORM_BUFFER.h"
#include "access_shaders/kUNUSED_BINDING.h"
#include "access_shaders/kWRITES_INPUT.h"
#include "access_shaders/kWRITES_VIEW.h"
#include "kernels/vulkan/spirv_table.h"

namespace assay::kernels::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What an op that is honest about access.comp would declare.
DeclaredKernel Declared() {
  return {.name = "test",
          .workgroup = {64, 1, 1},
          .binding_count = 3,
          .constant_bytes = 4,
          .words = {},
          .dispatches = {{Access::kRead, Access::kRead, Access::kWrite}}};
}

std::vector<std::string> Against(const DeclaredKernel& declared, const gpu::SpirvKernel& kernel) {
  const Result<ShaderInterface> shader = ReflectShader(kernel.words);
  EXPECT_TRUE(shader) << shader.error().ToString();
  return shader ? Disagreements(declared, *shader) : std::vector<std::string>{"unread"};
}
std::vector<std::string> Lies(const gpu::SpirvKernel& kernel) {
  return Against(Declared(), kernel);
}

TEST(ShaderAccess, E6_AnHonestShaderPasses) { EXPECT_THAT(Lies(kHonest), IsEmpty()); }

TEST(ShaderAccess, E6_AWriteThatIsDeclaredAsAReadIsCaught) {
  const auto caught =
      ElementsAre(AllOf(HasSubstr("Binding 0"), HasSubstr("declares that the kernel reads it"),
                        HasSubstr("the shader reads and writes it")));
  EXPECT_THAT(Lies(kWRITES_INPUT), caught);
  // The write goes through another view of the same binding.
  EXPECT_THAT(Lies(kWRITES_VIEW), caught);
}

TEST(ShaderAccess, E6_ARepeatedReadOfAnOutputIsCaught) {
  EXPECT_THAT(Lies(kREADS_OUTPUT), ElementsAre(HasSubstr("Binding 2")));
  // But for what the shader says it reads back.
  EXPECT_THAT(Lies(kREADS_BACK), IsEmpty());
  DeclaredKernel input = Declared();
  input.dispatches = {{Access::kRead, Access::kRead, Access::kRead}};
  EXPECT_THAT(Against(input, kREADS_BACK), ElementsAre(HasSubstr("Binding 2")));
}

TEST(ShaderAccess, E6_AnUnusedBindingIsCaught) {
  const std::vector<uint32_t> unoptimized = {
#include "access_shaders/unused_unoptimized.inc"
  };
  gpu::SpirvKernel kept;
  kept.words = unoptimized;
  for (const gpu::SpirvKernel& kernel : {kUNUSED_BINDING, kept}) {
    EXPECT_THAT(Lies(kernel),
                ElementsAre(AllOf(HasSubstr("Binding 1"), HasSubstr("does not use it"))));
  }
}

TEST(ShaderAccess, E6_EveryDispatchOfTheKernelCounts) {
  DeclaredKernel declared = Declared();
  declared.dispatches.push_back({Access::kRead, Access::kReadWrite, Access::kWrite});
  EXPECT_THAT(Against(declared, kHonest), ElementsAre(HasSubstr("Binding 1")));
  declared.dispatches.clear();
  EXPECT_THAT(Against(declared, kHonest), ElementsAre(HasSubstr("No op case")));
}

TEST(ShaderAccess, E6_AWrongPushBlockIsCaught) {
  EXPECT_THAT(Lies(kLONG_PUSH), ElementsAre(AllOf(HasSubstr("20 bytes"), HasSubstr("16"))));
}

TEST(ShaderAccess, E6_BindingsAndSetsThatNobodyDeclaredAreCaught) {
  EXPECT_THAT(Lies(kFOURTH_BINDING), ElementsAre(HasSubstr("uses binding 3")));
  EXPECT_THAT(Lies(kOTHER_SET), ElementsAre(HasSubstr("descriptor set 1"), HasSubstr("Binding 2")));
  EXPECT_THAT(Lies(kUNIFORM_BUFFER), ElementsAre(HasSubstr("no storage buffer")));
}

TEST(ShaderAccess, E6_AnotherWorkgroupAndEntryPointAreCaught) {
  EXPECT_THAT(Lies(kTHREADS), ElementsAre(AllOf(HasSubstr("(64, 1, 1)"), HasSubstr("(32, 1, 1)"))));
  Result<ShaderInterface> shader = ReflectShader(kHonest.words);
  ASSERT_TRUE(shader);
  shader->entry_points = {"entry"};
  EXPECT_THAT(Disagreements(Declared(), *shader), ElementsAre(HasSubstr("entry")));
}

TEST(ShaderAccess, E6_WhatIsNoModuleIsRefused) {
  EXPECT_FALSE(ReflectShader(std::vector<uint32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(ReflectShader(kHonest.words.first(kHonest.words.size() / 2)));
}

// The declared side comes from the ops themselves and has every shader of the table.
TEST(ShaderAccess, E6_EveryShaderOfTheTableIsDeclared) {
  const auto declared = DeclareKernels();
  ASSERT_TRUE(declared) << declared.error().ToString();
  ASSERT_EQ(declared->size(), SpirvTable().size());
  for (const SpirvRow& row : SpirvTable()) {
    const auto found = std::ranges::find(*declared, RowOf(row.kernel).name, &DeclaredKernel::name);
    ASSERT_NE(found, declared->end()) << RowOf(row.kernel).name;
    EXPECT_EQ(found->words.data(), row.code->words.data());
    EXPECT_FALSE(found->dispatches.empty()) << found->name;
  }
}

}  // namespace
}  // namespace assay::kernels::testing
