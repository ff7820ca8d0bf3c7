#include "prove/counts.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

#include "base/file.h"
#include "support/temp_folder.h"

namespace assay::prove {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CountsTest : public testing::Test {
 protected:
  ~CountsTest() override { std::filesystem::remove(path_); }
  // A trace of `steps` tokens: two dispatches and a barrier each, behind a longer prefill.
  Result<TokenCounts> Count(const std::string& meta, int tokens, const std::string& extra = "") {
    std::string text = "assay-trace 2\n" + meta + "buffer #0 size=64 kind=scratch\n" +
                       "kernel k0 name=k digest=ab workgroup=1,1,1\n";
    const std::string dispatch = "dispatch k0 grid=1,1,1 r#0[0,16) w#0[16,20)\n";
    text += "begin\n" + dispatch + dispatch + dispatch + dispatch + "commit\nwait\n";
    text += "wait\n";  // For nothing: no token.
    for (int i = 0; i < tokens; ++i) {
      text += "begin\n" + dispatch + "barrier\n" + dispatch + extra + "commit\nwait\n";
    }
    EXPECT_TRUE(WriteFile(path_, text));
    const Status sealed = trace::Seal(path_);
    EXPECT_TRUE(sealed) << sealed.error().ToString();
    return CountTokens(path_);
  }
  const TempFolder temp_;
  const std::string path_ = (temp_.path() / "run.trace").string();
};

TEST_F(CountsTest, P1_TheLastStepsAreCountedAndNoPrefill) {
  const TokenCounts counts = Count("meta steps 3\n", 3).value();
  EXPECT_EQ(
      counts,
      (TokenCounts{
          .tokens = 3, .dispatches = 6, .barriers = 3, .bytes_bound = 3 * 2 * 20, .commits = 3}));
  EXPECT_EQ(Count("", 3).value().tokens, 4U);
  EXPECT_EQ(Count("", 3).value().dispatches, 10U);
  EXPECT_THAT(Count("meta steps 9\n", 3).error().message(), HasSubstr("has 4 waits"));
}

TEST_F(CountsTest, P1_ACountThatRoseIsNamedAndOneThatFellIsNoFault) {
  const CountsByTrace before = {{"trace", Count("meta steps 3\n", 3).value()}};
  const std::string more = "barrier\ndispatch k0 grid=1,1,1 r#0[0,16)\n";
  const CountsByTrace after = {{"trace", Count("meta steps 2\n", 3, more).value()}};
  const CountsCheck risen = CheckCounts(after, before).value();
  EXPECT_THAT(risen.risen, ElementsAre("trace: dispatches a token rose from 2 to 3.",
                                       "trace: barriers a token rose from 1 to 2.",
                                       "trace: bytes bound a token rose from 40 to 56."));
  EXPECT_THAT(risen.fallen, IsEmpty());
  const CountsCheck fallen = CheckCounts(before, after).value();
  EXPECT_THAT(fallen.risen, IsEmpty());
  EXPECT_EQ(fallen.fallen.size(), 3U);
  // The same share of another number of tokens is the same.
  const CountsByTrace longer = {{"trace", Count("meta steps 2\n", 2).value()}};
  EXPECT_THAT(CheckCounts(longer, before).value().risen, IsEmpty());
  EXPECT_THAT(CheckCounts(longer, before).value().fallen, IsEmpty());
}

TEST_F(CountsTest, P1_OtherTracesAreNotCompared) {
  const TokenCounts counts = Count("", 1).value();
  EXPECT_THAT(CheckCounts({{"depth-0", counts}}, {}).error().message(),
              HasSubstr("Only the recording has \"depth-0\""));
  EXPECT_THAT(CheckCounts({}, {{"depth-0", counts}}).error().message(),
              HasSubstr("file of counts names"));
}

TEST_F(CountsTest, P1_TheFileIsReadBackAndHeldToItsForm) {
  const CountsByTrace counts = {{"depth-0", Count("", 1).value()},
                                {"depth-6", Count("", 2).value()}};
  const std::string text = FormatCountsJson(counts);
  EXPECT_EQ(ParseCountsJson(text, "c").value(), counts);
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"\"format\": 1", "\"format\": 2"},
                                          {"\"traces\"", "\"tracks\""},
                                          {"\"barriers\"", "\"bars\""},
                                          {"\"tokens\": 2", "\"tokens\": 0"},
                                          {"\"tokens\": 2", "\"tokens\": -2"},
                                          {"{", "["}}) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const auto parsed = ParseCountsJson(changed, "c", "run.trace");
    ASSERT_FALSE(parsed) << to;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kFormat);
    EXPECT_NE(parsed.error().ToString().find("`assay counts --check c --update run.trace` writes"),
              std::string::npos);
  }
  EXPECT_EQ(FormatCountsText({{"trace", {.tokens = 2, .dispatches = 5, .commits = 2}}}),
            "trace, a token: 2.50 dispatches, 0 barriers, 0 bytes bound, 1 commit (of 2 tokens)\n");
}

}  // namespace
}  // namespace assay::prove
