#include <gtest/gtest.h>

#include "assay/base.h"

namespace assay {
namespace {

TEST(ByteRangeTest, E4_TouchingRangesDoNotOverlap) {
  EXPECT_FALSE((ByteRange{0, 4}.Overlaps({4, 8})));
  EXPECT_FALSE((ByteRange{4, 8}.Overlaps({0, 4})));
  EXPECT_TRUE((ByteRange{0, 5}.Overlaps({4, 8})));
  EXPECT_TRUE((ByteRange{4, 8}.Overlaps({0, 5})));
}

TEST(ByteRangeTest, E4_EmptyRangeOverlapsNothing) {
  EXPECT_FALSE((ByteRange{2, 2}.Overlaps({0, 4})));
  EXPECT_FALSE((ByteRange{0, 4}.Overlaps({2, 2})));
  EXPECT_FALSE((ByteRange{3, 1}.Overlaps({0, 4})));
}

TEST(ByteRangeTest, IntersectAndContains) {
  EXPECT_EQ((ByteRange{0, 6}.Intersect({4, 8})), (ByteRange{4, 6}));
  EXPECT_TRUE((ByteRange{0, 4}.Intersect({4, 8})).empty());
  EXPECT_TRUE((ByteRange{0, 8}.Contains({0, 8})));
  EXPECT_FALSE((ByteRange{0, 8}.Contains({0, 9})));
  EXPECT_TRUE((ByteRange{0, 8}.Contains({9, 9})));
}

TEST(AccessTest, E4_ReadReadNeverConflicts) {
  EXPECT_FALSE(Conflicts(Access::kRead, Access::kRead));
  EXPECT_TRUE(Conflicts(Access::kRead, Access::kWrite));
  EXPECT_TRUE(Conflicts(Access::kReadWrite, Access::kRead));
}

TEST(WordsTest, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Access::kReadWrite); ++i) {
    const auto access = static_cast<Access>(i);
    EXPECT_EQ(ParseAccess(AccessName(access)), access);
  }
  for (int i = 0; i <= static_cast<int>(BufferKind::kOther); ++i) {
    const auto kind = static_cast<BufferKind>(i);
    EXPECT_EQ(ParseBufferKind(BufferKindName(kind)), kind);
  }
  EXPECT_EQ(ParseAccess("x"), std::nullopt);
  EXPECT_EQ(ParseBufferKind(""), std::nullopt);
}

}  // namespace
}  // namespace assay
