// A backend for tests that stands before another one: it writes down what it is asked, counts what
// is alive, and fails a chosen call.
#ifndef ASSAY_TESTS_CONFORMANCE_SPY_BACKEND_H_
#define ASSAY_TESTS_CONFORMANCE_SPY_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "assay/base.h"

#include "gpu/backend.h"

namespace assay::gpu::testing {

// Everything that a backend can be asked and can refuse.
enum class SpyCall : uint8_t {
  kCreateBuffer,
  kImportHostMemory,
  kCreateKernel,
  kCreateQueue,
  kBegin,
  kDispatch,
  kBarrier,
  kEndEncoding,
  kCommit,
  kWait,
  kWrite,
  kRead,
  kMap,
};
inline constexpr size_t kSpyCalls = 13;

// Shared by the test and the backend. Thread-safe.
class Spy final {
 public:
  // The `n`-th call of that kind from now on, counted from 1, fails: with FailureCode(call) and its
  // word as the subject.
  void FailNth(SpyCall call, size_t n);
  // Nothing fails from now on.
  void FailNone();
  static ErrorCode FailureCode(SpyCall call) {
    return call == SpyCall::kCreateBuffer ? ErrorCode::kAllocation : ErrorCode::kDevice;
  }
  // True once it has; the word of the call that did.
  bool failed() const;
  std::string failed_word() const;
  // Words such as "begin", "dispatch add", "barrier", "end", "commit", "wait", in order.
  std::vector<std::string> TakeLog();
  // What the backend gives out in place of the inner one's; set before the backend is made.
  void set_load_observer(LoadObserver* observer) { load_observer_ = observer; }
  // Objects of the backend that have not been destroyed.
  size_t buffers() const { return buffers_.load(); }
  size_t command_buffers() const { return command_buffers_.load(); }
  size_t queues() const { return queues_.load(); }

 private:
  friend class SpyBackend;
  friend class SpyBuffer;
  friend class SpyCommandBuffer;
  friend class SpyQueue;

  Status Enter(SpyCall call, std::string word);

  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::optional<SpyCall> fail_call_;
  size_t calls_until_failure_ = 0;
  bool failed_ = false;
  std::string failed_word_;
  LoadObserver* load_observer_ = nullptr;
  std::atomic<size_t> buffers_{0};
  std::atomic<size_t> command_buffers_{0};
  std::atomic<size_t> queues_{0};
};

std::unique_ptr<Backend> MakeSpyBackend(std::unique_ptr<Backend> inner, std::shared_ptr<Spy> spy);

}  // namespace assay::gpu::testing

#endif  // ASSAY_TESTS_CONFORMANCE_SPY_BACKEND_H_
