#include "cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace assay::cli
