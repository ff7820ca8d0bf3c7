// Every kind of fault is in the corpus; its racy twins are caught every time, for their own reason,
// and its clean twins never.
#include "tests/faults/corpus.h"

#include <algorithm>
#include <cctype>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace assay::faults {

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.number << ", " << kind.name; }

namespace {

constexpr int kRounds = 100;

std::vector<std::string_view> Names(const std::set<Catcher>& catchers) {
  std::vector<std::string_view> names;
  for (const Catcher catcher : catchers) names.push_back(CatcherName(catcher));
  return names;
}

class FaultCorpus : public ::testing::TestWithParam<Kind> {};

TEST_P(FaultCorpus, RacyTwinsAreCaughtEveryTimeAndCleanOnesNever) {
  const Kind& kind = GetParam();
  std::set<Catcher> ran;
  for (const Twin& twin : AllTwins()) {
    if (twin.kind != kind.number) continue;
    SCOPED_TRACE(std::string(twin.name) + ", by " + std::string(CatcherName(twin.catcher)));
    ASSERT_NE(twin.finding, twin.remark) << "nothing tells the twins apart";
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_EQ(twin.racy(round), twin.finding) << "of the racy twin, in round " << round;
      ASSERT_EQ(twin.clean(round), twin.remark) << "of the clean twin, in round " << round;
    }
    ran.insert(twin.catcher);
  }
  EXPECT_EQ(Names(ran), Names(kind.caught_by))
      << "each catcher in the table needs a twin, and no other has one";
}

std::string TestName(const ::testing::TestParamInfo<Kind>& info) {
  std::string name = fmt::format("{:02}_{}", info.param.number, info.param.name);
  std::ranges::replace_if(
      name, [](char c) { return isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Kinds, FaultCorpus, ::testing::ValuesIn(AllKinds()), TestName);

TEST(FaultTable, HasEveryKindOnceInOrder) {
  const std::vector<Kind> kinds = AllKinds();
  ASSERT_EQ(kinds.size(), 34u);
  std::set<std::string_view> names;
  for (size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(kinds[i].number, static_cast<int>(i) + 1);
    EXPECT_TRUE(names.insert(kinds[i].name).second) << kinds[i].name;
    EXPECT_NE(kinds[i].caught_by.empty(), kinds[i].excluded.empty())
        << "kind " << kinds[i].number << " has catchers or a reason why it does not belong";
  }
}

// The document says of each kind what the table says.
TEST(FaultTable, IsWhatTheDocumentSays) {
  const auto document = ReadFile(ASSAY_SOURCE_DIR "/docs/faults.md");
  ASSERT_TRUE(document.has_value()) << document.error().ToString();
  for (const Kind& kind : AllKinds()) {
    const std::string begin = fmt::format("\n| {} {} | ", kind.number, kind.name);
    const size_t row = document->find(begin);
    ASSERT_NE(row, std::string::npos) << begin;
    const size_t end = document->find('\n', row + 1);
    const std::string cells = document->substr(row, end - row);
    const std::string caught = cells.substr(cells.rfind(" | ") + 3);
    const std::string expected = kind.excluded.empty()
                                     ? fmt::format("{}", fmt::join(Names(kind.caught_by), ", "))
                                     : fmt::format("none: {}", kind.excluded);
    EXPECT_EQ(caught, expected + " |") << "of kind " << kind.number;
  }
}

TEST(FaultTable, HasARowForEveryTwin) {
  for (const Twin& twin : AllTwins()) {
    EXPECT_GE(twin.kind, 1) << twin.name;
    EXPECT_LE(twin.kind, 34) << twin.name;
  }
}

}  // namespace
}  // namespace assay::faults
