// The scheduler of the cpu device: resident worker threads that share the work of all queues.
//
// The unit of work is a chunk: some workgroups of one dispatch. The chunks of a barrier-free group
// form one pool, from which every thread claims one at a time through a single atomic ticket. The
// group has ended when its chunks are complete, not when every thread has come by, so a thread that
// the system has taken off its core delays nobody unless it holds a chunk. Whoever completes the
// last chunk opens the next group. Idle threads spin for a short while and then sleep.
#ifndef ASSAY_GPU_CPU_WORKER_POOL_H_
#define ASSAY_GPU_CPU_WORKER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "assay/base.h"

#include "gpu/cpu/command_list.h"

namespace assay::gpu {

// Memory that a kernel sees as its workgroup's shared memory; one a thread.
class Scratch final {
 public:
  // Errors: kAllocation.
  static Result<Scratch> Allocate(uint32_t size_bytes);
  std::span<std::byte> bytes() const { return {bytes_.get(), size_bytes_}; }

 private:
  Scratch(std::byte* bytes, uint32_t size_bytes) : bytes_(bytes), size_bytes_(size_bytes) {}
  struct Delete {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Delete> bytes_;
  uint32_t size_bytes_;
};

class WorkerPool final {
 public:
  // The command lists of one queue, which run one after another. Used by one thread.
  class Lane;

  // `threads` counts the host inside Wait as one, so that threads - 1 workers are started.
  // `cancelled`, where there is one, is asked before each group but a list's first; once it says
  // true, the rest of the list is left out. Errors: kDevice when a worker cannot be started,
  // kAllocation.
  static Result<std::unique_ptr<WorkerPool>> Create(int threads, uint32_t spin_us,
                                                    uint32_t scratch_bytes,
                                                    std::function<bool()> cancelled = {});
  // Every lane must have gone.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return threads_; }
  // Errors: kAllocation.
  Result<std::unique_ptr<Lane>> CreateLane();

 private:
  // Where the running group of one lane is claimed from. A lane holds a slot while it has work.
  struct alignas(128) Slot {
    // High half: chunks of the group; low half: the next one to claim. A claim is valid when it
    // lies below the number that came with it, and then the group stays until it is complete.
    std::atomic<uint64_t> ticket{0};
    // Chunks of the group that have run; on a line of its own, since the claims beat on the other.
    alignas(64) std::atomic<uint32_t> completed{0};
    // Written between two groups, by whoever opens the next; read by holders of a chunk.
    uint32_t group = 0;
    const CommandList* list = nullptr;
    Lane* lane = nullptr;
  };
  static constexpr size_t kSlots = 64;

  WorkerPool(int threads, uint32_t spin_us, uint32_t scratch_bytes, std::function<bool()> cancelled)
      : threads_(threads),
        spin_ns_(uint64_t{spin_us} * 1000),
        scratch_bytes_(scratch_bytes),
        cancelled_(std::move(cancelled)) {}

  void RunWorker(std::span<std::byte> scratch);
  // Runs chunks of some slot; false when there were none.
  bool RunAny(std::span<std::byte> scratch);
  bool RunSlot(Slot& slot, std::span<std::byte> scratch);
  bool AnyToClaim() const;
  // Called by whoever completed the last chunk of a group: goes on to the slot's next group, to
  // the lane's next list, to the next lane, or frees the slot.
  void Advance(Slot& slot, std::span<std::byte> scratch);
  // Opens the next group that more than one thread can work on and runs those before it here; false
  // when the list is at its end.
  bool OpenGroup(Slot& slot, std::span<std::byte> scratch);
  void Publish(Slot& slot);
  void WakeSleepers();
  // Returns once `ready` holds, or for no reason: spins for a while, then sleeps until
  // WakeSleepers.
  template <typename Ready>
  void Await(const Ready& ready);

  void Submit(Lane* lane, const CommandList* list);
  // Under the mutex: gives the slot to a lane with a waiting list.
  void Seat(Lane* lane, size_t slot);

  const int threads_;
  const uint64_t spin_ns_;
  const uint32_t scratch_bytes_;
  const std::function<bool()> cancelled_;

  std::array<Slot, kSlots> slots_;
  alignas(64) std::atomic<uint64_t> active_slots_{0};  // Bit i: slot i has a lane.
  alignas(64) std::atomic<uint32_t> sleepers_{0};      // An upper bound; see Await.
  std::atomic<uint32_t> wake_{0};                      // Rises when sleepers must look again.
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // Guards which lane has which slot, and the lists that wait.
  std::deque<Lane*> lanes_without_slot_;

  std::vector<Scratch> scratches_;     // One a worker.
  std::vector<std::jthread> workers_;  // Last, so that they end first.
};

class WorkerPool::Lane final {
 public:
  // Waits for what was submitted.
  ~Lane() { Wait(submitted_); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Hands over a list, which must live, unchanged, until Wait has returned for its number: they
  // count from 1.
  uint64_t Submit(const CommandList* list);
  // Helps with the work until list `number` and all before it have run.
  void Wait(uint64_t number);
  // Whether groups of what has run since the last question were left out.
  bool TakeLeftOut() { return left_out_.exchange(false, std::memory_order_acq_rel); }

 private:
  friend class WorkerPool;
  static constexpr size_t kNoSlot = SIZE_MAX;

  Lane(WorkerPool* pool, Scratch scratch) : pool_(pool), scratch_(std::move(scratch)) {}

  WorkerPool* const pool_;
  Scratch scratch_;  // Of the host in Wait.
  uint64_t submitted_ = 0;
  std::atomic<uint64_t> finished_{0};
  std::atomic<bool> left_out_{false};
  std::atomic<size_t> slot_{kNoSlot};       // Written under the pool's mutex.
  std::deque<const CommandList*> waiting_;  // Guarded by the pool's mutex.
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_WORKER_POOL_H_
