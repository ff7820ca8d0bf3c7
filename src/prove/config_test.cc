#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/prove.h"

#include "prove/placeholders.h"

namespace assay::prove {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRecord = "[record]\ncommands = [\"true\"]\n";

TEST(Config, P2_TheTemplateIsReadAndSaysTheDefaults) {
  const Result<Config> config = ParseConfig(ConfigTemplate(), "assay.toml");
  ASSERT_TRUE(config) << config.error().ToString();
  EXPECT_EQ(config->build_commands.size(), 2U);
  EXPECT_THAT(config->depths, ElementsAre(0, 600));
  const Config defaults = ParseConfig(kRecord, "assay.toml").value();
  EXPECT_EQ(config->build_limit_s, defaults.build_limit_s);
  EXPECT_EQ(config->record_limit_s, defaults.record_limit_s);
  EXPECT_EQ(config->depths, defaults.depths);
  EXPECT_TRUE(defaults.require_kernels && defaults.require_trace && defaults.require_ids);
  // The template names every kind that may be allowed.
  for (size_t i = 0; i < kChangeKindCount; ++i) {
    EXPECT_THAT(std::string(ConfigTemplate()),
                HasSubstr(std::string(ChangeKindName(static_cast<ChangeKind>(i)))));
  }
}

TEST(Config, P2_EveryValueIsTaken) {
  const Config config =
      ParseConfig(
          "[build]\ncommands = [\"a {build}\", \"b {source}\"]\ntime_limit_s = 5\n"
          "[record]\ncommands = [\"c {model} {depths}\"]\ndepths = [1, 7]\nmodel = \"m/x.gguf\"\n"
          "time_limit_s = 6\n[verdict]\nrequire = [\"ids\"]\nallow = [\"order\", \"numbering\"]\n",
          "/folder/assay.toml")
          .value();
  EXPECT_THAT(config.build_commands, ElementsAre("a {build}", "b {source}"));
  EXPECT_EQ(config.build_limit_s, 5);
  EXPECT_EQ(config.record_limit_s, 6);
  EXPECT_THAT(config.depths, ElementsAre(1, 7));
  EXPECT_EQ(config.model, "/folder/m/x.gguf");
  EXPECT_TRUE(config.require_ids);
  EXPECT_FALSE(config.require_kernels || config.require_trace);
  EXPECT_THAT(config.allow, ElementsAre(ChangeKind::kNumbering, ChangeKind::kOrder));
}

TEST(Config, P2_WhatIsWrongIsNamedWithLineAndColumn) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"[record]\ncommands = [\"a\"\n",
       "line 2, column 17: this is no TOML: encountered end-of-file (in a"},
      {"[\x03record]\n", "line 1, column 2: the byte 0x03 may not stand in TOML."},
      {"# \xC3\xA9\n[rec\xEF\xBB\xAF]\n",
       "line 2, column 5: a character beyond ASCII may stand in a line of its own behind '#' "
       "alone; "
       "in a text write it as \\uXXXX."},
      {"[(", "line 1, column 2: this is no TOML: "},
      {"[record]\ncommandz = []\n",
       "line 2, column 1: There is no key \"commandz\" in [record]; did "
       "you mean \"commands\"?"},
      {"[recordd]\n",
       "line 1, column 2: There is no key \"recordd\" in the file; did you mean "
       "\"record\"?"},
      {"[verdict]\nwho = 1\n", "the keys are require, allow"},
      {"record = 3\n", "line 1, column 10: \"record\" must be a table"},
      {"[record]\ncommands = \"a\"\n", "line 2, column 12: \"commands\" must be a list"},
      {"[record]\ncommands = [\"a\", 2]\n",
       "line 2, column 18: \"commands\" must be a list of texts"},
      {"[record]\ndepths = [0, -1]\n", "line 2, column 14: \"depths\" must hold whole numbers"},
      {"[record]\ndepths = [5, 5]\n", "line 2, column 14: \"depths\" must rise"},
      {"[record]\nmodel = 7\n", "line 2, column 9: \"model\" must be a text"},
      {"[build]\ntime_limit_s = 0\n", "line 2, column 16: \"time_limit_s\" must hold"},
      {"[build]\ncommands = [\"a {depth}\"]\n", "{depth} stands for nothing here"},
      {"[record]\ncommands = [\"a {dept}\"]\n", "did you mean {depth}?"},
      {"[verdict]\nrequire = [\"id\"]\n",
       "\"id\" is no value of \"require\"; did you mean \"ids\"?"},
      {"[verdict]\nrequire = []\n", "must name a part"},
      {"[verdict]\nallow = [\"barrier-fewer\"]\n", "did you mean \"barriers-fewer\"?"},
      {"[record.variables]\nout = \"x\"\n", "line 2, column 1: {out} stands for something"},
      {"", "there is nothing to record"},
      {"[build]\n[record]\ndepths = [1]\n", "line 2, column 1: there is nothing to record"},
      {"[record]\ncommands = []\n", "line 2, column 12: there is nothing to record"},
      {"[record]\ncommands = [\"a\"]\ndepths = []\n", "line 3, column 10: \"depths\" must name"},
  };
  for (const auto& each : cases) {
    const Result<Config> config = ParseConfig(each.text, "assay.toml");
    ASSERT_FALSE(config) << each.text;
    EXPECT_EQ(config.error().code(), ErrorCode::kFormat);
    EXPECT_THAT(config.error().message(), HasSubstr(each.message)) << each.text;
    // One mark ends a sentence.
    EXPECT_THAT(config.error().message(), testing::Not(testing::ContainsRegex("[.?][.]$")));
  }
}

TEST(Config, P2_NamesOfOnesOwnStandForTexts) {
  const std::string text =
      "[record]\ncommands = [\"a {device} {more}\"]\n[record.variables]\ndevice = \"cpu\"\n";
  const std::vector<std::string> more = {"more"};
  EXPECT_EQ(ParseConfig(text, "assay.toml", more).value().variables.at("device"), "cpu");
  EXPECT_THAT(ParseConfig(text, "assay.toml").error().message(),
              HasSubstr("{more} stands for nothing here"));
}

TEST(Placeholders, P2_ValuesAreQuotedForTheShellAndTheRestIsLeftAlone) {
  EXPECT_EQ(FillPlaceholders("{out} ${out} {Out} {x y} {} {out", {{"out", "a 'b"}}),
            "'a '\\''b' ${out} {Out} {x y} {} {out");
  EXPECT_TRUE(HasPlaceholder("a{depth}", "depth"));
  EXPECT_FALSE(HasPlaceholder("a${depth} {depths}", "depth"));
}

}  // namespace
}  // namespace assay::prove
