#include "base/host_memory.h"

#include <gtest/gtest.h>

#include "support/address_space.h"

namespace assay {
namespace {

TEST(HostMemory, SomeIsFreeOfWhatThereIs) {
  const HostMemory memory = ReadHostMemory();
  EXPECT_GT(memory.free_bytes, 0U);
  EXPECT_GT(memory.total_bytes, uint64_t{64} << 20);
}

TEST(HostMemory, TheAddressSpaceThatTheProgramMayHaveCounts) {
  constexpr uint64_t kAllowed = uint64_t{1} << 20;
  const HostMemory memory = [] {
    // Less than the program has mapped already, and nothing is mapped while it holds.
    const AddressSpaceLimit limit(kAllowed);
    return ReadHostMemory();
  }();
  EXPECT_TRUE(memory.limited);
  EXPECT_EQ(memory.total_bytes, kAllowed);
  EXPECT_EQ(memory.free_bytes, 0U);
}

}  // namespace
}  // namespace assay
