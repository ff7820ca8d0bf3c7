#include "gpu/schedule/scheduled_backend.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gpu/schedule/group_conflicts.h"

namespace assay::gpu {
namespace {

class ScheduledBuffer final : public BackendBuffer {
 public:
  ScheduledBuffer(std::unique_ptr<BackendBuffer> inner, const BufferDesc& desc)
      : inner_(std::move(inner)), label_(desc.label), size_bytes_(desc.size_bytes) {}
  BackendBuffer* inner() const { return inner_.get(); }
  const std::string& label() const { return label_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::unique_ptr<BackendBuffer> inner_;
  std::string label_;
  uint64_t size_bytes_;
};

BackendBuffer* Inner(BackendBuffer* buffer) {
  return static_cast<ScheduledBuffer*>(buffer)->inner();
}

// The dispatches of a group with all that they borrow.
class GatheredGroup final {
 public:
  bool empty() const { return dispatches_.empty(); }
  size_t size() const { return dispatches_.size(); }
  void Clear() {
    dispatches_.clear();
    parts_.clear();
    bindings_.clear();
    constants_.clear();
  }
  void Add(const BackendDispatch& dispatch) {
    dispatches_.push_back(dispatch);
    parts_.push_back({bindings_.size(), constants_.size()});
    bindings_.insert(bindings_.end(), dispatch.bindings.begin(), dispatch.bindings.end());
    constants_.insert(constants_.end(), dispatch.constants.begin(), dispatch.constants.end());
  }
  // Valid until the next Add or Clear.
  std::span<const BackendDispatch> Dispatches() {
    for (size_t i = 0; i < dispatches_.size(); ++i) {
      BackendDispatch& dispatch = dispatches_[i];
      dispatch.bindings =
          std::span(bindings_).subspan(parts_[i].first_binding, dispatch.bindings.size());
      dispatch.constants =
          std::span(constants_).subspan(parts_[i].first_constant, dispatch.constants.size());
    }
    return dispatches_;
  }

 private:
  struct Part {
    size_t first_binding;
    size_t first_constant;
  };
  std::vector<BackendDispatch> dispatches_;
  std::vector<Part> parts_;
  std::vector<BackendBinding> bindings_;
  std::vector<std::byte> constants_;
};

Error ConflictError(const Group& group, const GroupConflict& conflict) {
  const BackendDispatch& first = group.dispatches[conflict.first];
  const BackendDispatch& second = group.dispatches[conflict.second];
  const Access first_access = first.bindings[conflict.first_binding].access;
  const BackendBinding& binding = second.bindings[conflict.second_binding];
  // What is read is named where both are possible: that is the value that goes wrong.
  const bool reads = Reads(binding.access) && Writes(first_access);
  const std::string_view label = InfoOf(*binding.buffer).label;
  return {ErrorCode::kInvalidArgument, std::string(label),
          fmt::format("Dispatch {} of command buffer {} (kernel \"{}\") {} bytes [{}, {}) of "
                      "buffer \"{}\", which dispatch {} (kernel \"{}\") {}; no barrier stands "
                      "between them.",
                      group.first_dispatch + conflict.second, group.command_buffer,
                      second.kernel->info().name, reads ? "reads" : "writes", conflict.range.begin,
                      conflict.range.end, label, group.first_dispatch + conflict.first,
                      first.kernel->info().name, Writes(first_access) ? "writes" : "reads")};
}

class ScheduledCommandBuffer final : public BackendCommandBuffer {
 public:
  ScheduledCommandBuffer(std::unique_ptr<BackendCommandBuffer> inner, uint64_t number,
                         Arranger* arranger)
      : inner_(std::move(inner)), number_(number), arranger_(arranger) {}

  Status Dispatch(const BackendDispatch& dispatch) override {
    gathered_.Add(dispatch);
    return {};
  }
  Status Barrier() override {
    ASSAY_TRY(EmitGroup());
    return inner_->Barrier();
  }
  Status EndEncoding() override {
    ASSAY_TRY(EmitGroup());
    return inner_->EndEncoding();
  }

  std::unique_ptr<BackendCommandBuffer> TakeInner() { return std::move(inner_); }
  std::optional<Error> TakeConflict() { return std::exchange(conflict_, std::nullopt); }

 private:
  Status EmitGroup() {
    ++group_number_;
    if (gathered_.empty()) return {};
    const Group group{.command_buffer = number_,
                      .number = group_number_,
                      .first_dispatch = next_dispatch_,
                      .dispatches = gathered_.Dispatches()};
    next_dispatch_ += static_cast<uint32_t>(gathered_.size());
    if (!conflict_ && arranger_->reports_conflicts()) {
      if (const auto found = FirstCertainConflict(group.dispatches)) {
        conflict_ = ConflictError(group, *found);
      }
    }
    ASSAY_TRY(Emit(group, arranger_->Choose(group)));
    gathered_.Clear();
    return {};
  }

  Status Emit(const Group& group, const Arrangement& arrangement) {
    for (uint32_t at = 0; at < arrangement.order.size(); ++at) {
      const bool inside = at > arrangement.mixed_begin && at < arrangement.mixed_end;
      if (at > 0 && !inside) ASSAY_TRY(inner_->Barrier());
      BackendDispatch dispatch = group.dispatches[arrangement.order[at]];
      bindings_.assign(dispatch.bindings.begin(), dispatch.bindings.end());
      for (BackendBinding& binding : bindings_) binding.buffer = Inner(binding.buffer);
      dispatch.bindings = bindings_;
      ASSAY_TRY(inner_->Dispatch(dispatch));
      const bool ends_mixed = at + 1 == arrangement.mixed_end && at >= arrangement.mixed_begin;
      if (ends_mixed) ASSAY_TRY(inner_->Interleave(arrangement.mixed_seed));
    }
    return {};
  }

  std::unique_ptr<BackendCommandBuffer> inner_;
  const uint64_t number_;
  Arranger* arranger_;
  uint32_t group_number_ = 0;
  uint32_t next_dispatch_ = 1;
  std::optional<Error> conflict_;  // The first of the command buffer.
  GatheredGroup gathered_;
  std::vector<BackendBinding> bindings_;  // Of the dispatch handed on, as the inner backend's.
};

class ScheduledQueue final : public BackendQueue {
 public:
  ScheduledQueue(std::unique_ptr<BackendQueue> inner, Arranger* arranger)
      : inner_(std::move(inner)), arranger_(arranger) {}

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendCommandBuffer> inner, inner_->Begin());
    return std::make_unique<ScheduledCommandBuffer>(std::move(inner), committed_ + 1, arranger_);
  }
  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override {
    auto* scheduled = static_cast<ScheduledCommandBuffer*>(command_buffer.get());
    ASSAY_ASSIGN_OR_RETURN(const Serial serial, inner_->Commit(scheduled->TakeInner()));
    ++committed_;
    if (auto conflict = scheduled->TakeConflict()) conflicts_.push_back({serial, *conflict});
    return serial;
  }
  Status Wait(Serial serial) override {
    ASSAY_TRY(inner_->Wait(serial));
    std::optional<Error> first;
    while (!conflicts_.empty() && conflicts_.front().serial <= serial) {
      if (!first) first = std::move(conflicts_.front().error);
      conflicts_.pop_front();
    }
    if (first) return Fail(*std::move(first));
    return {};
  }

 private:
  struct Conflict {
    Serial serial;
    Error error;
  };
  std::unique_ptr<BackendQueue> inner_;
  Arranger* arranger_;
  uint64_t committed_ = 0;
  std::deque<Conflict> conflicts_;  // Of command buffers that nobody has waited for.
};

class ScheduledBackend final : public Backend {
 public:
  ScheduledBackend(std::unique_ptr<Backend> inner, std::shared_ptr<Arranger> arranger,
                   bool interleaves)
      : arranger_(std::move(arranger)), interleaves_(interleaves), inner_(std::move(inner)) {}

  DeviceInfo info() const override { return inner_->info(); }
  DeviceMemory memory() const override { return inner_->memory(); }
  Status EnableChecks() override {
    ASSAY_TRY(inner_->EnableChecks());
    if (interleaves_ && !inner_->info().interleaves)
      return Fail(NotInterleavedError(inner_->info()));
    return {};
  }

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const BufferDesc& desc) override {
    return Wrap(inner_->CreateBuffer(desc), desc);
  }
  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(
      const BufferDesc& desc, std::span<const std::byte> memory) override {
    return Wrap(inner_->ImportHostMemory(desc, memory), desc);
  }
  Result<std::unique_ptr<BackendKernel>> CreateKernel(const KernelDesc& desc) override {
    return inner_->CreateKernel(desc);
  }
  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendQueue> inner, inner_->CreateQueue());
    return std::make_unique<ScheduledQueue>(std::move(inner), arranger_.get());
  }

  Status Write(BackendBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) override {
    return inner_->Write(Inner(buffer), offset, bytes);
  }
  Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    return inner_->Read(Inner(buffer), offset, bytes);
  }
  Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range, Access access) override {
    return inner_->Map(Inner(buffer), range, access);
  }
  void Unmap(BackendBuffer* buffer, ByteRange range, Access access) override {
    inner_->Unmap(Inner(buffer), range, access);
  }
  LoadObserver* load_observer() override { return inner_->load_observer(); }

 private:
  static Result<std::unique_ptr<BackendBuffer>> Wrap(Result<std::unique_ptr<BackendBuffer>> inner,
                                                     const BufferDesc& desc) {
    if (!inner) return inner;
    return std::make_unique<ScheduledBuffer>(*std::move(inner), desc);
  }

  std::shared_ptr<Arranger> arranger_;
  const bool interleaves_;
  std::unique_ptr<Backend> inner_;
};

}  // namespace

std::unique_ptr<Backend> MakeScheduledBackend(std::unique_ptr<Backend> inner,
                                              std::shared_ptr<Arranger> arranger) {
  return std::make_unique<ScheduledBackend>(std::move(inner), std::move(arranger), false);
}

Result<std::unique_ptr<Backend>> MakeScheduledBackend(std::unique_ptr<Backend> inner,
                                                      const Schedule& schedule) {
  if (schedule.kind == ScheduleKind::kRecorded) return inner;
  const bool interleaves = schedule.kind == ScheduleKind::kInterleaved;
  if (interleaves && !inner->info().interleaves) {
    return Fail(NotInterleavedError(inner->info()));
  }
  return std::make_unique<ScheduledBackend>(std::move(inner), MakeScheduleArranger(schedule),
                                            interleaves);
}

Error NotInterleavedError(const DeviceInfo& info) {
  return {ErrorCode::kUnsupported, info.backend,
          fmt::format("The device \"{}\" cannot run workgroups interleaved (a cpu device can where "
                      "it is not checked); choose another schedule or such a device.",
                      info.name)};
}

ScheduledBufferInfo InfoOf(const BackendBuffer& scheduled_buffer) {
  const auto& buffer = static_cast<const ScheduledBuffer&>(scheduled_buffer);
  return {.label = buffer.label(), .size_bytes = buffer.size_bytes()};
}

}  // namespace assay::gpu
