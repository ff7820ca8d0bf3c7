#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nearest.h"
#include "cli/toy_command_for_test.h"

namespace assay::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class ArgumentsTest : public testing::Test {
 protected:
  Result<CommonFlags> Parse(const Words& words) {
    return ParseArguments(command_.Describe(), words);
  }
  // The message of the error that `words` give.
  std::string Message(const Words& words) {
    const auto result = Parse(words);
    if (result) return "accepted";
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
    return result.error().message();
  }
  ToyCommand command_;
  ToyValues& values_ = command_.values;
};

TEST_F(ArgumentsTest, FillsEveryTypeOfFlag) {
  ASSERT_TRUE(Parse({"in", "--fast", "-n", "7", "--temp=1.25", "--prompt", "hello", "--format",
                     "jsonl", "--depth", "1,2,3", "--tag", "x", "--tag=y"}));
  EXPECT_EQ(values_.input, "in");
  EXPECT_TRUE(values_.fast);
  EXPECT_EQ(values_.steps, 7);
  EXPECT_TRUE(values_.steps_given);
  EXPECT_EQ(values_.temperature, 1.25);
  EXPECT_EQ(values_.prompt, "hello");
  EXPECT_EQ(values_.format, "jsonl");
  EXPECT_THAT(values_.depths, ElementsAre(1, 2, 3));
  EXPECT_THAT(values_.tags, ElementsAre("x", "y"));
}

TEST_F(ArgumentsTest, AbsentFlagsKeepTheirDefaults) {
  ASSERT_TRUE(Parse({"in"}));
  EXPECT_EQ(values_.steps, 3);
  EXPECT_FALSE(values_.steps_given);
  EXPECT_THAT(values_.depths, ElementsAre(0, 600));
}

TEST_F(ArgumentsTest, ScalarGivenTwiceKeepsTheLast) {
  ASSERT_TRUE(Parse({"in", "-n", "7", "--steps=8", "--fast", "--fast"}));
  EXPECT_EQ(values_.steps, 8);
  ASSERT_TRUE(Parse({"in", "--steps=8", "-n9"}));
  EXPECT_EQ(values_.steps, 9);
}

TEST_F(ArgumentsTest, ValuesAreTakenAsTheyStand) {
  ASSERT_TRUE(Parse({"in", "-p", "[a, b]", "--tag", "--fast", "--tag=", "--tag", "a=b"}));
  EXPECT_EQ(values_.prompt, "[a, b]");
  EXPECT_THAT(values_.tags, ElementsAre("--fast", "", "a=b"));
  EXPECT_FALSE(values_.fast);
  ASSERT_TRUE(Parse({"in", "--prompt="}));
  EXPECT_EQ(values_.prompt, "");
  EXPECT_EQ(Message({""}), "Argument INPUT is empty (\"\"); give it a value or leave it out.");
  ASSERT_TRUE(Parse({"in", "--prompt", "-1"}));
  EXPECT_EQ(values_.prompt, "-1");
  EXPECT_FALSE(Parse({"in", "--prompt", "--help"})->help);
  EXPECT_EQ(values_.prompt, "--help");
}

TEST_F(ArgumentsTest, DoubleDashEndsTheFlags) {
  ASSERT_TRUE(Parse({"--", "--fast", "-n", "--steps=4"}));
  EXPECT_EQ(values_.input, "--fast");
  EXPECT_THAT(values_.rest, ElementsAre("-n", "--steps=4"));
  EXPECT_FALSE(values_.fast);
}

TEST_F(ArgumentsTest, SingleDashIsAnArgument) {
  ASSERT_TRUE(Parse({"-"}));
  EXPECT_EQ(values_.input, "-");
}

TEST_F(ArgumentsTest, NumbersOutsideNameFlagValueAndLimits) {
  for (const char* wrong : {"0", "101", "x", "", "1.5", "7 ", "99999999999999999999", "0x10"}) {
    EXPECT_EQ(Message({"in", "--steps", wrong}),
              "Flag --steps (\"" + std::string(wrong) + "\") is not a whole number from 1 to 100.");
  }
  for (const char* wrong : {"-0.5", "2.5", "nan", "inf", "", "1e"}) {
    EXPECT_EQ(Message({"in", "--temp", wrong}),
              "Flag --temp (\"" + std::string(wrong) + "\") is not a number from 0 to 2.");
  }
  EXPECT_EQ(Message({"in", "--depth", "1,2000"}),
            "Item 2 of flag --depth (\"2000\") is not a whole number from 0 to 1000.");
  EXPECT_EQ(Message({"in", "--depth", "1,"}),
            "Item 2 of flag --depth (\"\") is not a whole number from 0 to 1000.");
  EXPECT_EQ(Message({"in", "--depth", "x"}),
            "Flag --depth (\"x\") is not a whole number from 0 to 1000.");
  EXPECT_EQ(Message({"in", "--format", "xml"}),
            "Flag --format (\"xml\") is not one of text, jsonl.");
}

TEST_F(ArgumentsTest, UnknownFlagNamesTheNearest) {
  EXPECT_EQ(Message({"in", "--stpes", "4"}), "There is no flag --stpes; did you mean --steps?");
  EXPECT_EQ(Message({"in", "--stpes=4"}), "There is no flag --stpes; did you mean --steps?");
  EXPECT_EQ(Message({"in", "--zzzzzz"}), "There is no flag --zzzzzz.");
  EXPECT_EQ(Message({"in", "-x"}), "There is no flag -x.");
}

TEST_F(ArgumentsTest, MissingAndSuperfluousWords) {
  EXPECT_EQ(Message({}), "The argument INPUT is missing.");
  EXPECT_EQ(Message({"in", "--steps"}), "Flag --steps needs a value.");
  EXPECT_EQ(Message({"in", "--fast=yes"}), "Flag --fast takes no value (\"yes\").");
  EXPECT_EQ(Message({"in", "--quiet=yes"}), "Flag --quiet takes no value (\"yes\").");
}

TEST_F(ArgumentsTest, ExtraArgumentIsRefusedByName) {
  CommandSpec spec = command_.Describe();
  spec.positionals.pop_back();
  const Words words = {"a", "b"};
  EXPECT_EQ(ParseArguments(spec, words).error().message(),
            "The argument \"b\" is one too many: toy takes at most 1.");
}

TEST_F(ArgumentsTest, HelpWinsOverMistakes) {
  EXPECT_TRUE(Parse({"--help", "--nonsense"})->help);
  EXPECT_TRUE(Parse({"-h", "--steps"})->help);
  EXPECT_TRUE(Parse({"in", "-q"})->quiet);
}

TEST(NearestTest, CountsSwapsAsOneEdit) {
  EXPECT_EQ(EditDistance("compare", "comapre"), 1U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  const Words names = {"compare", "show", "seal"};
  EXPECT_EQ(Nearest("comp", names), "compare");
  EXPECT_EQ(Nearest("shwo", names), "show");
  EXPECT_EQ(Nearest("elephant", names), "");
}

}  // namespace
}  // namespace assay::cli
