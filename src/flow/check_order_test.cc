#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/flow.h"

namespace assay::flow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Touch R(uint64_t allocation, uint64_t begin, uint64_t end) {
  return {allocation, {begin, end}, Access::kRead, true};
}
Touch W(uint64_t allocation, uint64_t begin, uint64_t end) {
  return {allocation, {begin, end}, Access::kWrite, true};
}
Touch Inexact(Touch touch) {
  touch.exact = false;
  return touch;
}
Emitted Step(std::vector<uint32_t> parts, std::vector<Touch> touches) {
  return {false, std::move(parts), std::move(touches)};
}
Emitted Bar() { return {true, {}, {}}; }

// The recorded dispatches at `order`, each as it is, with a barrier after every one.
std::vector<Emitted> Serial(const std::vector<Recorded>& recorded,
                            const std::vector<uint32_t>& order) {
  std::vector<Emitted> emitted;
  for (const uint32_t i : order) {
    emitted.push_back(Step({i}, recorded[i]));
    emitted.push_back(Bar());
  }
  return emitted;
}
std::vector<Fault> Faults(const std::vector<Finding>& findings) {
  std::vector<Fault> faults;
  for (const Finding& finding : findings) faults.push_back(finding.fault);
  return faults;
}

TEST(CheckOrder, E10_TheRecordedOrderWithItsBarriersIsLegal) {
  const std::vector<Recorded> recorded = {{W(0, 0, 64)}, {R(0, 0, 64), W(1, 0, 64)}};
  EXPECT_THAT(CheckOrder(recorded, Serial(recorded, {0, 1})), IsEmpty());
}

// Fault 9: the views begin at different places of one allocation and share eight bytes.
TEST(CheckOrder, E10_TwoViewsOfOneAllocationKeepTheirOrderWhereTheyOverlap) {
  const std::vector<Recorded> recorded = {{W(0, 0, 72)}, {R(0, 64, 128), W(1, 0, 64)}};
  EXPECT_THAT(CheckOrder(recorded, Serial(recorded, {1, 0})),
              ElementsAre(Finding{Fault::kReversed, 0, 1, 0, {64, 72}}));
  const std::vector<Recorded> apart = {{W(0, 0, 64)}, {R(0, 64, 128), W(1, 0, 64)}};
  EXPECT_THAT(CheckOrder(apart, Serial(apart, {1, 0})), IsEmpty());
}

TEST(CheckOrder, E10_EveryKindOfConflictNeedsABarrierBetween) {
  const std::vector<std::vector<Recorded>> conflicts = {
      {{W(0, 0, 8)}, {R(0, 0, 8)}}, {{R(0, 0, 8)}, {W(0, 0, 8)}}, {{W(0, 0, 8)}, {W(0, 7, 9)}}};
  for (const auto& recorded : conflicts) {
    EXPECT_THAT(
        Faults(CheckOrder(recorded, std::vector{Step({0}, recorded[0]), Step({1}, recorded[1])})),
        ElementsAre(Fault::kUnordered));
  }
  const std::vector<Recorded> reads = {{R(0, 0, 8)}, {R(0, 0, 8)}};
  EXPECT_THAT(CheckOrder(reads, std::vector{Step({1}, reads[1]), Step({0}, reads[0])}), IsEmpty());
}

TEST(CheckOrder, E10_NothingPassesADispatchWithoutRanges) {
  const std::vector<Recorded> recorded = {{W(0, 0, 8)}, {}, {W(1, 0, 8)}};
  EXPECT_THAT(CheckOrder(recorded, Serial(recorded, {0, 1, 2})), IsEmpty());
  EXPECT_THAT(CheckOrder(recorded, Serial(recorded, {1, 0, 2})),
              ElementsAre(Finding{Fault::kReversed, 0, 1, 0, {}}));
  EXPECT_THAT(CheckOrder(recorded, Serial(recorded, {0, 2, 1})),
              ElementsAre(Finding{Fault::kReversed, 1, 2, 0, {}}));
  EXPECT_THAT(Faults(CheckOrder(
                  recorded, std::vector{Step({0}, recorded[0]), Bar(), Step({1, 2}, recorded[2])})),
              ::testing::Contains(Fault::kFusedFence));
}

TEST(CheckOrder, E10_EveryDispatchIsEmittedOnce) {
  const std::vector<Recorded> recorded = {{W(0, 0, 8)}, {W(1, 0, 8)}};
  EXPECT_THAT(Faults(CheckOrder(recorded, Serial(recorded, {0}))), ElementsAre(Fault::kMissing));
  EXPECT_THAT(Faults(CheckOrder(recorded, Serial(recorded, {0, 1, 0}))),
              ElementsAre(Fault::kRepeated));
  EXPECT_THAT(
      Faults(CheckOrder(recorded, std::vector{Step({0}, recorded[0]), Step({1}, recorded[1]),
                                              Step({}, recorded[0])})),
      ElementsAre(Fault::kUnknown));
}

// Two dispatches with a value in bytes [0, 8) of allocation 1 between them, then what the case
// adds.
std::vector<Recorded> Chain(std::vector<Recorded> more = {}) {
  std::vector<Recorded> recorded = {{R(0, 0, 8), W(1, 0, 8)}, {R(1, 0, 8), W(2, 0, 8)}};
  recorded.insert(recorded.end(), more.begin(), more.end());
  return recorded;
}
std::vector<Emitted> FusedChain(const std::vector<Recorded>& recorded) {
  std::vector<Emitted> emitted = {Step({0, 1}, {R(0, 0, 8), W(2, 0, 8)})};
  for (uint32_t i = 2; i < recorded.size(); ++i) {
    emitted.push_back(Bar());
    emitted.push_back(Step({i}, recorded[i]));
  }
  return emitted;
}
const std::vector<Dead> kDead = {{1, {0, 8}}};

TEST(CheckOrder, E10_AFusionMayDropAValueThatNobodyElseReads) {
  EXPECT_THAT(CheckOrder(Chain(), FusedChain(Chain()), kDead), IsEmpty());
  EXPECT_THAT(CheckOrder(Chain(), FusedChain(Chain())),
              ElementsAre(Finding{Fault::kLostResult, 0, 0, 1, {0, 8}}));
  // Half of it marked is not all of it.
  EXPECT_THAT(CheckOrder(Chain(), FusedChain(Chain()), std::vector<Dead>{{1, {0, 4}}}),
              ElementsAre(Finding{Fault::kLostResult, 0, 0, 1, {4, 8}}));
  // Overwritten in whole before the end.
  const auto rewritten = Chain({{W(1, 0, 8)}});
  EXPECT_THAT(CheckOrder(rewritten, FusedChain(rewritten)), IsEmpty());
  const auto perhaps = Chain({{Inexact(W(1, 0, 8))}});
  EXPECT_THAT(Faults(CheckOrder(perhaps, FusedChain(perhaps), kDead)),
              ElementsAre(Fault::kLostRead));
}

// Fault 8.
TEST(CheckOrder, E10_ADroppedValueWithASecondReaderIsFound) {
  const auto recorded = Chain({{R(1, 7, 16), W(3, 0, 8)}});
  EXPECT_THAT(CheckOrder(recorded, FusedChain(recorded), kDead),
              ElementsAre(Finding{Fault::kLostRead, 0, 2, 1, {7, 8}}));
  // Writing it all the same is fine.
  auto kept = FusedChain(recorded);
  kept[0].touches.push_back(W(1, 0, 8));
  EXPECT_THAT(CheckOrder(recorded, kept), IsEmpty());
}

// The second run of the stream would read what the first one no longer leaves behind.
TEST(CheckOrder, E10_DeadBytesThatAreReadBeforeTheyAreWrittenAreNotDead) {
  const std::vector<Recorded> recorded = {
      {R(1, 0, 8), W(3, 0, 8)}, {R(0, 0, 8), W(1, 0, 8)}, {R(1, 0, 8), W(2, 0, 8)}};
  const std::vector<Emitted> emitted = {Step({0}, recorded[0]), Bar(),
                                        Step({1, 2}, {R(0, 0, 8), W(2, 0, 8)})};
  EXPECT_THAT(Faults(CheckOrder(recorded, emitted, kDead)), ElementsAre(Fault::kLostResult));
}

TEST(CheckOrder, E10_AFusedStepTouchesNothingThatItsPartsDoNot) {
  auto writes_more = FusedChain(Chain());
  writes_more[0].touches.push_back(W(5, 0, 8));
  EXPECT_THAT(Faults(CheckOrder(Chain(), writes_more, kDead)), ElementsAre(Fault::kStrayWrite));
  auto reads_more = FusedChain(Chain());
  reads_more[0].touches.push_back(R(5, 0, 8));
  EXPECT_THAT(Faults(CheckOrder(Chain(), reads_more, kDead)), ElementsAre(Fault::kStrayRead));
  // The value between them does not exist ahead of the step.
  auto reads_between = FusedChain(Chain());
  reads_between[0].touches.push_back(R(1, 0, 8));
  EXPECT_THAT(Faults(CheckOrder(Chain(), reads_between, kDead)),
              ::testing::Contains(Fault::kStrayRead));
  auto writes_input = FusedChain(Chain());
  writes_input[0].touches.push_back(W(0, 0, 8));
  EXPECT_THAT(Faults(CheckOrder(Chain(), writes_input, kDead)),
              ::testing::Contains(Fault::kStrayWrite));
}

TEST(CheckOrder, SaysWhatItFound) {
  EXPECT_EQ(Describe({Fault::kUnordered, 3, 7, 2, {0, 64}}),
            "unordered: recorded dispatches 3 and 7 on bytes [0, 64) of allocation 2");
  EXPECT_EQ(Describe({Fault::kMissing, 3, 3, 0, {}}), "missing: recorded dispatch 3");
}

}  // namespace
}  // namespace assay::flow
