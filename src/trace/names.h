// The rules that name buffers (T3..T8), without a lock: BufferNamer and the writer each own one
// behind theirs.
#ifndef ASSAY_TRACE_NAMES_H_
#define ASSAY_TRACE_NAMES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "assay/trace.h"

#include "trace/load_scopes.h"

namespace assay::trace {

// The number of one buffer, known at once or at the end of its load. The number may be read by any
// thread; `line` belongs to the writer, which guards it.
class BufferNamer::Slot final {
 public:
  // Whether the buffer's line stands in the trace.
  enum class Line : uint8_t { kNotYet, kWritten, kNever };

  std::optional<BufferId> number() const {
    const uint64_t value = value_.load(std::memory_order_acquire);
    if (value == kPending || value == kFailed) return std::nullopt;
    return BufferId(value);
  }
  bool refused() const { return number() == kUnnamedBuffer; }

  mutable Line line = Line::kNotYet;

 private:
  friend class NameTable;
  static constexpr uint64_t kPending = UINT64_MAX - 1;
  static constexpr uint64_t kFailed = UINT64_MAX - 2;
  void Settle(uint64_t value) { value_.store(value, std::memory_order_release); }

  std::atomic<uint64_t> value_{kPending};
};

// Thread-compatible: the owner locks.
class NameTable final {
 public:
  using Slot = BufferNamer::Slot;
  using SlotRef = BufferNamer::SlotRef;

  explicit NameTable(int version) : version_(version) {}

  // Names the buffer that the calling thread makes now.
  SlotRef Made(uint64_t key);
  // Null when no buffer is alive under `key`.
  SlotRef Find(uint64_t key) const;
  // The slot of the buffer that ends; null when there is none.
  SlotRef Freed(uint64_t key);

  uint64_t BeginLoad() { return scopes_.BeginLoad(); }
  void BeginJob(uint64_t load, size_t job) { scopes_.BeginJob(load, job); }
  void EndJob(uint64_t load, size_t job, bool ok) { scopes_.EndJob(load, job, ok); }
  // Numbers the buffers of the load's jobs.
  EndedLoad EndLoad(uint64_t load);

  Place Here() const { return scopes_.Here(); }
  bool AnyLoad() const { return scopes_.AnyLoad(); }
  // True where buffers and events without a deterministic place are refused; version 1 takes them
  // as they come (T8).
  bool refuses() const { return version_ != kCreationOrderVersion; }
  const std::array<uint64_t, kRefusalCount>& refusals() const { return refusals_; }

 private:
  void NumberNext(Slot* slot) { slot->Settle(next_++); }
  void Refuse(Slot* slot, Refusal reason);

  const int version_;
  LoadScopes scopes_;
  std::unordered_map<uint64_t, std::shared_ptr<Slot>> alive_;
  // The buffers of the running load that have a place, by job and then in order of making.
  std::map<size_t, std::vector<std::shared_ptr<Slot>>> placed_;
  uint64_t next_ = 0;
  std::array<uint64_t, kRefusalCount> refusals_{};
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_NAMES_H_
