#include "gpu/device_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gpu/nearest_name.h"
#include "gpu/session_state.h"

namespace assay::gpu {

bool CommandRecord::Conflicts(const Allocation* allocation, ByteRange range, Access access) const {
  return std::ranges::any_of(touches, [&](const Touch& touch) {
    return touch.allocation == allocation && assay::Conflicts(touch.access, access) &&
           touch.range.Overlaps(range);
  });
}

DeviceState::DeviceState(std::unique_ptr<Backend> backend)
    : info_(backend->info()), backend_(std::move(backend)), registry_(this) {}

DeviceState::~DeviceState() = default;

Error DeviceState::ClosedError(std::string subject, std::string_view what) {
  return Error(ErrorCode::kDevice, std::move(subject),
               fmt::format("The device of the {} has been destroyed.", what));
}

void DeviceState::Close() {
  // Sessions first: the work they have in flight uses the buffers.
  for (;;) {
    SessionState* session = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (sessions_.empty()) break;
      session = sessions_.back();
    }
    session->Close();
  }
  closed_.store(true, std::memory_order_release);
  std::vector<Allocation*> left;
  {
    const std::lock_guard lock(mutex_);
    left = allocations_;
  }
  for (Allocation* allocation : left) {
    if (allocation != nullptr) allocation->FreeMemory();
  }
  {
    const std::lock_guard lock(kernel_mutex_);
    kernels_by_id_.clear();
    kernels_.clear();
  }
  backend_.reset();
}

// --- Sessions

Result<std::unique_ptr<SessionState>> DeviceState::CreateSession(const SessionOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendQueue> queue, backend_->CreateQueue());
  auto session = std::make_unique<SessionState>(shared_from_this(), std::move(queue), options);
  const std::lock_guard lock(mutex_);
  sessions_.push_back(session.get());
  return session;
}

namespace {

void AddCounters(const Counters& from, Counters* sum) {
  const auto add = [&](uint64_t Counters::*field) {
    // The session's own thread may be counting on.
    sum->*field += std::atomic_ref<uint64_t>(const_cast<Counters&>(from).*field)
                       .load(std::memory_order_relaxed);
  };
  add(&Counters::command_buffers);
  add(&Counters::encoders_created);
  add(&Counters::encoders_released);
  add(&Counters::dispatches);
  add(&Counters::barriers);
  add(&Counters::commits);
  add(&Counters::waits);
}

}  // namespace

void DeviceState::Forget(SessionState* session) {
  const std::lock_guard lock(mutex_);
  std::erase(sessions_, session);
  AddCounters(session->counters(), &retired_);
}

Counters DeviceState::counters() const {
  const std::lock_guard lock(mutex_);
  Counters sum = retired_;
  for (const SessionState* session : sessions_) AddCounters(session->counters(), &sum);
  return sum;
}

Status DeviceState::BeginFlight(const CommandRecord* record) {
  const std::lock_guard lock(mutex_);
  for (const HostAccess& host : host_accesses_) {
    if (!record->Conflicts(host.allocation, host.range, host.access)) continue;
    return Fail(ErrorCode::kCommandBuffer, host.allocation->desc().label,
                fmt::format("The command buffer cannot be committed: the host has bytes [{}, {}) "
                            "of the {} in use, and it binds them in conflict.",
                            host.range.begin, host.range.end, Describe(host.allocation->desc())));
  }
  in_flight_.push_back(record);
  return {};
}

void DeviceState::EndFlight(const CommandRecord* record) {
  const std::lock_guard lock(mutex_);
  std::erase(in_flight_, record);
}

// --- Kernels

Status DeviceState::AddKernel(const KernelDesc& desc) {
  if (desc.name.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "", "A kernel's name is empty.");
  }
  if (desc.workgroup.Count() == 0) {
    return Fail(ErrorCode::kInvalidArgument, std::string(desc.name),
                fmt::format("The workgroup ({}, {}, {}) of kernel \"{}\" has no invocations.",
                            desc.workgroup.x, desc.workgroup.y, desc.workgroup.z, desc.name));
  }
  if (desc.constant_bytes > info_.max_constant_bytes) {
    return Fail(ErrorCode::kInvalidArgument, std::string(desc.name),
                fmt::format("The constants ({} bytes) of kernel \"{}\" are larger than the "
                            "device's limit ({} bytes).",
                            desc.constant_bytes, desc.name, info_.max_constant_bytes));
  }
  if (desc.code.empty() || desc.source_digest.empty()) {
    return Fail(ErrorCode::kInvalidArgument, std::string(desc.name),
                fmt::format("Kernel \"{}\" has no {}.", desc.name,
                            desc.code.empty() ? "code" : "source digest"));
  }
  const std::lock_guard lock(kernel_mutex_);
  if (!kernels_.try_emplace(desc.name, KernelEntry{desc, KernelId(), nullptr}).second) {
    return Fail(ErrorCode::kInvalidArgument, std::string(desc.name),
                fmt::format("A kernel of the name \"{}\" is registered already.", desc.name));
  }
  return {};
}

Result<KernelId> DeviceState::GetKernel(std::string_view name) {
  const std::lock_guard lock(kernel_mutex_);
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, entry] : kernels_) names.push_back(known);
    const std::string_view nearest = NearestName(name, names);
    return Fail(ErrorCode::kKernelUnknown, std::string(name),
                nearest.empty()
                    ? fmt::format("No kernel \"{}\" is registered; none is at all.", name)
                    : fmt::format("No kernel \"{}\" is registered; the nearest of {} names is "
                                  "\"{}\".",
                                  name, names.size(), nearest));
  }
  KernelEntry& entry = found->second;
  if (entry.backend == nullptr) {
    ASSAY_ASSIGN_OR_RETURN(entry.backend, backend_->CreateKernel(entry.desc));
    kernels_by_id_.push_back(&entry);
    entry.id = KernelId(static_cast<uint32_t>(kernels_by_id_.size()));
  }
  return entry.id;
}

std::vector<std::string> DeviceState::KernelNames() const {
  const std::lock_guard lock(kernel_mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : kernels_) names.emplace_back(name);
  return names;
}

const KernelEntry* DeviceState::FindKernel(KernelId id) const {
  const std::lock_guard lock(kernel_mutex_);
  if (id.value() == 0 || id.value() > kernels_by_id_.size()) return nullptr;
  return kernels_by_id_[id.value() - 1];
}

Status KernelRegistry::Add(const KernelDesc& desc) { return device_->AddKernel(desc); }
Result<KernelId> KernelRegistry::Get(std::string_view name) { return device_->GetKernel(name); }
std::vector<std::string> KernelRegistry::Names() const { return device_->KernelNames(); }

}  // namespace assay::gpu
