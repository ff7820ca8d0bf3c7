#include "trace/load_scopes.h"

#include <algorithm>

namespace assay::trace {

uint64_t LoadScopes::BeginLoad() {
  const uint64_t load = ++last_load_;
  if (running_.empty()) {
    load_with_places_ = load;
    lowest_failed_job_ = SIZE_MAX;
  }
  running_.insert(load);
  scopes_[std::this_thread::get_id()].push_back({load, std::nullopt});
  return load;
}

void LoadScopes::BeginJob(uint64_t load, size_t job) {
  scopes_[std::this_thread::get_id()].push_back({load, job});
}

void LoadScopes::EndJob(uint64_t load, size_t job, bool ok) {
  Leave({load, job});
  if (!ok && load_with_places_ == load) lowest_failed_job_ = std::min(lowest_failed_job_, job);
}

EndedLoad LoadScopes::EndLoad(uint64_t load) {
  running_.erase(load);
  Leave({load, std::nullopt});
  if (load_with_places_ != load) return {};
  load_with_places_.reset();
  return {.had_places = true, .lowest_failed_job = lowest_failed_job_};
}

void LoadScopes::Leave(const Scope& scope) {
  const auto thread = scopes_.find(std::this_thread::get_id());
  if (thread == scopes_.end()) return;
  std::vector<Scope>& entered = thread->second;
  const auto innermost = std::find(entered.rbegin(), entered.rend(), scope);
  if (innermost == entered.rend()) return;
  entered.erase(std::next(innermost).base());
  if (entered.empty()) scopes_.erase(thread);
}

Place LoadScopes::Here() const {
  const std::thread::id self = std::this_thread::get_id();
  Place place{.in_load = AnyLoad()};
  if (const auto thread = scopes_.find(self); thread != scopes_.end()) {
    const Scope& innermost = thread->second.back();
    const auto refuse = [&](Refusal reason) {
      place.where = Place::Where::kNowhere;
      place.reason = reason;
      return place;
    };
    if (!running_.contains(innermost.load)) return refuse(Refusal::kStaleJob);
    if (innermost.load != load_with_places_) return refuse(Refusal::kNestedLoad);
    if (innermost.job) {
      place.where = Place::Where::kJob;
      place.job = *innermost.job;
      return place;
    }
  }
  if (self == session_thread_) return place;
  place.where = Place::Where::kNowhere;
  place.reason = place.in_load ? Refusal::kOutsideJob : Refusal::kOffThread;
  return place;
}

}  // namespace assay::trace
