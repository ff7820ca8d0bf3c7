// The one fixture of requirement T9: a load of five jobs, the buffers each makes, the order of
// their making, and the numbers they must get.
#ifndef ASSAY_TESTS_SUPPORT_LOAD_FIXTURE_H_
#define ASSAY_TESTS_SUPPORT_LOAD_FIXTURE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <semaphore>
#include <span>
#include <thread>
#include <vector>

#include "assay/base.h"

namespace assay::testing {

// The k-th buffer of a job is made.
struct LoadEvent {
  size_t job = 0;
  size_t k = 0;
  constexpr bool operator==(const LoadEvent&) const = default;
  // By job and then k.
  constexpr bool operator<(const LoadEvent& other) const {
    return job != other.job ? job < other.job : k < other.k;
  }
};

inline constexpr std::array<size_t, 5> kJobBuffers = {2, 1, 0, 3, 2};

// What happened in the run that the requirement describes.
inline constexpr std::array<LoadEvent, 8> kMixedOrder = {
    {{4, 0}, {3, 0}, {0, 0}, {4, 1}, {1, 0}, {3, 1}, {0, 1}, {3, 2}}};

// One job after the other: what one thread does.
constexpr std::array<LoadEvent, 8> ForwardOrder() {
  std::array<LoadEvent, 8> order = kMixedOrder;
  std::sort(order.begin(), order.end());
  return order;
}

// The last job first; each job's own buffers keep their order, which is what `k` counts.
constexpr std::array<LoadEvent, 8> ReversedOrder() {
  std::array<LoadEvent, 8> order = kMixedOrder;
  std::sort(order.begin(), order.end(), [](const LoadEvent& a, const LoadEvent& b) {
    return a.job != b.job ? a.job > b.job : a.k < b.k;
  });
  return order;
}

constexpr uint64_t AddressOf(const LoadEvent& event) {
  return 0x100000 + event.job * 0x1000 + event.k * 0x10;
}

// The number of a buffer, counted from the one that the next buffer would have had before the load.
constexpr uint64_t ExpectedOffset(const LoadEvent& event) {
  constexpr std::array<uint64_t, 5> kFirst = {0, 2, 3, 3, 6};
  return kFirst[event.job] + event.k;
}
// The same of the first buffer after the load.
inline constexpr uint64_t kOffsetAfterLoad = 8;

// Runs the load with one thread a job and the events in exactly this order, whatever the scheduler
// does: each event waits for the one before it.
inline void RunLoadInOrder(LoadObserver* observer, std::span<const LoadEvent> order,
                           const std::function<void(const LoadEvent&)>& make) {
  const uint64_t load = observer->OnLoadBegin(kJobBuffers.size());
  std::latch begun(kJobBuffers.size());
  std::vector<std::unique_ptr<std::binary_semaphore>> turns;
  for (size_t i = 0; i < order.size(); ++i) {
    turns.push_back(std::make_unique<std::binary_semaphore>(0));
  }
  {
    std::vector<std::jthread> threads;
    for (size_t job = 0; job < kJobBuffers.size(); ++job) {
      threads.emplace_back([&, job] {
        observer->OnJobBegin(load, job);
        begun.arrive_and_wait();
        for (size_t i = 0; i < order.size(); ++i) {
          if (order[i].job != job) continue;
          if (i > 0) turns[i - 1]->acquire();
          make(order[i]);
          turns[i]->release();
        }
        observer->OnJobEnd(load, job, true);
      });
    }
  }
  observer->OnLoadEnd(load);
}

// Runs the load through InOrder. With two workers or more, job 0 makes its second buffer only after
// job 1 has made its own, so that the jobs have interleaved for certain.
inline Status RunLoadOnWorkers(LoadObserver* observer, int workers,
                               const std::function<void(const LoadEvent&)>& make) {
  std::latch job_1_is_done(1);
  return InOrder(kJobBuffers.size(), workers, observer, [&](size_t job) -> Status {
    for (size_t k = 0; k < kJobBuffers[job]; ++k) {
      if (workers > 1 && job == 0 && k == 1) job_1_is_done.wait();
      make({job, k});
    }
    if (job == 1) job_1_is_done.count_down();
    return {};
  });
}

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_LOAD_FIXTURE_H_
