#include "gpu/cpu/worker_pool.h"

#include <bit>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "gpu/cpu/futex.h"

namespace assay::gpu {
namespace {

constexpr std::align_val_t kScratchAlignment{64};

constexpr uint64_t MakeTicket(uint32_t chunks) { return uint64_t{chunks} << 32; }
constexpr uint32_t ChunksOf(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 32); }
constexpr uint32_t NextOf(uint64_t ticket) { return static_cast<uint32_t>(ticket); }
constexpr bool HasChunk(uint64_t ticket) { return NextOf(ticket) < ChunksOf(ticket); }

}  // namespace

Result<Scratch> Scratch::Allocate(uint32_t size_bytes) {
  void* const bytes = ::operator new(size_bytes, kScratchAlignment, std::nothrow);
  if (bytes == nullptr) {
    return Fail(
        ErrorCode::kAllocation, "cpu",
        fmt::format("A worker's shared memory ({} bytes) cannot be allocated.", size_bytes));
  }
  return Scratch(static_cast<std::byte*>(bytes), size_bytes);
}

void Scratch::Delete::operator()(std::byte* bytes) const {
  ::operator delete(bytes, kScratchAlignment);
}

// --- Life

Result<std::unique_ptr<WorkerPool>> WorkerPool::Create(int threads, uint32_t spin_us,
                                                       uint32_t scratch_bytes,
                                                       std::function<bool()> cancelled) {
  std::unique_ptr<WorkerPool> pool(
      new WorkerPool(threads, spin_us, scratch_bytes, std::move(cancelled)));
  for (int i = 1; i < threads; ++i) {
    ASSAY_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Allocate(scratch_bytes));
    pool->scratches_.push_back(std::move(scratch));
  }
  for (int i = 1; i < threads; ++i) {
    const std::span<std::byte> scratch = pool->scratches_[static_cast<size_t>(i) - 1].bytes();
    try {
      pool->workers_.emplace_back([raw = pool.get(), scratch] { raw->RunWorker(scratch); });
    } catch (const std::system_error& error) {
      return Fail(ErrorCode::kDevice, "cpu",
                  fmt::format("Worker thread {} of {} cannot be started: {}.", i, threads - 1,
                              error.what()));
    }
  }
  return pool;
}

WorkerPool::~WorkerPool() {
  stop_.store(true, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  WakeAll(wake_);
}

Result<std::unique_ptr<WorkerPool::Lane>> WorkerPool::CreateLane() {
  ASSAY_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Allocate(scratch_bytes_));
  return std::unique_ptr<Lane>(new Lane(this, std::move(scratch)));
}

void WorkerPool::RunWorker(std::span<std::byte> scratch) {
  while (!stop_.load(std::memory_order_relaxed)) {
    if (RunAny(scratch)) continue;
    Await([this] { return AnyToClaim() || stop_.load(std::memory_order_seq_cst); });
  }
}

// --- Claiming

bool WorkerPool::AnyToClaim() const {
  uint64_t active = active_slots_.load(std::memory_order_seq_cst);
  for (; active != 0; active &= active - 1) {
    const auto slot = static_cast<size_t>(std::countr_zero(active));
    if (HasChunk(slots_[slot].ticket.load(std::memory_order_seq_cst))) return true;
  }
  return false;
}

bool WorkerPool::RunAny(std::span<std::byte> scratch) {
  uint64_t active = active_slots_.load(std::memory_order_relaxed);
  for (; active != 0; active &= active - 1) {
    if (RunSlot(slots_[static_cast<size_t>(std::countr_zero(active))], scratch)) return true;
  }
  return false;
}

bool WorkerPool::RunSlot(Slot& slot, std::span<std::byte> scratch) {
  // While this thread holds a chunk that is not counted as complete, the group cannot end, so all
  // claims of this loop are of one group.
  uint32_t ran = 0;
  uint32_t chunks = 0;
  for (;;) {
    // The look before the claim bounds how far the ticket runs past the end.
    if (!HasChunk(slot.ticket.load(std::memory_order_relaxed))) break;
    const uint64_t ticket = slot.ticket.fetch_add(1, std::memory_order_acquire);
    if (!HasChunk(ticket)) break;
    slot.list->RunChunk(slot.list->groups()[slot.group], NextOf(ticket), scratch);
    chunks = ChunksOf(ticket);
    ++ran;
  }
  if (ran == 0) return false;
  if (slot.completed.fetch_add(ran, std::memory_order_acq_rel) + ran == chunks) {
    Advance(slot, scratch);
  }
  return true;
}

// --- Groups and lists

void WorkerPool::Publish(Slot& slot) {
  slot.completed.store(0, std::memory_order_relaxed);
  slot.ticket.store(MakeTicket(slot.list->groups()[slot.group].chunks), std::memory_order_seq_cst);
  WakeSleepers();
}

bool WorkerPool::OpenGroup(Slot& slot, std::span<std::byte> scratch) {
  const std::span<const CpuGroup> groups = slot.list->groups();
  for (; slot.group < groups.size(); ++slot.group) {
    if (cancelled_ && cancelled_()) {
      slot.lane->left_out_.store(true, std::memory_order_release);
      return false;
    }
    if (groups[slot.group].chunks > 1) {
      Publish(slot);
      return true;
    }
    // Nothing to share: running it here spares the trip to another core.
    slot.list->RunChunk(groups[slot.group], 0, scratch);
  }
  return false;
}

void WorkerPool::Advance(Slot& slot, std::span<std::byte> scratch) {
  ++slot.group;
  while (!OpenGroup(slot, scratch)) {
    const std::lock_guard lock(mutex_);
    Lane* const lane = slot.lane;
    const auto index = static_cast<size_t>(&slot - slots_.data());
    const bool more = !lane->waiting_.empty();
    if (more) {
      Seat(lane, index);
    } else {
      lane->slot_.store(Lane::kNoSlot, std::memory_order_relaxed);
      active_slots_.fetch_and(~(uint64_t{1} << index), std::memory_order_seq_cst);
    }
    // With nothing more to run the lane may be gone after this.
    lane->finished_.fetch_add(1, std::memory_order_seq_cst);
    WakeSleepers();
    if (more) continue;
    if (lanes_without_slot_.empty()) return;
    Seat(lanes_without_slot_.front(), index);
    lanes_without_slot_.pop_front();
  }
}

void WorkerPool::Seat(Lane* lane, size_t index) {
  Slot& slot = slots_[index];
  slot.lane = lane;
  slot.list = lane->waiting_.front();
  lane->waiting_.pop_front();
  slot.group = 0;
  lane->slot_.store(index, std::memory_order_relaxed);
  active_slots_.fetch_or(uint64_t{1} << index, std::memory_order_seq_cst);
}

void WorkerPool::Submit(Lane* lane, const CommandList* list) {
  const std::lock_guard lock(mutex_);
  lane->waiting_.push_back(list);
  if (lane->slot_.load(std::memory_order_relaxed) != Lane::kNoSlot) return;
  if (lane->waiting_.size() > 1) return;  // It stands among lanes_without_slot_ already.
  const uint64_t active = active_slots_.load(std::memory_order_seq_cst);
  if (active == ~uint64_t{0}) {
    lanes_without_slot_.push_back(lane);
    return;
  }
  const auto index = static_cast<size_t>(std::countr_one(active));
  Seat(lane, index);
  // Also a group of one chunk: the host has other things to do than to run it.
  Publish(slots_[index]);
}

// --- Waiting

void WorkerPool::WakeSleepers() {
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  sleepers_.store(0, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  WakeAll(wake_);
}

template <typename Ready>
void WorkerPool::Await(const Ready& ready) {
  constexpr int kLooksPerClock = 8;
  if (spin_ns_ > 0) {
    const auto start = std::chrono::steady_clock::now();
    const auto limit = std::chrono::nanoseconds(spin_ns_);
    do {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (ready()) return;
        CpuPause();
      }
    } while (std::chrono::steady_clock::now() - start < limit);
  }
  // The order matters. WakeSleepers clears the count and raises the word after something became
  // ready: if it has seen this thread counted, the word differs from the value read before; if it
  // has not, the look below comes after what it announces. A thread that finds work in that look
  // stays counted, which costs one needless wake-up.
  const uint32_t word = wake_.load(std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (ready()) return;
  SleepWhileEqual(wake_, word);
}

uint64_t WorkerPool::Lane::Submit(const CommandList* list) {
  pool_->Submit(this, list);
  return ++submitted_;
}

void WorkerPool::Lane::Wait(uint64_t number) {
  const auto finished = [&] { return finished_.load(std::memory_order_seq_cst) >= number; };
  while (!finished()) {
    const size_t slot = slot_.load(std::memory_order_seq_cst);
    // Without a slot this lane's turn comes only when another lane gives up its own, so this thread
    // helps all; otherwise it keeps to its own work.
    const bool ran = slot == kNoSlot ? pool_->RunAny(scratch_.bytes())
                                     : pool_->RunSlot(pool_->slots_[slot], scratch_.bytes());
    if (ran) continue;
    pool_->Await([&] {
      if (finished()) return true;
      const size_t now = slot_.load(std::memory_order_seq_cst);
      return now == kNoSlot ? pool_->AnyToClaim()
                            : HasChunk(pool_->slots_[now].ticket.load(std::memory_order_seq_cst));
    });
  }
}

}  // namespace assay::gpu
