#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "assay/base.h"

namespace assay {
namespace {

class RecordingObserver : public LoadObserver {
 public:
  uint64_t OnLoadBegin(size_t) override {
    ++begins;
    return kLoad;
  }
  void OnJobBegin(uint64_t load, size_t job) override {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(load, kLoad);
    begun.insert(job);
  }
  void OnJobEnd(uint64_t load, size_t job, bool ok) override {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(load, kLoad);
    (ok ? succeeded : failed).insert(job);
  }
  void OnLoadEnd(uint64_t load) override {
    EXPECT_EQ(load, kLoad);
    ++ends;
  }
  static constexpr uint64_t kLoad = 42;
  std::mutex mutex;
  std::set<size_t> begun, succeeded, failed;
  int begins = 0, ends = 0;
};

class InOrderTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, InOrderTest, testing::Values(1, 2, 4, 8));

TEST_P(InOrderTest, RunsEveryJobOnce) {
  std::vector<std::atomic<int>> runs(100);
  RecordingObserver observer;
  ASSERT_TRUE(InOrder(runs.size(), GetParam(), &observer, [&](size_t job) -> Status {
    ++runs[job];
    return {};
  }));
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  EXPECT_EQ(observer.succeeded.size(), 100U);
  EXPECT_EQ(observer.begins, 1);
  EXPECT_EQ(observer.ends, 1);
}

TEST_P(InOrderTest, T5_LowestFailureWinsAndAllBelowItRan) {
  RecordingObserver observer;
  const Status status = InOrder(64, GetParam(), &observer, [&](size_t job) -> Status {
    if (job == 20 || job == 21 || job == 40) return Fail(ErrorCode::kIo, std::to_string(job), "x");
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().subject(), "20");
  for (size_t job = 0; job < 20; ++job) EXPECT_TRUE(observer.succeeded.contains(job)) << job;
  EXPECT_EQ(observer.ends, 1);
}

TEST_P(InOrderTest, T6_ExceptionEndsTheLoadAndIsThrownOn) {
  RecordingObserver observer;
  EXPECT_THROW(static_cast<void>(InOrder(8, GetParam(), &observer,
                                         [&](size_t job) -> Status {
                                           if (job == 3) throw std::runtime_error("boom");
                                           return {};
                                         })),
               std::runtime_error);
  EXPECT_EQ(observer.ends, 1);
  EXPECT_TRUE(observer.failed.contains(3));
}

TEST(InOrderTest, NoJobsIsAnEmptyLoad) {
  RecordingObserver observer;
  EXPECT_TRUE(InOrder(0, 4, &observer, [](size_t) -> Status { return {}; }));
  EXPECT_EQ(observer.ends, 1);
}

}  // namespace
}  // namespace assay
