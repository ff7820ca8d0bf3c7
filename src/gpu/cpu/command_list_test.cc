#include "gpu/cpu/command_list.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace assay::gpu {
namespace {

using Seen = std::map<std::tuple<uint32_t, uint32_t, uint32_t>, int>;

// Counts its workgroup in the map whose address is in the constants.
void CountGroup(const CpuKernelArgs& args, Extent3 group) {
  uintptr_t address = 0;
  std::memcpy(&address, args.constants, sizeof(address));
  ++(*reinterpret_cast<Seen*>(address))[{group.x, group.y, group.z}];
}

std::array<std::byte, sizeof(uintptr_t)> AddressOf(Seen* seen) {
  return std::bit_cast<std::array<std::byte, sizeof(uintptr_t)>>(seen);
}

CpuDispatch Count(Extent3 grid) {
  CpuDispatch dispatch;
  dispatch.run = CountGroup;
  dispatch.kernel_name = "count";
  dispatch.grid = grid;
  return dispatch;
}

TEST(CommandList, EveryWorkgroupRunsOnceHoweverItIsCut) {
  const Extent3 grid{5, 3, 7};
  for (const uint32_t max_chunks : {1u, 2u, 7u, 64u, 104u, 105u, 1000u}) {
    Seen seen;
    CommandList list;
    ASSERT_TRUE(list.AddDispatch(Count(grid), {}, AddressOf(&seen), max_chunks));
    list.End();
    ASSERT_EQ(list.groups().size(), 1u);
    EXPECT_LE(list.groups()[0].chunks, max_chunks);
    for (uint32_t chunk = 0; chunk < list.groups()[0].chunks; ++chunk) {
      list.RunChunk(list.groups()[0], chunk, {});
    }
    EXPECT_EQ(seen.size(), grid.Count());
    for (const auto& [group, times] : seen) EXPECT_EQ(times, 1);
  }
}

TEST(CommandList, ChunksFindTheirDispatch) {
  std::array<Seen, 4> seen;
  CommandList list;
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(list.AddDispatch(Count({i + 1, 1, 1}), {}, AddressOf(&seen[i]), 2));
  }
  list.End();
  const CpuGroup& group = list.groups()[0];
  EXPECT_EQ(group.chunks, 1u + 2 + 2 + 2);
  for (uint32_t chunk = group.chunks; chunk-- > 0;) list.RunChunk(group, chunk, {});
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(seen[i].size(), i + 1);
}

TEST(CommandList, BarriersCutGroupsAndEmptyOnesVanish) {
  Seen seen;
  CommandList list;
  list.AddBarrier();
  ASSERT_TRUE(list.AddDispatch(Count({1, 1, 1}), {}, AddressOf(&seen), 1));
  ASSERT_TRUE(list.AddDispatch(Count({1, 1, 1}), {}, AddressOf(&seen), 1));
  list.AddBarrier();
  list.AddBarrier();
  ASSERT_TRUE(list.AddDispatch(Count({1, 1, 1}), {}, AddressOf(&seen), 1));
  list.AddBarrier();
  list.End();
  ASSERT_EQ(list.groups().size(), 2u);
  EXPECT_EQ(list.groups()[0].dispatch_count, 2u);
  EXPECT_EQ(list.groups()[1].dispatch_count, 1u);
}

TEST(CommandList, AnEmptyListHasOneChunkThatDoesNothing) {
  CommandList list;
  list.End();
  ASSERT_EQ(list.groups().size(), 1u);
  ASSERT_EQ(list.groups()[0].chunks, 1u);
  list.RunChunk(list.groups()[0], 0, {});
  list.Clear();
  EXPECT_TRUE(list.groups().empty());
}

TEST(CommandList, BindingsAndConstantsArePlacedByDispatch) {
  std::array<std::byte, 64> memory{};
  const std::array<CpuBinding, 2> bindings = {
      CpuBinding{memory.data(), {0, 8}, Access::kRead, nullptr},
      CpuBinding{memory.data(), {16, 40}, Access::kWrite, nullptr}};
  CommandList list;
  Seen seen;
  ASSERT_TRUE(list.AddDispatch(Count({1, 1, 1}), {}, AddressOf(&seen), 1));
  ASSERT_TRUE(list.AddDispatch(Count({1, 1, 1}), bindings, AddressOf(&seen), 1));
  list.End();
  const CpuDispatch& second = list.DispatchesOf(list.groups()[0])[1];
  const CpuKernelArgs args = list.ArgsOf(second, {});
  EXPECT_EQ(args.bindings[0], memory.data());
  EXPECT_EQ(args.bindings[1], memory.data() + 16);
  EXPECT_EQ(args.binding_bytes[0], 8u);
  EXPECT_EQ(args.binding_bytes[1], 24u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(args.constants) % 16, 0u);
  EXPECT_EQ(std::memcmp(args.constants, AddressOf(&seen).data(), sizeof(Seen*)), 0);
}

// Writes down the dispatch, by its constants, and the workgroup.
struct Walk {
  std::vector<std::pair<uint32_t, uint32_t>> steps;
};
struct WalkConstants {
  Walk* walk;
  uint32_t dispatch;
};
void WalkGroup(const CpuKernelArgs& args, Extent3 group) {
  WalkConstants constants;
  std::memcpy(&constants, args.constants, sizeof(constants));
  constants.walk->steps.emplace_back(constants.dispatch, group.x + 3 * group.y);
}

std::vector<std::pair<uint32_t, uint32_t>> WalkInterleaved(uint64_t seed) {
  Walk walk;
  CommandList list;
  Seen before;
  EXPECT_TRUE(list.AddDispatch(Count({1, 1, 1}), {}, AddressOf(&before), 1));
  list.AddBarrier();
  const std::array<Extent3, 3> grids = {Extent3{3, 4, 1}, Extent3{1, 1, 1}, Extent3{3, 7, 1}};
  for (uint32_t i = 0; i < 3; ++i) {
    CpuDispatch dispatch;
    dispatch.run = WalkGroup;
    dispatch.grid = grids[i];
    const WalkConstants constants{&walk, i};
    EXPECT_TRUE(list.AddDispatch(dispatch, {}, std::as_bytes(std::span(&constants, 1)), 8));
  }
  EXPECT_TRUE(list.AddInterleavedBarrier(seed));
  list.End();
  EXPECT_EQ(list.groups().size(), 2u);
  EXPECT_EQ(list.groups()[1].chunks, 1u);
  list.RunChunk(list.groups()[1], 0, {});
  EXPECT_TRUE(before.empty());
  return walk.steps;
}

TEST(CommandList, E8_AnInterleavedGroupMixesAllItsWorkgroupsInOneOrder) {
  const auto steps = WalkInterleaved(1);
  EXPECT_EQ(steps, WalkInterleaved(1));
  EXPECT_NE(steps, WalkInterleaved(2));
  auto sorted = steps;
  std::ranges::sort(sorted);
  std::vector<std::pair<uint32_t, uint32_t>> all;
  for (uint32_t i = 0; i < 12; ++i) all.emplace_back(0, i);
  all.emplace_back(1, 0);
  for (uint32_t i = 0; i < 21; ++i) all.emplace_back(2, i);
  EXPECT_EQ(sorted, all);
  // Neither dispatch by dispatch nor each of them from its first workgroup to its last.
  EXPECT_GT(std::ranges::count_if(std::span(steps).subspan(17),
                                  [](const auto& step) { return step.first == 0; }),
            0);
  EXPECT_GT(std::ranges::count_if(std::span(steps).first(17),
                                  [](const auto& step) { return step.first == 2; }),
            0);
  EXPECT_FALSE(std::ranges::is_sorted(steps, [](const auto& a, const auto& b) {
    return a.first == 2 && b.first == 2 && a.second < b.second;
  }));
}

TEST(CommandList, AnInterleavedGroupHoldsABoundedNumberOfWorkgroups) {
  Seen seen;
  CommandList list;
  ASSERT_TRUE(list.AddDispatch(Count({(1u << 26) + 1, 1, 1}), {}, AddressOf(&seen), 2));
  EXPECT_FALSE(list.AddInterleavedBarrier(1));
}

TEST(CommandList, AGroupHoldsABoundedNumberOfChunks) {
  Seen seen;
  CommandList list;
  const Extent3 grid{UINT32_MAX, 1, 1};
  EXPECT_FALSE(list.AddDispatch(Count(grid), {}, AddressOf(&seen), UINT32_MAX));
  EXPECT_TRUE(list.AddDispatch(Count(grid), {}, AddressOf(&seen), 1u << 29));
  EXPECT_TRUE(list.AddDispatch(Count(grid), {}, AddressOf(&seen), 1u << 29));
  EXPECT_FALSE(list.AddDispatch(Count({2, 1, 1}), {}, AddressOf(&seen), 2));
  list.AddBarrier();
  EXPECT_TRUE(list.AddDispatch(Count({2, 1, 1}), {}, AddressOf(&seen), 2));
}

}  // namespace
}  // namespace assay::gpu
