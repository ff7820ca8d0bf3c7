#include "base/counted.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(CountedTest, C1_OneIsOneAndAllElseIsMany) {
  EXPECT_EQ(Counted(1, "barrier"), "1 barrier");
  EXPECT_EQ(Counted(0, "barrier"), "0 barriers");
  EXPECT_EQ(Counted(2, "command buffer"), "2 command buffers");
  EXPECT_EQ(Counted(UINT64_MAX, "id"), "18446744073709551615 ids");
}

TEST(CountedTest, C1_TheEndingIsThatOfTheLastWord) {
  EXPECT_EQ(Counted(1, "dispatch"), "1 dispatch");
  EXPECT_EQ(Counted(3, "dispatch"), "3 dispatches");
  EXPECT_EQ(Counted(0, "pass"), "0 passes");
  EXPECT_EQ(Counted(4, "access"), "4 accesses");
  EXPECT_EQ(Counted(2, "entry"), "2 entries");
  EXPECT_EQ(Counted(2, "metadata key"), "2 metadata keys");
  EXPECT_EQ(NounFor(1, "lane"), "lane");
  EXPECT_EQ(NounFor(2, "lane"), "lanes");
}

}  // namespace
}  // namespace assay
