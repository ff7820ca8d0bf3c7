#include "gpu/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/hash.h"
#include "base/host_memory.h"
#include "gpu/cpu/access_check.h"
#include "gpu/cpu/command_list.h"
#include "gpu/cpu/cpu_kernel.h"
#include "gpu/cpu/memory.h"
#include "gpu/cpu/worker_pool.h"

namespace assay::gpu {
namespace {

constexpr int kMaxThreads = 1024;
constexpr uint32_t kSharedBytes = 256 << 10;
// Enough chunks a thread that the last ones to finish are short, few enough that claiming them
// costs nothing beside running them.
constexpr uint32_t kChunksPerThread = 32;

class CpuBuffer final : public BackendBuffer {
 public:
  // Over a block of `pool`'s, or, where that is null, over memory of the caller's.
  CpuBuffer(MemoryPool* pool, std::byte* bytes, const BufferDesc& desc)
      : pool_(pool), bytes_(bytes), size_bytes_(desc.size_bytes), label_(desc.label) {}
  ~CpuBuffer() override {
    if (pool_ != nullptr) pool_->Free(bytes_, size_bytes_, label_);
  }
  std::byte* bytes() const { return bytes_; }
  const std::string& label() const { return label_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  MemoryPool* pool_;
  std::byte* bytes_;
  uint64_t size_bytes_;
  std::string label_;
};

class CpuBuiltKernel final : public BackendKernel {
 public:
  CpuBuiltKernel(BackendKernelInfo info, CpuWorkgroupFn code)
      : info_(std::move(info)), run_(code) {}
  const BackendKernelInfo& info() const override { return info_; }
  CpuWorkgroupFn run() const { return run_; }

 private:
  BackendKernelInfo info_;
  CpuWorkgroupFn run_;
};

// Command lists of one queue that wait to be filled again. Used by the queue's thread.
class SpareLists {
 public:
  std::unique_ptr<CommandList> Take() {
    if (lists_.empty()) return std::make_unique<CommandList>();
    std::unique_ptr<CommandList> list = std::move(lists_.back());
    lists_.pop_back();
    list->Clear();
    return list;
  }
  void Put(std::unique_ptr<CommandList> list) { lists_.push_back(std::move(list)); }

 private:
  std::vector<std::unique_ptr<CommandList>> lists_;
};

class CpuCommandBuffer final : public BackendCommandBuffer {
 public:
  CpuCommandBuffer(std::unique_ptr<CommandList> list, uint32_t max_chunks, SpareLists* spare)
      : list_(std::move(list)), max_chunks_(max_chunks), spare_(spare) {}
  ~CpuCommandBuffer() override {
    if (list_ != nullptr) spare_->Put(std::move(list_));
  }

  Status Dispatch(const BackendDispatch& dispatch) override {
    const auto* kernel = static_cast<const CpuBuiltKernel*>(dispatch.kernel);
    CpuDispatch translated;
    translated.run = kernel->run();
    translated.kernel_name = kernel->info().name;
    translated.grid = dispatch.grid;
    translated.shared_bytes = dispatch.shared_bytes;
    bindings_.clear();
    for (const BackendBinding& binding : dispatch.bindings) {
      const auto* buffer = static_cast<const CpuBuffer*>(binding.buffer);
      bindings_.push_back(
          {buffer->bytes(), binding.range, binding.access, &buffer->label(), buffer->size_bytes()});
    }
    if (!list_->AddDispatch(translated, bindings_, dispatch.constants, max_chunks_)) {
      return Fail(ErrorCode::kCommandBuffer, std::string(translated.kernel_name),
                  "The dispatches since the last barrier are too many to be scheduled together; "
                  "place a barrier among them.");
    }
    return {};
  }
  Status Barrier() override {
    list_->AddBarrier();
    return {};
  }
  Status Interleave(uint64_t seed) override {
    if (list_->AddInterleavedBarrier(seed)) return {};
    return Fail(
        ErrorCode::kCommandBuffer, "",
        "The dispatches since the last barrier have too many workgroups to be interleaved; choose "
        "another schedule, or have fewer dispatches between two barriers.");
  }
  Status EndEncoding() override {
    list_->End();
    return {};
  }

  std::unique_ptr<CommandList> Take() { return std::move(list_); }

 private:
  std::unique_ptr<CommandList> list_;
  uint32_t max_chunks_;
  SpareLists* spare_;
  std::vector<CpuBinding> bindings_;
};

class CpuQueue final : public BackendQueue {
 public:
  CpuQueue(std::unique_ptr<WorkerPool::Lane> lane, uint32_t max_chunks)
      : max_chunks_(max_chunks), lane_(std::move(lane)) {}

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    return std::make_unique<CpuCommandBuffer>(spare_.Take(), max_chunks_, &spare_);
  }

  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override {
    running_.push_back(static_cast<CpuCommandBuffer*>(command_buffer.get())->Take());
    return lane_->Submit(running_.back().get());
  }

  Status Wait(Serial serial) override {
    lane_->Wait(serial);
    const bool left_out = lane_->TakeLeftOut();
    for (; finished_ < serial; ++finished_) {
      spare_.Put(std::move(running_.front()));
      running_.pop_front();
    }
    if (left_out) return Fail(StoppedError());
    return {};
  }

 private:
  const uint32_t max_chunks_;
  Serial finished_ = 0;
  std::deque<std::unique_ptr<CommandList>> running_;  // From serial finished_ + 1.
  SpareLists spare_;
  std::unique_ptr<WorkerPool::Lane> lane_;  // Last, so that it ends before the lists it runs.
};

// The queue of a checked device: what is committed runs inside Wait, on that thread, under the
// access check.
class CheckedCpuQueue final : public BackendQueue {
 public:
  explicit CheckedCpuQueue(std::function<bool()> cancelled) : checker_(std::move(cancelled)) {}

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override {
    return std::make_unique<CpuCommandBuffer>(spare_.Take(), 1, &spare_);
  }

  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override {
    committed_.push_back(static_cast<CpuCommandBuffer*>(command_buffer.get())->Take());
    return finished_ + committed_.size();
  }

  Status Wait(Serial serial) override {
    Status status;
    for (; finished_ < serial; ++finished_) {
      Status checked = checker_.Run(*committed_.front(), finished_ + 1);
      if (!checked && status) status = std::move(checked);
      spare_.Put(std::move(committed_.front()));
      committed_.pop_front();
    }
    return status;
  }

 private:
  AccessChecker checker_;
  Serial finished_ = 0;
  std::deque<std::unique_ptr<CommandList>> committed_;  // From serial finished_ + 1.
  SpareLists spare_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::unique_ptr<WorkerPool> workers, std::function<bool()> cancelled)
      : cancelled_(std::move(cancelled)), workers_(std::move(workers)) {}

  DeviceInfo info() const override {
    DeviceInfo info;
    info.backend = "cpu";
    info.threads = static_cast<uint32_t>(workers_->threads());
    info.name = fmt::format("cpu ({})", Counted(info.threads, "thread"));
    info.code_format = kCpuCodeFormat;
    info.max_buffer_bytes = uint64_t{1} << 46;
    info.max_binding_bytes = info.max_buffer_bytes;
    info.max_constant_bytes = 4096;
    info.max_shared_bytes = kSharedBytes;
    info.host_visible = true;
    // The access check runs one dispatch after another.
    info.interleaves = !checked_;
    return info;
  }

  DeviceMemory memory() const override {
    const HostMemory host = ReadHostMemory();
    return {.total_bytes = host.total_bytes, .free_bytes = host.free_bytes, .overcommits = true};
  }

  Status EnableChecks() override {
    checked_ = true;
    memory_.EnablePoison();
    return {};
  }

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const BufferDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(std::byte* const bytes, memory_.Allocate(desc.size_bytes, desc.label));
    return std::make_unique<CpuBuffer>(&memory_, bytes, desc);
  }

  Result<std::unique_ptr<BackendBuffer>> ImportHostMemory(
      const BufferDesc& desc, std::span<const std::byte> memory) override {
    // The front end refuses every write to it.
    return std::make_unique<CpuBuffer>(nullptr, const_cast<std::byte*>(memory.data()), desc);
  }

  Result<std::unique_ptr<BackendKernel>> CreateKernel(const KernelDesc& desc) override {
    const auto code = std::ranges::find(desc.code, kCpuCodeFormat, &KernelCode::format);
    if (code == desc.code.end()) {
      return Fail(ErrorCode::kUnsupported, std::string(desc.name),
                  fmt::format("Kernel \"{}\" has no code in the format \"{}\" among its {}.",
                              desc.name, kCpuCodeFormat, desc.code.size()));
    }
    if (code->data == nullptr || code->size_bytes != sizeof(CpuKernel)) {
      return Fail(ErrorCode::kKernelCompile, std::string(desc.name),
                  fmt::format("The cpu code ({} bytes) of kernel \"{}\" is not a kernel "
                              "description ({} bytes).",
                              code->size_bytes, desc.name, sizeof(CpuKernel)));
    }
    const auto* kernel = static_cast<const CpuKernel*>(code->data);
    const std::string target(kernel->target());
    const CpuWorkgroupFn run = kernel->resolve();
    if (run == nullptr) {
      return Fail(
          ErrorCode::kKernelCompile, std::string(desc.name),
          fmt::format("Kernel \"{}\" has no code for this processor ({}).", desc.name, target));
    }
    BackendKernelInfo info{std::string(desc.name),
                           HexDigest(std::string(desc.source_digest) + target)};
    return std::make_unique<CpuBuiltKernel>(std::move(info), run);
  }

  Result<std::unique_ptr<BackendQueue>> CreateQueue() override {
    if (checked_) return std::make_unique<CheckedCpuQueue>(cancelled_);
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool::Lane> lane, workers_->CreateLane());
    const auto threads = static_cast<uint32_t>(workers_->threads());
    return std::make_unique<CpuQueue>(std::move(lane),
                                      threads == 1 ? 1 : threads * kChunksPerThread);
  }

  Status Write(BackendBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(static_cast<CpuBuffer*>(buffer)->bytes() + offset, bytes.data(), bytes.size());
    return {};
  }
  Status Read(BackendBuffer* buffer, uint64_t offset, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), static_cast<CpuBuffer*>(buffer)->bytes() + offset, bytes.size());
    return {};
  }
  Result<std::span<std::byte>> Map(BackendBuffer* buffer, ByteRange range, Access) override {
    return std::span(static_cast<CpuBuffer*>(buffer)->bytes() + range.begin, range.size());
  }
  void Unmap(BackendBuffer*, ByteRange, Access) override {}

 private:
  bool checked_ = false;
  std::function<bool()> cancelled_;
  MemoryPool memory_;
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace

Result<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Fail(ErrorCode::kInvalidArgument, "cpu",
                fmt::format("The number of threads ({}) of the cpu backend is not between 0 and "
                            "{}.",
                            options.threads, kMaxThreads));
  }
  const int cores =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> workers,
                         WorkerPool::Create(options.threads == 0 ? cores : options.threads,
                                            options.spin_us, kSharedBytes, options.cancelled));
  return std::make_unique<CpuBackend>(std::move(workers), options.cancelled);
}

}  // namespace assay::gpu
