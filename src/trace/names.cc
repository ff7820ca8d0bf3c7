#include "trace/names.h"

#include <mutex>
#include <utility>

namespace assay::trace {

NameTable::SlotRef NameTable::Made(uint64_t key) {
  auto slot = std::make_shared<Slot>();
  const Place place = scopes_.Here();
  if (version_ == kCreationOrderVersion) {
    NumberNext(slot.get());
  } else if (place.where == Place::Where::kJob) {
    placed_[place.job].push_back(slot);
  } else if (place.where == Place::Where::kNowhere) {
    Refuse(slot.get(), place.reason);
  } else if (place.in_load) {
    Refuse(slot.get(), Refusal::kOutsideJob);
  } else {
    NumberNext(slot.get());
  }
  alive_.insert_or_assign(key, slot);
  return slot;
}

NameTable::SlotRef NameTable::Find(uint64_t key) const {
  const auto found = alive_.find(key);
  return found == alive_.end() ? nullptr : found->second;
}

NameTable::SlotRef NameTable::Freed(uint64_t key) {
  const auto found = alive_.find(key);
  if (found == alive_.end()) return nullptr;
  SlotRef slot = std::move(found->second);
  alive_.erase(found);
  return slot;
}

EndedLoad NameTable::EndLoad(uint64_t load) {
  const EndedLoad ended = scopes_.EndLoad(load);
  if (!ended.had_places) return ended;
  for (const auto& [job, slots] : std::exchange(placed_, {})) {
    const bool numbered = job < ended.lowest_failed_job;
    for (const std::shared_ptr<Slot>& slot : slots) {
      if (numbered) {
        NumberNext(slot.get());
      } else {
        slot->Settle(Slot::kFailed);
      }
    }
  }
  return ended;
}

void NameTable::Refuse(Slot* slot, Refusal reason) {
  slot->Settle(kUnnamedBuffer.value());
  ++refusals_[static_cast<size_t>(reason)];
}

struct BufferNamer::State {
  explicit State(int version) : table(version) {}
  mutable std::mutex mutex;
  NameTable table;  // Guarded by mutex.
};

BufferNamer::BufferNamer(int version) : state_(std::make_unique<State>(version)) {}
BufferNamer::~BufferNamer() = default;

BufferNamer::SlotRef BufferNamer::Made(uint64_t key) {
  const std::lock_guard lock(state_->mutex);
  return state_->table.Made(key);
}

BufferNamer::SlotRef BufferNamer::Find(uint64_t key) const {
  const std::lock_guard lock(state_->mutex);
  return state_->table.Find(key);
}

void BufferNamer::Freed(uint64_t key) {
  const std::lock_guard lock(state_->mutex);
  state_->table.Freed(key);
}

std::optional<BufferId> BufferNamer::NumberOf(const SlotRef& slot) {
  return slot == nullptr ? std::nullopt : slot->number();
}

uint64_t BufferNamer::OnLoadBegin(size_t /*job_count*/) {
  const std::lock_guard lock(state_->mutex);
  return state_->table.BeginLoad();
}

void BufferNamer::OnJobBegin(uint64_t load, size_t job) {
  const std::lock_guard lock(state_->mutex);
  state_->table.BeginJob(load, job);
}

void BufferNamer::OnJobEnd(uint64_t load, size_t job, bool ok) {
  const std::lock_guard lock(state_->mutex);
  state_->table.EndJob(load, job, ok);
}

void BufferNamer::OnLoadEnd(uint64_t load) {
  const std::lock_guard lock(state_->mutex);
  state_->table.EndLoad(load);
}

std::array<uint64_t, kRefusalCount> BufferNamer::refusals() const {
  const std::lock_guard lock(state_->mutex);
  return state_->table.refusals();
}

}  // namespace assay::trace
