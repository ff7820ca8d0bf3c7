// Knows which loads run and which job each thread is in.
//
// One load at a time has places: the one that was begun while no other ran. A load begun while
// another runs is nested, whichever thread began it, and what is made in it has no place. The map
// from threads to their scopes is a member, so that two traces of one process do not meet.
#ifndef ASSAY_TRACE_LOAD_SCOPES_H_
#define ASSAY_TRACE_LOAD_SCOPES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "assay/trace.h"

namespace assay::trace {

// Where the calling thread stands.
struct Place {
  enum class Where : uint8_t {
    kSession,  // The session's own thread, in no job.
    kJob,      // In job `job` of the load that has places.
    kNowhere,  // Without a deterministic place, because of `reason`.
  };
  Where where = Where::kSession;
  bool in_load = false;  // A load runs.
  size_t job = 0;
  Refusal reason = Refusal::kOffThread;
};

// What a load leaves when it ends.
struct EndedLoad {
  bool had_places = false;
  // Jobs from this one on are not numbered (T5); SIZE_MAX when none failed.
  size_t lowest_failed_job = SIZE_MAX;
};

// Thread-compatible: the owner locks. The calling thread is always std::this_thread.
class LoadScopes final {
 public:
  // The constructing thread is the session's own.
  LoadScopes() : session_thread_(std::this_thread::get_id()) {}

  uint64_t BeginLoad();
  void BeginJob(uint64_t load, size_t job);
  void EndJob(uint64_t load, size_t job, bool ok);
  EndedLoad EndLoad(uint64_t load);

  Place Here() const;
  bool AnyLoad() const { return !running_.empty(); }

 private:
  // What a thread has entered and not left: a load it began, or a job.
  struct Scope {
    uint64_t load = 0;
    std::optional<size_t> job;
    bool operator==(const Scope&) const = default;
  };

  void Leave(const Scope& scope);

  const std::thread::id session_thread_;
  std::map<std::thread::id, std::vector<Scope>> scopes_;  // Innermost last; no empty entry.
  std::set<uint64_t> running_;
  std::optional<uint64_t> load_with_places_;
  size_t lowest_failed_job_ = SIZE_MAX;
  uint64_t last_load_ = 0;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_LOAD_SCOPES_H_
