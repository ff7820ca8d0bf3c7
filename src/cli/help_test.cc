#include "cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/progress.h"
#include "cli/toy_command_for_test.h"

namespace assay::cli {
namespace {

TEST(HelpTest, ListsEverythingOfTheDescription) {
  ToyCommand command;
  EXPECT_EQ(FormatCommandHelp(command.Describe()), R"(usage: assay toy [flags] INPUT [REST...]

Does nothing of use.

First paragraph.

Second paragraph.

arguments:
  INPUT  A file.
  REST   More files.

flags:
      --fast         Hurries.
  -n, --steps N      Steps to take. (1 to 100; default 3)
      --temp T       Temperature. (0 to 2; default 0.5)
  -p, --prompt TEXT  Prompt.
      --format WORD  Format. (text, jsonl; default text)
      --depth N,...  Depths. (each 0 to 1000; default 0,600)
  -q, --quiet        Prints no progress and no notes.
  -h, --help         Prints this text.

other flags:
      --tag TAG  A tag. (may be given again)

examples:
  assay toy a
      Does nothing with a.

exit status:
    0  Done.
   64  The command line is wrong.
  130  Stopped by Ctrl-C.
)");
}

TEST(HelpTest, WrapsAtTheWidth) {
  ToyCommand command;
  CommandSpec spec = command.Describe();
  spec.flags[0].help = "word";
  for (int i = 0; i < 60; ++i) spec.flags[0].help += " word";
  const std::string help = FormatCommandHelp(spec);
  size_t longest = 0;
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = help.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  EXPECT_LE(longest, 100U);
  EXPECT_GT(longest, 90U);
}

TEST(ProgressTest, SaysShareAndTime) {
  using std::chrono::seconds;
  EXPECT_EQ(FormatProgress("loading", 12, 48, "tensors", seconds(2)),
            "loading: 12 of 48 tensors (25 %), 2 s");
  EXPECT_EQ(FormatProgress("comparing", 0, 0, "", seconds(3)), "comparing, 3 s");
  EXPECT_EQ(FormatProgress("reading", 5, 0, "lines", seconds(3)), "reading: 5 lines, 3 s");
}

TEST(ProgressTest, ShortStepIsNeverSeenAndNoOutputIsNoProgress) {
  StringOutput output;
  {
    Progress progress(&output, "quick", 2, "");
    progress.Update(1);
    Progress none(nullptr, "none", 0, "");
    none.Update(1);
  }
  EXPECT_EQ(output.text(), "");
}

}  // namespace
}  // namespace assay::cli
