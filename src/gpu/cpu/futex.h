// Sleeping until a word changes.
#ifndef ASSAY_GPU_CPU_FUTEX_H_
#define ASSAY_GPU_CPU_FUTEX_H_

#include <atomic>
#include <climits>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace assay::gpu {

// std::atomic::wait of libstdc++ 12 spins and shares a table of waiters first; the pool has done
// its spinning and wants to sleep at once.
inline void SleepWhileEqual(std::atomic<uint32_t>& word, uint32_t value) {
  while (word.load(std::memory_order_acquire) == value) {
#if defined(__linux__)
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
#else
    word.wait(value, std::memory_order_acquire);
#endif
  }
}

inline void WakeAll(std::atomic<uint32_t>& word) {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#else
  word.notify_all();
#endif
}

// Tells the processor that this is a spin loop.
inline void CpuPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_FUTEX_H_
