#include "cli/progress.h"

#include <latch>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/context.h"

namespace assay::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Lets a test wait for the first text.
class WaitableOutput final : public Output {
 public:
  void WaitForText() const { written_.wait(); }
  // Only while nothing writes.
  const std::string& text() const { return text_; }

 protected:
  int WriteAll(std::string_view text) override {
    text_ += text;
    if (!written_.try_wait()) written_.count_down();
    return 0;
  }

 private:
  std::string text_;
  std::latch written_{1};
};

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

TEST(ProgressTest, LongStepIsDrawnAndWiped) {
  WaitableOutput output;
  {
    Progress progress(&output, "loading", 4, "tensors",
                      {.first_draw = std::chrono::milliseconds(0)});
    progress.Update(1);
    output.WaitForText();
  }
  EXPECT_THAT(output.text(), HasSubstr("loading: "));
  EXPECT_THAT(output.text(), HasSubstr(" of 4 tensors ("));
  EXPECT_THAT(output.text(), EndsWith("\r\x1b[K"));
}

// Whether a progress that the context hands out would draw at once.
bool Draws(bool terminal, bool quiet) {
  StringOutput out, err;
  Context context({.out = &out, .err = &err, .err_is_terminal = terminal});
  context.set_quiet(quiet);
  return context.StartProgress("step").draws();
}

TEST(ProgressTest, IsShownOnATerminalOnlyAndNotQuietly) {
  EXPECT_TRUE(Draws(true, false));
  EXPECT_FALSE(Draws(true, true));
  EXPECT_FALSE(Draws(false, false));
}

}  // namespace
}  // namespace assay::cli
