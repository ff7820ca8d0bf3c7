#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "assay/base.h"

namespace assay {
namespace {

// Ends the load on every way out (T6).
class LoadScope {
 public:
  LoadScope(LoadObserver* observer, size_t job_count) : observer_(observer) {
    if (observer_ != nullptr) load_ = observer_->OnLoadBegin(job_count);
  }
  ~LoadScope() {
    if (observer_ != nullptr) observer_->OnLoadEnd(load_);
  }
  LoadScope(const LoadScope&) = delete;
  LoadScope& operator=(const LoadScope&) = delete;

  void BeginJob(size_t job) const {
    if (observer_ != nullptr) observer_->OnJobBegin(load_, job);
  }
  void EndJob(size_t job, bool ok) const {
    if (observer_ != nullptr) observer_->OnJobEnd(load_, job, ok);
  }

 private:
  LoadObserver* observer_;
  uint64_t load_ = 0;
};

// The failure of the lowest job; jobs above it need not start.
class LowestFailure {
 public:
  bool Below(size_t job) const { return job_.load(std::memory_order_relaxed) < job; }
  void Record(size_t job, std::optional<Error> error, std::exception_ptr thrown) {
    const std::lock_guard lock(mutex_);
    if (job >= job_.load(std::memory_order_relaxed)) return;
    job_.store(job, std::memory_order_relaxed);
    error_ = std::move(error);
    thrown_ = std::move(thrown);
  }
  Status Take() {
    if (thrown_) std::rethrow_exception(thrown_);
    if (error_) return Fail(*std::move(error_));
    return {};
  }

 private:
  std::mutex mutex_;
  std::atomic<size_t> job_{SIZE_MAX};
  std::optional<Error> error_;
  std::exception_ptr thrown_;
};

}  // namespace

Status InOrder(size_t job_count, int threads, LoadObserver* observer,
               const std::function<Status(size_t job)>& run_job) {
  LowestFailure failure;
  {
    const LoadScope scope(observer, job_count);
    // Jobs are claimed in order, so that every job below a failing one has been claimed and runs.
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t job = next.fetch_add(1); job < job_count && !failure.Below(job);
           job = next.fetch_add(1)) {
        scope.BeginJob(job);
        bool ok = false;
        try {
          Status status = run_job(job);
          ok = status.has_value();
          if (!ok) failure.Record(job, std::move(status).error(), nullptr);
        } catch (...) {
          failure.Record(job, std::nullopt, std::current_exception());
        }
        scope.EndJob(job, ok);
      }
    };
    const size_t helpers =
        std::min(job_count, static_cast<size_t>(std::max(threads, 1))) - (job_count > 0 ? 1 : 0);
    std::vector<std::jthread> pool;
    pool.reserve(helpers);
    for (size_t i = 0; i < helpers; ++i) {
      try {
        pool.emplace_back(work);
      } catch (const std::system_error&) {
        break;  // Fewer threads do the same work.
      }
    }
    work();
  }
  return failure.Take();
}

}  // namespace assay
