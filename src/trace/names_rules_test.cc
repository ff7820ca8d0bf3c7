// One test for each rule of naming that has a mutant under tests/mutants (T10). Each is written to
// see the loss of its own rule and of no other: it asserts nothing that a fault in another rule
// would change.
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "assay/trace.h"

namespace assay::trace {
namespace {

TEST(NamingRuleTest, T3_AReusedAddressNamesTheNewBuffer) {
  BufferNamer namer;
  const auto earlier = namer.Made(0x1000);
  const auto later = namer.Made(0x1000);
  EXPECT_NE(BufferNamer::NumberOf(earlier), BufferNamer::NumberOf(later));
  EXPECT_EQ(namer.Find(0x1000), later);
}

TEST(NamingRuleTest, T5_JobsFromTheLowestFailingOneOnGetNoNumber) {
  BufferNamer namer;
  std::vector<BufferNamer::SlotRef> slots;
  const Status status = InOrder(3, 1, &namer, [&](size_t job) -> Status {
    slots.push_back(namer.Made(job));
    if (job == 1) return Fail(ErrorCode::kIo, "", "broken");
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(BufferNamer::NumberOf(slots[1]), std::nullopt);
}

TEST(NamingRuleTest, T6_TheEndOfALoadNumbersItsBuffersOnEveryWayOut) {
  BufferNamer namer;
  BufferNamer::SlotRef whole, broken;
  ASSERT_TRUE(InOrder(1, 1, &namer, [&](size_t) -> Status {
    whole = namer.Made(1);
    return {};
  }));
  EXPECT_EQ(BufferNamer::NumberOf(whole), BufferId(0));
  EXPECT_THROW(static_cast<void>(InOrder(2, 1, &namer,
                                         [&](size_t job) -> Status {
                                           if (job == 1) throw std::runtime_error("broken");
                                           broken = namer.Made(2);
                                           return {};
                                         })),
               std::runtime_error);
  EXPECT_EQ(BufferNamer::NumberOf(broken), BufferId(1));
}

TEST(NamingRuleTest, T7_ABufferOfAnotherThreadOutsideALoadIsRefused) {
  BufferNamer namer;
  BufferNamer::SlotRef slot;
  std::jthread([&] { slot = namer.Made(1); }).join();
  EXPECT_EQ(BufferNamer::NumberOf(slot), kUnnamedBuffer);
  EXPECT_EQ(namer.refusals()[static_cast<size_t>(Refusal::kOffThread)], 1U);
}

}  // namespace
}  // namespace assay::trace
