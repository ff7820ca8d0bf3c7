#include "gpu/cpu/fault_trap.h"

#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace assay::gpu {
namespace {

// What the handler finds of a trap. The other fields belong to the thread that `thread` names.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<pid_t> thread{0};  // 0 outside Run.
  sigjmp_buf* return_to = nullptr;
  const std::byte* address = nullptr;
};
static_assert(std::atomic<pid_t>::is_always_lock_free);

constexpr size_t kSlots = 64;

// Variables outside objects: a signal handler gets no argument of ours to reach another, and a
// process has one handler.
constinit std::array<Slot, kSlots> slots{};
constinit std::mutex handler_mutex{};
constinit int traps_alive = 0;            // Guarded by handler_mutex.
constinit struct sigaction before_us {};  // Written under handler_mutex, ahead of the handler.

extern "C" void OnFault(int number, siginfo_t* info, void*) {
  const pid_t self = gettid();
  for (Slot& slot : slots) {
    if (slot.thread.load(std::memory_order_relaxed) != self) continue;
    slot.address = static_cast<const std::byte*>(info->si_addr);
    siglongjmp(*slot.return_to, 1);
  }
  // No kernel's: the instruction faults again, under the handler of before.
  sigaction(number, &before_us, nullptr);
}

}  // namespace

FaultTrap::FaultTrap() : slot_(0) {
  // More traps than slots wait for each other; each is held for one command buffer.
  while (slots[slot_].taken.exchange(true, std::memory_order_acquire)) {
    slot_ = (slot_ + 1) % kSlots;
    if (slot_ == 0) std::this_thread::yield();
  }
  const std::lock_guard lock(handler_mutex);
  if (traps_alive++ > 0) return;
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, nullptr, &before_us);
  sigaction(SIGSEGV, &action, nullptr);
}

FaultTrap::~FaultTrap() {
  {
    const std::lock_guard lock(handler_mutex);
    if (--traps_alive == 0) sigaction(SIGSEGV, &before_us, nullptr);
  }
  slots[slot_].taken.store(false, std::memory_order_release);
}

std::optional<const std::byte*> FaultTrap::Run(void (*body)(void*), void* context) {
  Slot& slot = slots[slot_];
  sigjmp_buf return_to;
  slot.return_to = &return_to;
  if (sigsetjmp(return_to, 1) != 0) {
    slot.thread.store(0);
    return slot.address;
  }
  slot.thread.store(gettid());
  body(context);
  slot.thread.store(0);
  return std::nullopt;
}

}  // namespace assay::gpu
