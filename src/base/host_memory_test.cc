#include "base/host_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace assay {
namespace {

TEST(HostMemory, SomeIsFreeOfWhatThereIs) {
  const HostMemory memory = ReadHostMemory();
  EXPECT_GT(memory.free_bytes, 0U);
  EXPECT_GT(memory.total_bytes, uint64_t{64} << 20);
}

TEST(HostMemory, TheAddressSpaceThatTheProgramMayHaveCounts) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  // Less than the program has mapped already, and nothing is mapped while it holds.
  struct rlimit tight = before;
  tight.rlim_cur = uint64_t{1} << 20;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const HostMemory memory = ReadHostMemory();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(memory.limited);
  EXPECT_EQ(memory.total_bytes, tight.rlim_cur);
  EXPECT_EQ(memory.free_bytes, 0U);
}

}  // namespace
}  // namespace assay
