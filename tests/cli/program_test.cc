// The program as a whole: help, version, mistakes on the command line, its standard streams.
#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "support/golden.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ProgramTest, HelpOfEveryCommandIsWhatTheGoldenSays) {
  const ProgramResult program = RunAssay({"--help"});
  EXPECT_EQ(program.status, 0);
  EXPECT_EQ(program.err, "");
  ExpectGolden("cli/help.txt", program.out);
  for (const cli::CommandEntry& entry : cli::Commands()) {
    const std::string name(entry.name);
    const ProgramResult help = RunAssay({"help", name});
    EXPECT_EQ(help.status, 0) << name;
    EXPECT_EQ(help.err, "") << name;
    ExpectGolden("cli/help_" + name + ".txt", help.out);
    EXPECT_EQ(RunAssay({name, "--help"}).out, help.out);
  }
}

TEST(ProgramTest, EveryCommandRefusesAnUnknownFlagWithAHint) {
  for (const cli::CommandEntry& entry : cli::Commands()) {
    const std::string name(entry.name);
    const ProgramResult result = RunAssay({name, "--qiuet"});
    EXPECT_EQ(result.status, 64) << name;
    EXPECT_EQ(result.out, "") << name;
    EXPECT_EQ(result.err, "assay " + name +
                              ": error: There is no flag --qiuet; did you mean --quiet? See "
                              "\"assay " +
                              name + " --help\".\n");
  }
}

TEST(ProgramTest, VersionIsThatOfTheProject) {
  const ProgramResult result = RunAssay({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "assay " ASSAY_PROJECT_VERSION "\n");
}

TEST(ProgramTest, UnknownCommandIsAUsageError) {
  const ProgramResult result = RunAssay({"comapre", "a", "b"});
  EXPECT_EQ(result.status, 64);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "assay: error: There is no command \"comapre\"; did you mean \"compare\"? See \"assay "
            "--help\".\n");
  EXPECT_EQ(RunAssay({}).status, 64);
}

TEST(ProgramTest, ClosedOrFullStandardOutputIsAnError) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"--help"}, {"--version"}, {"help", "compare"}}) {
    const ProgramResult full = RunAssay(words, OutputTo::kFullDevice);
    EXPECT_EQ(full.status, 2);
    EXPECT_THAT(full.err, HasSubstr("No space left on device"));
    const ProgramResult closed = RunAssay(words, OutputTo::kClosed);
    EXPECT_EQ(closed.status, 2);
    EXPECT_THAT(closed.err, HasSubstr("Cannot write to standard output"));
  }
}

}  // namespace
}  // namespace assay
