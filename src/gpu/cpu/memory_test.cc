#include "gpu/cpu/memory.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/expect_error.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;

bool AllAre(const std::byte* block, uint64_t size_bytes, std::byte value) {
  return std::all_of(block, block + size_bytes, [&](std::byte b) { return b == value; });
}

TEST(MemoryPool, BlocksAreAligned) {
  MemoryPool pool;
  for (const uint64_t size :
       {uint64_t{1}, uint64_t{65}, uint64_t{4097}, MemoryPool::kLargeBytes - 1,
        MemoryPool::kLargeBytes, MemoryPool::kLargeBytes * 2 + 1}) {
    std::byte* const block = pool.Allocate(size, "aligned").value();
    const uint64_t alignment = size >= MemoryPool::kLargeBytes ? MemoryPool::kLargeBytes : 64;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u) << size;
    // All of it can be used.
    std::memset(block, 1, size);
    pool.Free(block, size, "aligned");
  }
}

TEST(MemoryPool, E11_BlocksAreZeroAlsoWhenReused) {
  for (const bool poison : {false, true}) {
    MemoryPool pool;
    if (poison) pool.EnablePoison();
    for (const uint64_t size : {uint64_t{100}, uint64_t{100'000}, MemoryPool::kLargeBytes}) {
      std::byte* const first = pool.Allocate(size, "first").value();
      EXPECT_TRUE(AllAre(first, size, std::byte{0})) << size;
      std::memset(first, 0x77, size);
      pool.Free(first, size, "first");
      std::byte* const second = pool.Allocate(size, "second").value();
      EXPECT_TRUE(AllAre(second, size, std::byte{0})) << size;
      if (size < MemoryPool::kLargeBytes) {
        EXPECT_EQ(second, first) << "the pool must reuse it";
      }
      pool.Free(second, size, "second");
    }
  }
}

TEST(MemoryPool, E11_WaitingMemoryIsPoisonedWhenAsked) {
  for (const bool poison : {false, true}) {
    MemoryPool pool;
    if (poison) pool.EnablePoison();
    std::byte* const block = pool.Allocate(100, "waiting").value();
    std::memset(block, 0x77, 100);
    pool.Free(block, 100, "waiting");
    // The pool holds on to the block, so that looking at it is sound here and nowhere else.
    EXPECT_TRUE(AllAre(block, 100, poison ? MemoryPool::kPoison : std::byte{0x77}));
  }
}

TEST(MemoryPool, E11_AWriteAfterTheEndIsFoundOut) {
  MemoryPool pool;
  pool.EnablePoison();
  std::byte* const block = pool.Allocate(100, "stale").value();
  pool.Free(block, 100, "stale");
  block[42] = std::byte{1};
  EXPECT_THAT(pool.Allocate(100, "next"),
              FailsWith(ErrorCode::kDevice, "Byte 42 of buffer \"stale\" was written after"));
  // The spoilt block is out of the pool.
  std::byte* const next = pool.Allocate(100, "next").value();
  pool.Free(next, 100, "next");
}

TEST(MemoryPool, KeepsABoundedAmount) {
  MemoryPool pool;
  constexpr uint64_t kSize = uint64_t{1} << 20;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(pool.Allocate(kSize, "b").value());
  for (std::byte* block : blocks) pool.Free(block, kSize, "b");
  EXPECT_EQ(pool.waiting_bytes(), MemoryPool::kMaxWaitingBytes);
}

TEST(MemoryPool, ABlockTakesAtMostAnEighthMoreThanIsAskedFor) {
  MemoryPool pool;
  for (uint64_t size = 512; size < MemoryPool::kLargeBytes; size += size / 7) {
    for (const uint64_t asked : {size - 1, size, size + 1}) {
      pool.Free(pool.Allocate(asked, "b").value(), asked, "b");
      const uint64_t before = pool.waiting_bytes();
      std::byte* const again = pool.Allocate(asked, "b").value();
      const uint64_t taken = before - pool.waiting_bytes();
      EXPECT_GE(taken, asked);
      EXPECT_LE(taken, asked + asked / 8 + 64) << asked;
      pool.Free(again, asked, "b");
    }
  }
}

TEST(MemoryPool, E12_MoreThanTheMachineHasIsAnAllocationError) {
  MemoryPool pool;
  EXPECT_THAT(pool.Allocate(uint64_t{1} << 50, "huge"),
              FailsWith(ErrorCode::kAllocation, "buffer \"huge\" (1125899906842624 bytes)"));
}

}  // namespace
}  // namespace assay::gpu
