// What every backend that executes must do, whatever it runs on.
#include <gtest/gtest.h>
// After gtest.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <rapidcheck/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::Succeeds;
using testing::Bump;
using testing::Elementwise;
using testing::MakeBuffer;
using testing::MakeDevice;
using testing::TestDispatch;
using testing::View;

class RuntimeTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> Make(int threads = 2) {
    return MakeDevice(GetParam(), {.threads = threads});
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, RuntimeTest, ::testing::ValuesIn(testing::ExecutingBackends()),
                         testing::BackendTestName);

class OverlapTest : public RuntimeTest {};
INSTANTIATE_TEST_SUITE_P(Backends, OverlapTest,
                         ::testing::ValuesIn(testing::BackendsWith(testing::Trait::kRunsTogether)),
                         testing::BackendTestName);

class BufferLimitTest : public RuntimeTest {};
INSTANTIATE_TEST_SUITE_P(Backends, BufferLimitTest,
                         ::testing::ValuesIn(testing::BackendsWith(testing::Trait::kLimitsBuffers)),
                         testing::BackendTestName);

TEST_P(RuntimeTest, E11_BuffersStartWithZeros) {
  const auto device = Make();
  for (const uint64_t size : {4u, 1000u, 3u << 20}) {
    for (int round = 0; round < 2; ++round) {
      const Buffer buffer = MakeBuffer(*device, size);
      std::vector<std::byte> bytes(size, std::byte{1});
      ASSERT_THAT(device->Read(buffer.All(), bytes), Succeeds());
      EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }))
          << size << " bytes, round " << round;
      std::ranges::fill(bytes, std::byte{0x77});
      ASSERT_THAT(device->Write(buffer.All(), bytes), Succeeds());
    }
  }
}

TEST_P(RuntimeTest, ReadGivesWhatWriteStored) {
  const auto device = Make();
  const Buffer buffer = MakeBuffer(*device, 64);
  const std::vector<float> values = {1.5f, -2.0f, 3.25f};
  testing::WriteFloats(*device, View(buffer, 20, 12), values);
  EXPECT_EQ(testing::ReadFloats(*device, View(buffer, 20, 12)), values);
  EXPECT_EQ(testing::ReadFloats(*device, View(buffer, 16, 4))[0], 0.0f);
  EXPECT_EQ(testing::ReadFloats(*device, View(buffer, 32, 4))[0], 0.0f);
  if (!device->info().host_visible) return;
  {
    const HostMapping mapping = device->Map(View(buffer, 24, 4), Access::kReadWrite).value();
    ASSERT_EQ(mapping.bytes().size(), 4u);
    mapping.bytes()[3] = std::byte{0x40};  // The sign and exponent of -2.0f become those of 2.0f.
  }
  EXPECT_EQ(testing::ReadFloats(*device, View(buffer, 24, 4))[0], 2.0f);
}

TEST_P(RuntimeTest, E4_KernelsSeeTheirViewsAndNothingElse) {
  const auto device = Make();
  const Buffer buffer = MakeBuffer(*device, 4096);
  const auto session = device->CreateSession().value();
  // Odd sizes, at offsets that no page or line begins at.
  const BufferView outer = View(buffer, 4, 3000);
  ASSERT_THAT(session->Dispatch(Bump(*device, outer.Slice(396, 404).value()).get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  const std::vector<uint32_t> words = testing::ReadWords(*device, buffer.All());
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(words[i], i >= 100 && i < 201 ? 1u : 0u) << "word " << i;
  }
}

TEST_P(RuntimeTest, CommandBuffersOfASessionRunInOrderOfCommit) {
  const auto device = Make();
  const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  constexpr size_t kCount = 1000;
  const Buffer x = MakeBuffer(*device, kCount * 4);
  const Buffer y = MakeBuffer(*device, kCount * 4);
  testing::WriteFloats(*device, x.All(), std::vector<float>(kCount, 1.0f));
  for (int i = 0; i < 50; ++i) {
    // x + x into y, y + y into x, each a command buffer without barriers.
    const BufferView& from = i % 2 == 0 ? x.All() : y.All();
    const BufferView& to = i % 2 == 0 ? y.All() : x.All();
    ASSERT_THAT(session->Dispatch(Elementwise(*device, "add", from, from, to).get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
  }
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadFloats(*device, x.All()),
            std::vector<float>(kCount, static_cast<float>(uint64_t{1} << 50)));
}

TEST_P(OverlapTest, E1_DispatchesBetweenBarriersOverlap) {
  const auto device = Make(2);
  const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  const Buffer counter = MakeBuffer(*device, 4);
  const TestDispatch meet = testing::Meet(*device, counter.All(), 2);
  ASSERT_THAT(session->Dispatch(meet.get()), Succeeds());
  ASSERT_THAT(session->Dispatch(meet.get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device, counter.All())[0], 2u);
}

TEST_P(OverlapTest, E1_ABarrierKeepsAConsumerBehindItsProducer) {
  const auto device = Make(3);
  const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  const auto other = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  for (int round = 0; round < 50; ++round) {
    const Buffer flag = MakeBuffer(*device, 4);
    const Buffer produced = MakeBuffer(*device, 4);
    const Buffer consumed = MakeBuffer(*device, 4);
    const Buffer unused = MakeBuffer(*device, 4);
    const TestDispatch producer(
        testing::Kernel(*device, "hold"),
        {{flag.All(), Access::kReadWrite}, {produced.All(), Access::kWrite}}, 1);
    const TestDispatch consumer(testing::Kernel(*device, "peek"),
                                {{produced.All(), Access::kRead},
                                 {consumed.All(), Access::kWrite},
                                 {unused.All(), Access::kReadWrite}},
                                1);
    ASSERT_THAT(session->Dispatch(producer.get()), Succeeds());
    ASSERT_THAT(session->Barrier(), Succeeds());
    ASSERT_THAT(session->Dispatch(consumer.get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
    // The producer holds until the other session lets it go; an idle worker has time to overtake.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    ASSERT_THAT(other->Dispatch(testing::Meet(*device, flag.All(), 1).get()), Succeeds());
    ASSERT_THAT(other->Commit(), Succeeds());
    ASSERT_THAT(other->Wait(), Succeeds());
    ASSERT_THAT(session->Wait(), Succeeds());
    ASSERT_EQ(testing::ReadWords(*device, consumed.All())[0], 1u) << "round " << round;
  }
}

TEST_P(OverlapTest, E7_WithoutABarrierAConsumerOvertakesItsProducer) {
  const auto device = Make(2);
  const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  const Buffer flag = MakeBuffer(*device, 4);
  const Buffer produced = MakeBuffer(*device, 4);
  const Buffer consumed = MakeBuffer(*device, 4);
  const float marker = 9.0f;
  testing::WriteFloats(*device, consumed.All(), std::vector<float>{marker});
  // The producer, encoded first, writes only after the consumer has read.
  const TestDispatch producer(testing::Kernel(*device, "hold"),
                              {{flag.All(), Access::kReadWrite}, {produced.All(), Access::kWrite}},
                              1);
  const TestDispatch consumer(testing::Kernel(*device, "peek"),
                              {{produced.All(), Access::kRead},
                               {consumed.All(), Access::kWrite},
                               {flag.All(), Access::kReadWrite}},
                              1);
  ASSERT_THAT(session->Dispatch(producer.get()), Succeeds());
  ASSERT_THAT(session->Dispatch(consumer.get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device, produced.All())[0], 1u);
  EXPECT_EQ(testing::ReadWords(*device, consumed.All())[0], 0u)
      << "the lost order must show, or no test of barriers means anything";
}

TEST_P(RuntimeTest, G5_TheSameBitsAtAnyNumberOfThreads) {
  constexpr size_t kCount = 10'007;
  std::vector<float> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3, 8}) {
    const auto device = Make(threads);
    const auto session = device->CreateSession().value();
    const Buffer x = MakeBuffer(*device, kCount * 4);
    const uint32_t groups = (kCount - 1) / testing::kWorkgroupElements + 1;
    const Buffer sums = MakeBuffer(*device, groups * 4);
    testing::WriteFloats(*device, x.All(), values);
    ASSERT_THAT(session->Dispatch(Elementwise(*device, "mul", x.All(), x.All(), x.All()).get()),
                Succeeds());
    const TestDispatch sum(
        testing::Kernel(*device, "group_sum"),
        {{x.All(), Access::kRead}, {sums.All(), Access::kWrite}}, groups, {},
        std::min(device->info().max_shared_bytes, testing::kWorkgroupElements * 4));
    ASSERT_THAT(session->Dispatch(sum.get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
    ASSERT_THAT(session->Wait(), Succeeds());
    results.push_back(testing::ReadFloats(*device, sums.All()));
  }
  for (size_t i = 1; i < results.size(); ++i) EXPECT_EQ(results[i], results[0]);
  EXPECT_GT(results[0][0], 1.5f);
}

TEST_P(RuntimeTest, SessionsOnManyThreadsKeepApart) {
  const auto device = Make(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto session = device->CreateSession().value();
      for (int round = 0; round < 20; ++round) {
        const Buffer buffer = MakeBuffer(*device, 1000);
        for (int i = 0; i <= t; ++i) {
          ASSERT_THAT(session->Dispatch(Bump(*device, buffer.All()).get()), Succeeds());
        }
        ASSERT_THAT(session->Commit(), Succeeds());
        ASSERT_THAT(session->Wait(), Succeeds());
        EXPECT_EQ(testing::ReadWords(*device, buffer.All()),
                  std::vector<uint32_t>(250, static_cast<uint32_t>(t) + 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device->live_buffers(), 0u);
  const Counters counters = device->counters();
  EXPECT_EQ(counters.dispatches, 20u * (1 + 2 + 3 + 4 + 5 + 6));
  EXPECT_EQ(counters.encoders_created, counters.encoders_released);
}

// Any program gives, in automatic mode, what it gives when every dispatch stands alone.
TEST_P(RuntimeTest, E5_AutomaticBarriersAreEnough) {
  const auto device = Make(4);
  EXPECT_TRUE(rc::check("automatic equals one after another", [&] {
    constexpr uint64_t kWords = 512;
    const Buffer buffer = MakeBuffer(*device, kWords * 4);
    const auto session = device->CreateSession({.barriers = BarrierMode::kAutomatic}).value();
    std::vector<float> model(kWords);
    std::iota(model.begin(), model.end(), 1.0f);
    testing::WriteFloats(*device, buffer.All(), model);
    const int dispatches = *rc::gen::inRange(1, 40);
    for (int d = 0; d < dispatches; ++d) {
      const uint64_t length = *rc::gen::inRange<uint64_t>(1, 200);
      const auto place = [&] { return *rc::gen::inRange<uint64_t>(0, kWords - length + 1); };
      const uint64_t a = place();
      const uint64_t b = place();
      uint64_t out = place();
      // A dispatch's own result may be exactly one of its inputs, or apart from both.
      const auto apart = [&](uint64_t in) {
        return out == in || out + length <= in || in + length <= out;
      };
      if (!apart(a) || !apart(b)) out = a;
      if (!apart(b)) continue;
      const auto at = [&](uint64_t word) { return View(buffer, word * 4, length * 4); };
      RC_ASSERT(
          session->Dispatch(Elementwise(*device, "add", at(a), at(b), at(out)).get()).has_value());
      const std::vector<float> before = model;
      for (uint64_t i = 0; i < length; ++i) model[out + i] = before[a + i] + before[b + i];
    }
    RC_ASSERT(session->Commit().has_value());
    RC_ASSERT(session->Wait().has_value());
    RC_ASSERT(testing::ReadFloats(*device, buffer.All()) == model);
  }));
}

TEST_P(BufferLimitTest, AllocationFailureIsATypedError) {
  const auto device = Make();
  const auto made = device->CreateBuffer(
      {.size_bytes = device->info().max_buffer_bytes, .label = "all of it", .digest = {}});
  EXPECT_THAT(made, assay::testing::FailsWith(ErrorCode::kAllocation, "\"all of it\""));
}

}  // namespace
}  // namespace assay::gpu
