#include "gpu/vulkan/checked_queue.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gpu/vulkan/command_buffer.h"
#include "gpu/vulkan/kernel.h"

namespace assay::gpu::vulkan {

// Keeps what is encoded; nothing of it reaches the device before Wait.
class CheckedQueue::CommandBuffer final : public BackendCommandBuffer {
 public:
  explicit CommandBuffer(const LogicalDevice* device) : device_(device) {}

  Status Dispatch(const BackendDispatch& dispatch) override {
    ASSAY_TRY(CheckGrid(*device_, dispatch));
    commands_.push_back({dispatch.kernel,
                         {dispatch.bindings.begin(), dispatch.bindings.end()},
                         {dispatch.constants.begin(), dispatch.constants.end()},
                         dispatch.grid});
    return {};
  }
  Status Barrier() override { return {}; }
  Status EndEncoding() override { return {}; }
  Commands Take() { return std::move(commands_); }

 private:
  const LogicalDevice* device_;
  Commands commands_;
};

CheckedQueue::CheckedQueue(const LogicalDevice* device, SubmitQueue* queue, BufferMaker* buffers,
                           std::function<bool()> cancelled)
    : device_(device), buffers_(buffers), cancelled_(std::move(cancelled)), queue_(device, queue) {}

CheckedQueue::~CheckedQueue() = default;

Result<std::unique_ptr<BackendCommandBuffer>> CheckedQueue::Begin() {
  return std::make_unique<CommandBuffer>(device_);
}

Result<Serial> CheckedQueue::Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) {
  committed_.push_back(static_cast<CommandBuffer*>(command_buffer.get())->Take());
  return finished_ + committed_.size();
}

Status CheckedQueue::Wait(Serial serial) {
  Status status;
  for (; finished_ < serial; ++finished_) {
    Status checked = RunCommands(committed_.front(), finished_ + 1);
    if (!checked && status) status = std::move(checked);
    committed_.pop_front();
  }
  return status;
}

Status CheckedQueue::RunCommands(const Commands& commands, uint64_t number) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (cancelled_ && cancelled_()) return Fail(StoppedError());
    const std::string& kernel = commands[i].kernel->info().name;
    Status checked = RunDispatch(commands[i]);
    if (checked) continue;
    if (checked.error().code() != ErrorCode::kInvalidArgument) return checked;
    return Fail(ErrorCode::kInvalidArgument, kernel,
                fmt::format("Dispatch {} of command buffer {}, kernel \"{}\", {}.", i + 1, number,
                            kernel, checked.error().message()));
  }
  return {};
}

Status CheckedQueue::RunDispatch(const CheckedDispatch& dispatch) {
  const auto wrong = [](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, "", std::move(what));
  };
  bound_.clear();
  for (const BackendBinding& binding : dispatch.bindings) {
    const auto* buffer = static_cast<const VulkanBuffer*>(binding.buffer);
    bound_.push_back(
        {buffer->mapped(), binding.range, binding.access, &buffer->label(), buffer->size_bytes()});
  }
  ASSAY_TRY(images_.Make(bound_));
  ASSAY_TRY(FitScratch());
  const FillerRange all{0, images_.filler_bytes()};
  ASSAY_TRY(RunOn(kFirstCopy, {}, dispatch));
  ASSAY_TRY(RunOn(kSecondCopy, all, dispatch));
  if (auto written = images_.UndeclaredWrite()) return wrong(*std::move(written));
  if (!images_.ResultsDiffer(kSecondCopy, all)) {
    images_.Adopt();
    return {};
  }
  Status ran;
  const auto matters = [&](FillerRange filler) {
    if (!ran) return false;
    ran = RunOn(kProbeCopy, filler, dispatch);
    return images_.ResultsDiffer(kProbeCopy, filler);
  };
  const bool unsteady = matters({});
  const bool by_filler = !unsteady && matters(all);
  std::string what =
      by_filler ? images_.UndeclaredRead(matters) : "does not give the same result twice";
  ASSAY_TRY(std::move(ran));
  return wrong(std::move(what));
}

Status CheckedQueue::FitScratch() {
  for (size_t i = 0; i < images_.count(); ++i) {
    const uint64_t wanted = images_.image(i).Bytes(kFirstCopy).size();
    if (i == scratch_.size()) scratch_.emplace_back();
    if (scratch_[i] != nullptr && scratch_[i]->size_bytes() >= wanted) continue;
    scratch_[i].reset();
    ASSAY_ASSIGN_OR_RETURN(
        scratch_[i],
        buffers_->Make({.size_bytes = wanted, .label = "copies for the check", .digest = {}}));
  }
  return {};
}

Status CheckedQueue::RunOn(int copy, FillerRange filler, const CheckedDispatch& dispatch) {
  images_.Fill(copy, filler);
  for (size_t i = 0; i < images_.count(); ++i) {
    ASSAY_TRY(buffers_->Write(scratch_[i].get(), 0, images_.image(i).Bytes(copy)));
  }
  std::vector<BackendBinding> bindings = dispatch.bindings;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const size_t image = images_.image_of_binding(i);
    bindings[i].buffer = scratch_[image].get();
    const uint64_t begin = images_.image(image).OffsetOf(bindings[i].range.begin);
    bindings[i].range = {begin, begin + bindings[i].range.size()};
  }
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<BackendCommandBuffer> commands, queue_.Begin());
  static_cast<VulkanCommandBuffer*>(commands.get())->set_margin_bytes(kMarginBytes);
  ASSAY_TRY(commands->Dispatch({dispatch.kernel, bindings, dispatch.constants, dispatch.grid, 0}));
  ASSAY_TRY(commands->EndEncoding());
  ASSAY_ASSIGN_OR_RETURN(const Serial serial, queue_.Commit(std::move(commands)));
  ASSAY_TRY(queue_.Wait(serial));
  for (size_t i = 0; i < images_.count(); ++i) {
    ASSAY_TRY(buffers_->Read(scratch_[i].get(), 0, images_.image(i).Bytes(copy)));
  }
  return {};
}

}  // namespace assay::gpu::vulkan
