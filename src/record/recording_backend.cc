#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "assay/record.h"

#include "gpu/backend.h"

namespace assay::record {
namespace {

using gpu::Backend;
using gpu::BackendBinding;
using gpu::BackendBuffer;
using gpu::BackendCommandBuffer;
using gpu::BackendDispatch;
using gpu::BackendKernel;
using gpu::BackendQueue;
using trace::TraceWriter;

// The trace knows a thing by its address, which is unique among those alive.
uint64_t KeyOf(const void* thing) { return reinterpret_cast<uintptr_t>(thing); }

// How many buffers have ended: then an address may come again.
using Frees = std::atomic<uint64_t>;

class RecordedBuffer final : public BackendBuffer {
 public:
  RecordedBuffer(std::unique_ptr<BackendBuffer> inner, const gpu::BufferDesc& desc,
                 TraceWriter* writer, std::shared_ptr<Frees> frees)
      : inner_(std::move(inner)), writer_(writer), frees_(std::move(frees)) {
    writer_->BufferMade(KeyOf(this), {.size_bytes = desc.size_bytes,
                                      .kind = desc.kind,
                                      .label = desc.label,
                                      .digest = desc.digest});
  }
  // Before the address can come again.
  ~RecordedBuffer() override {
    frees_->fetch_add(1, std::memory_order_release);
    writer_->BufferFreed(KeyOf(this));
  }
  BackendBuffer* inner() const { return inner_.get(); }

 private:
  std::unique_ptr<BackendBuffer> inner_;
  TraceWriter* writer_;
  std::shared_ptr<Frees> frees_;
};

BackendBuffer* Inner(BackendBuffer* buffer) {
  return static_cast<RecordedBuffer*>(buffer)->inner();
}

// What one command buffer encodes. It is held against the command buffer before, since the steps of
// a decode say nearly the same: only what differs is translated, kept and, once the command buffer
// is committed and the device works, written down. The front end keeps what is bound alive for as
// long.
class EncodedCommands final {
 public:
  EncodedCommands(std::unique_ptr<TraceWriter::CommandBuffer> recorded,
                  std::shared_ptr<const Frees> frees)
      : recorded_(std::move(recorded)), frees_(std::move(frees)) {}

  // A command buffer begins.
  void Begin() {
    next_ = 0;
    changes_.clear();
    // What was not written is not what `recorded_` holds.
    if (!std::exchange(written_, false)) Truncate();
  }
  // Adds a dispatch and returns its bindings as the inner backend knows them, until the next call.
  std::span<const BackendBinding> Add(const BackendDispatch& dispatch) {
    // When a buffer has ended, an address from before may be another's.
    const uint64_t frees = frees_->load(std::memory_order_acquire);
    if (frees != seen_frees_) [[unlikely]] {
      seen_frees_ = frees;
      Truncate();
    }
    if (next_ < kept_ && SameShape(events_[next_], dispatch)) {
      Change(dispatch);
    } else {
      Append(dispatch);
    }
    const Event& event = events_[next_++];
    return std::span(inner_).subspan(event.first_binding, event.bindings);
  }
  void AddBarrier() {
    if (next_ >= kept_ || events_[next_].kernel_key != kBarrier) {
      Truncate();
      Event barrier;
      barrier.first_binding = inner_.size();
      barrier.first_constant = constants_.size();
      events_.push_back(barrier);
    }
    ++next_;
  }
  // Takes back the last dispatch.
  void Drop() {
    --next_;
    Truncate();
  }

  // Writes all that was added since Begin, as one command buffer.
  void WriteTo(TraceWriter* writer) {
    if (next_ < events_.size()) Truncate();
    const bool all_kept = kept_ == events_.size() && kept_ == recorded_events_;
    if (!all_kept) recorded_->Restart();
    if (all_kept && recorded_->Repeat()) {
      for (const Changed& changed : changes_) WriteChange(changed);
    } else {
      WriteAll();
    }
    writer->Commit(*recorded_);
    kept_ = recorded_events_ = events_.size();
    written_ = true;
  }

 private:
  static constexpr size_t kRangesTold = 32;  // The bits of Changed::ranges.
  // No kernel has this address.
  static constexpr uint64_t kBarrier = 0;
  struct Event {
    uint64_t kernel_key = kBarrier;
    Extent3 grid;
    uint32_t shared_bytes = 0;
    uint32_t bindings = 0;
    uint32_t constants = 0;
    size_t first_binding = 0;
    size_t first_constant = 0;
  };
  struct Changed {
    size_t event = 0;
    bool more = false;    // Than what follows.
    uint32_t ranges = 0;  // Bit i: that of binding i.
    // Constant bytes, as a place in the event's and a number; none: 0.
    uint32_t first_constant = 0;
    uint32_t constants = 0;
  };

  static bool SameShape(const Event& event, const BackendDispatch& dispatch) {
    return event.kernel_key == KeyOf(dispatch.kernel) &&
           event.bindings == dispatch.bindings.size() &&
           event.constants == dispatch.constants.size();
  }
  std::span<const std::byte> ConstantsOf(const Event& event) const {
    return std::span(constants_).subspan(event.first_constant, event.constants);
  }

  // Makes the event here, which has the shape of `dispatch`, say the same.
  void Change(const BackendDispatch& dispatch) {
    Event& event = events_[next_];
    Changed changed{
        .event = next_,
        .more = event.grid != dispatch.grid || event.shared_bytes != dispatch.shared_bytes};
    event.grid = dispatch.grid;
    event.shared_bytes = dispatch.shared_bytes;
    BackendBinding* inner = inner_.data() + event.first_binding;
    BackendBuffer** outer = outer_.data() + event.first_binding;
    for (const BackendBinding& binding : dispatch.bindings) {
      if (*outer != binding.buffer || inner->access != binding.access ||
          inner->exact != binding.exact) [[unlikely]] {
        *outer = binding.buffer;
        *inner = {Inner(binding.buffer), binding.range, binding.access, binding.exact};
        changed.more = true;
      } else if (inner->range != binding.range) {
        inner->range = binding.range;
        const auto place = static_cast<size_t>(&binding - dispatch.bindings.data());
        if (place < kRangesTold) {
          changed.ranges |= uint32_t{1} << place;
        } else {
          changed.more = true;
        }
      }
      ++inner;
      ++outer;
    }
    CopyConstants(dispatch.constants, event, &changed);
    if (changed.more || changed.ranges != 0 || changed.constants != 0) changes_.push_back(changed);
  }
  void WriteChange(const Changed& changed) {
    const Event& event = events_[changed.event];
    bool whole = changed.more;
    for (uint32_t left = changed.ranges; left != 0 && !whole; left &= left - 1) {
      const auto place = static_cast<size_t>(std::countr_zero(left));
      whole =
          !recorded_->ReplaceRange(changed.event, place, inner_[event.first_binding + place].range);
    }
    if (whole) {
      recorded_->Replace(changed.event, RecordOf(event));
    } else if (changed.constants != 0) {
      recorded_->ReplaceArgs(changed.event, changed.first_constant,
                             ConstantsOf(event).subspan(changed.first_constant, changed.constants));
    }
  }
  static constexpr uint32_t kWord = sizeof(uint32_t);
  static bool SameWord(const std::byte* a, const std::byte* b) {
    uint32_t word_a = 0, word_b = 0;
    std::memcpy(&word_a, a, kWord);
    std::memcpy(&word_b, b, kWord);
    return word_a == word_b;
  }
  // Notes the words from the first that differs to the last.
  void CopyConstants(std::span<const std::byte> from, const Event& event, Changed* changed) {
    std::byte* const to = constants_.data() + event.first_constant;
    if (from.empty() || std::memcmp(to, from.data(), event.constants) == 0) return;
    uint32_t begin = 0, end = event.constants;
    if (event.constants % kWord == 0) {
      while (SameWord(to + begin, from.data() + begin)) begin += kWord;
      while (SameWord(to + end - kWord, from.data() + end - kWord)) end -= kWord;
    }
    std::memcpy(to + begin, from.data() + begin, end - begin);
    changed->first_constant = begin;
    changed->constants = end - begin;
  }

  // From here on nothing is like the command buffer before.
  void Append(const BackendDispatch& dispatch) {
    Truncate();
    events_.push_back({KeyOf(dispatch.kernel), dispatch.grid, dispatch.shared_bytes,
                       static_cast<uint32_t>(dispatch.bindings.size()),
                       static_cast<uint32_t>(dispatch.constants.size()), inner_.size(),
                       constants_.size()});
    for (const BackendBinding& binding : dispatch.bindings) {
      outer_.push_back(binding.buffer);
      inner_.push_back({Inner(binding.buffer), binding.range, binding.access, binding.exact});
    }
    constants_.insert(constants_.end(), dispatch.constants.begin(), dispatch.constants.end());
  }

  // Forgets the events from the next one on.
  void Truncate() {
    kept_ = std::min(kept_, next_);
    if (next_ >= events_.size()) return;
    const Event& first = events_[next_];
    outer_.resize(first.first_binding);
    inner_.resize(first.first_binding);
    constants_.resize(first.first_constant);
    events_.resize(next_);
  }

  trace::DispatchRecord RecordOf(const Event& event) {
    bindings_.clear();
    for (size_t i = event.first_binding; i < event.first_binding + event.bindings; ++i) {
      bindings_.push_back({KeyOf(outer_[i]), inner_[i].range, inner_[i].access, inner_[i].exact});
    }
    return {.kernel_key = event.kernel_key,
            .grid = event.grid,
            .shared_bytes = event.shared_bytes,
            .args = ConstantsOf(event),
            .bindings = bindings_};
  }
  void WriteAll() {
    for (const Event& event : events_) {
      if (event.kernel_key == kBarrier) {
        recorded_->Barrier();
      } else {
        recorded_->Dispatch(RecordOf(event));
      }
    }
  }

  std::unique_ptr<TraceWriter::CommandBuffer> recorded_;
  std::vector<Event> events_;
  // A dispatch's bindings stand at the same places in both.
  std::vector<BackendBuffer*> outer_;
  std::vector<BackendBinding> inner_;
  std::vector<std::byte> constants_;
  size_t next_ = 0;             // The event that the next call says.
  size_t kept_ = 0;             // The first so many are those of the last commit, or `changes_`.
  size_t recorded_events_ = 0;  // Of the last commit.
  bool written_ = false;        // Since the last Begin.
  std::shared_ptr<const Frees> frees_;
  uint64_t seen_frees_ = 0;
  std::vector<Changed> changes_;
  std::vector<trace::DispatchRecord::Binding> bindings_;  // Of one record.
};

// Memory that is kept from one command buffer of a queue to the next.
using SpareCommands = std::vector<std::unique_ptr<EncodedCommands>>;

// What the inner backend refuses is not recorded.
class RecordingCommandBuffer final : public BackendCommandBuffer {
 public:
  RecordingCommandBuffer(std::unique_ptr<BackendCommandBuffer> inner,
                         std::unique_ptr<EncodedCommands> encoded, SpareCommands* spare)
      : inner_(std::move(inner)), encoded_(std::move(encoded)), spare_(spare) {}
  ~RecordingCommandBuffer() override { spare_->push_back(std::move(encoded_)); }

  Status Dispatch(const BackendDispatch& dispatch) override {
    BackendDispatch inner = dispatch;
    inner.bindings = encoded_->Add(dispatch);
    Status status = inner_->Dispatch(inner);
    if (!status) [[unlikely]]
      encoded_->Drop();
    return status;
  }
  Status Barrier() override {
    Status status = inner_->Barrier();
    if (status) [[likely]]
      encoded_->AddBarrier();
    return status;
  }
  Status EndEncoding() override { return inner_->EndEncoding(); }

  std::unique_ptr<BackendCommandBuffer> TakeInner() { return std::move(inner_); }
  EncodedCommands& encoded() { return *encoded_; }

 private:
  std::unique_ptr<BackendCommandBuffer> inner_;
  std::unique_ptr<EncodedCommands> encoded_;
  SpareCommands* spare_;
};

class RecordingQueue final : public BackendQueue {
 public:
  RecordingQueue(std::unique_ptr<BackendQueue> inner, TraceWriter* writer,
                 std::shared_ptr<const Frees> frees)
      : inner_(std::move(inner)), writer_(writer), frees_(std::move(frees)) {}

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendCommandBuffer> inner, inner_->Begin());
    std::unique_ptr<EncodedCommands> encoded;
    if (spare_.empty()) {
      encoded = std::make_unique<EncodedCommands>(writer_->BeginCommandBuffer(), frees_);
    } else {
      encoded = std::move(spare_.back());
      spare_.pop_back();
    }
    encoded->Begin();
    return std::make_unique<RecordingCommandBuffer>(std::move(inner), std::move(encoded), &spare_);
  }
  Result<gpu::Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override {
    auto* recording = static_cast<RecordingCommandBuffer*>(command_buffer.get());
    ASSAY_ASSIGN_OR_RETURN(const gpu::Serial serial, inner_->Commit(recording->TakeInner()));
    recording->encoded().WriteTo(writer_);
    return serial;
  }
  Status Wait(gpu::Serial serial) override {
    Status status = inner_->Wait(serial);
    if (gpu::HasFinished(status)) writer_->Wait();
    return status;
  }

 private:
  std::unique_ptr<BackendQueue> inner_;
  TraceWriter* writer_;
  std::shared_ptr<const Frees> frees_;
  SpareCommands spare_;
};

// Tells two observers of the same loads, each by its own number.
class BothObservers final : public LoadObserver {
 public:
  BothObservers(LoadObserver* first, LoadObserver* second) : first_(first), second_(second) {}

  uint64_t OnLoadBegin(size_t job_count) override {
    const Numbers numbers{first_->OnLoadBegin(job_count), second_->OnLoadBegin(job_count)};
    const std::lock_guard lock(mutex_);
    loads_.emplace(next_load_, numbers);
    return next_load_++;
  }
  void OnJobBegin(uint64_t load, size_t job) override {
    const Numbers numbers = Find(load);
    first_->OnJobBegin(numbers.first, job);
    second_->OnJobBegin(numbers.second, job);
  }
  void OnJobEnd(uint64_t load, size_t job, bool ok) override {
    const Numbers numbers = Find(load);
    first_->OnJobEnd(numbers.first, job, ok);
    second_->OnJobEnd(numbers.second, job, ok);
  }
  void OnLoadEnd(uint64_t load) override {
    const Numbers numbers = Find(load);
    first_->OnLoadEnd(numbers.first);
    second_->OnLoadEnd(numbers.second);
    const std::lock_guard lock(mutex_);
    loads_.erase(load);
  }

 private:
  struct Numbers {
    uint64_t first = 0;
    uint64_t second = 0;
  };
  Numbers Find(uint64_t load) {
    const std::lock_guard lock(mutex_);
    return loads_.at(load);
  }

  LoadObserver* first_;
  LoadObserver* second_;
  std::mutex mutex_;  // Guards the members that follow it.
  std::map<uint64_t, Numbers> loads_;
  uint64_t next_load_ = 1;
};

class RecordingBackend final : public Backend {
 public:
  RecordingBackend(std::unique_ptr<Backend> inner, TraceWriter* writer)
      : inner_(std::move(inner)), writer_(writer) {
    if (LoadObserver* const observer = inner_->load_observer(); observer != nullptr) {
      both_ = std::make_unique<BothObservers>(observer, writer_->load_observer());
    }
  }

  gpu::DeviceInfo info() const override { return inner_->info(); }
  gpu::DeviceMemory memory() const override { return inner_->memory(); }
  Status EnableChecks() override { return inner_->EnableChecks(); }

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendBuffer> inner, inner_->CreateBuffer(desc));
    return std::make_unique<RecordedBuffer>(std::move(inner), desc, writer_, frees_);
  }
  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(
      const gpu::BufferDesc& desc, std::span<const std::byte> memory) override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendBuffer> inner,
                           inner_->ImportHostMemory(desc, memory));
    return std::make_unique<RecordedBuffer>(std::move(inner), desc, writer_, frees_);
  }
  Result<std::unique_ptr<BackendKernel>> CreateKernel(const gpu::KernelDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendKernel> kernel, inner_->CreateKernel(desc));
    writer_->KernelMade(KeyOf(kernel.get()), {.name = kernel->info().name,
                                              .digest = kernel->info().digest,
                                              .workgroup = desc.workgroup,
                                              .spec = {},
                                              .shared_bytes = 0});
    return kernel;
  }
  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendQueue> inner, inner_->CreateQueue());
    return std::make_unique<RecordingQueue>(std::move(inner), writer_, frees_);
  }

  Status Write(BackendBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) override {
    ASSAY_TRY(inner_->Write(Inner(buffer), offset, bytes));
    writer_->HostWrite(KeyOf(buffer), {offset, offset + bytes.size()});
    return {};
  }
  Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    ASSAY_TRY(inner_->Read(Inner(buffer), offset, bytes));
    writer_->HostRead(KeyOf(buffer), {offset, offset + bytes.size()});
    return {};
  }
  Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range, Access access) override {
    ASSAY_ASSIGN_OR_RETURN(const std::span<std::byte> bytes,
                           inner_->Map(Inner(buffer), range, access));
    if (Reads(access)) writer_->HostRead(KeyOf(buffer), range);
    if (Writes(access)) writer_->HostWrite(KeyOf(buffer), range);
    return bytes;
  }
  void Unmap(BackendBuffer* buffer, ByteRange range, Access access) override {
    inner_->Unmap(Inner(buffer), range, access);
  }

  LoadObserver* load_observer() override {
    return both_ != nullptr ? both_.get() : writer_->load_observer();
  }

 private:
  std::unique_ptr<Backend> inner_;
  TraceWriter* writer_;
  std::shared_ptr<Frees> frees_ = std::make_shared<Frees>(0);
  std::unique_ptr<BothObservers> both_;  // Null when the inner backend does not ask.
};

}  // namespace

std::unique_ptr<gpu::Backend> MakeRecordingBackend(std::unique_ptr<gpu::Backend> inner,
                                                   trace::TraceWriter* writer) {
  return std::make_unique<RecordingBackend>(std::move(inner), writer);
}

}  // namespace assay::record
