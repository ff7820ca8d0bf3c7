// Gpu: devices, buffers, kernels and the session that owns the concurrent encoder.
//
// Between two barriers the dispatches of a command buffer may run in any order or at the same time;
// only a barrier, or the end of the command buffer, orders them (E1). The front end here validates;
// backends (src/gpu/backend.h) only translate.
//
//   auto device = gpu::Device::Create(std::move(backend)).value();
//   Buffer a = device->CreateBuffer({.size_bytes = n, .label = "a"}).value();
//   auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
//   session->Dispatch(add); session->Barrier(); session->Dispatch(mul); session->Commit();
//   session->Wait();
#ifndef ASSAY_GPU_H_
#define ASSAY_GPU_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "assay/base.h"
#include "assay/gpu_schedule.h"

namespace assay::gpu {
class Backend;  // src/gpu/backend.h
}

// So that a program can own and hand on a backend without knowing what one is made of.
template <>
struct std::default_delete<assay::gpu::Backend> {
  constexpr default_delete() noexcept = default;
  template <typename Derived>  // NOLINTNEXTLINE(google-explicit-constructor): as the standard's.
  requires std::is_convertible_v<Derived*, assay::gpu::Backend*> default_delete(
      const std::default_delete<Derived>&)
  noexcept {}
  void operator()(assay::gpu::Backend* backend) const;
};

namespace assay::gpu {

class BufferState;
class DeviceState;
class SessionState;

// --- Buffers

struct BufferDesc {
  uint64_t size_bytes = 0;  // At least 1.
  BufferKind kind = BufferKind::kOther;
  std::string label;   // Shown in errors and in the trace; may repeat.
  std::string digest;  // Of the contents it will get, for the trace; may be empty.
};

class BufferView;

// A shared handle to one allocation, zero-filled when made (E11). The memory goes back when the
// last handle goes and no command buffer that binds it is in flight; dropping the last handle while
// one is in flight is reported by the next Wait. Handles are cheap to copy and thread-compatible;
// the default handle is empty.
//
// A command buffer is in flight from the first dispatch encoded into it until Wait has returned, or
// Reset or destruction has abandoned it: not until the device happens to have finished it, so that
// a program is told of its fault on every run.
class Buffer {
 public:
  Buffer() = default;
  explicit operator bool() const { return state_ != nullptr; }
  uint64_t size_bytes() const;
  BufferKind kind() const;
  const std::string& label() const;
  bool operator==(const Buffer&) const = default;

  // The bytes [offset, offset + length). Error kInvalidArgument when they pass the end.
  Result<BufferView> View(uint64_t offset, uint64_t length) const;
  // All of it.
  BufferView All() const;

  // Gives the memory back now, for all handles. Errors: kInvalidArgument when released before;
  // kCommandBuffer when a command buffer that binds it has not finished. Every later use of any
  // handle is an error.
  Status Release();

 private:
  friend class BufferView;
  friend class Device;
  friend class GraphPlan;
  friend class Session;
  friend class DeviceState;
  friend class SessionState;
  explicit Buffer(std::shared_ptr<BufferState> state) : state_(std::move(state)) {}
  std::shared_ptr<BufferState> state_;
};

// Bytes of a buffer. A view of a view adds up the offsets (E4). Holds the buffer alive.
class BufferView {
 public:
  BufferView() = default;
  explicit operator bool() const { return static_cast<bool>(buffer_); }
  const Buffer& buffer() const { return buffer_; }
  ByteRange range() const { return range_; }  // Absolute, within the allocation.
  uint64_t size_bytes() const { return range_.size(); }

  // [offset, offset + length) of this view. Error kInvalidArgument when they pass its end.
  Result<BufferView> Slice(uint64_t offset, uint64_t length) const;

 private:
  friend class Buffer;
  BufferView(Buffer buffer, ByteRange range) : buffer_(std::move(buffer)), range_(range) {}
  Buffer buffer_;
  ByteRange range_;
};

// --- Kernels

struct KernelTag;
using KernelId = StrongId<KernelTag>;

// One form of a kernel's code. `format` is a word that a backend knows ("cpu", "spirv"); what
// `data` points to is between the kernel's file and that backend, and must outlive the device.
struct KernelCode {
  std::string_view format;
  const void* data = nullptr;
  size_t size_bytes = 0;
};

// A kernel as its author describes it. Strings and spans must outlive the registry (they are
// constant tables).
struct KernelDesc {
  std::string_view name;  // Unique; the trace shows it.
  Extent3 workgroup;      // Invocations of one workgroup.
  uint32_t binding_count = 0;
  uint32_t constant_bytes = 0;     // Exact size of a dispatch's constants.
  std::string_view source_digest;  // Of what the code was built from, lower-case hex.
  std::span<const KernelCode> code;
};

// The kernels a device knows, by name. Locked inside; filled before use, with no static
// registration.
class KernelRegistry {
 public:
  // Errors: kInvalidArgument for a second kernel of one name or an empty description.
  Status Add(const KernelDesc& desc);
  // Builds it at first use. Errors: kKernelUnknown, with the nearest registered name; kUnsupported
  // when the backend knows none of its code formats; kKernelCompile.
  Result<KernelId> Get(std::string_view name);
  // Sorted names.
  std::vector<std::string> Names() const;

  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

 private:
  friend class DeviceState;
  explicit KernelRegistry(DeviceState* device) : device_(device) {}
  DeviceState* device_;
};

// --- Encoding

// One binding of a dispatch. `exact` is false where the kernel may touch fewer bytes than the view
// (a row picked by data, say); ordering treats both alike, the trace tells them apart.
struct Binding {
  BufferView view;
  Access access = Access::kRead;
  bool exact = true;
};

// Borrowed for the call. Without bindings a dispatch touches everything (E5).
struct Dispatch {
  KernelId kernel;
  std::span<const Binding> bindings;
  std::span<const std::byte> constants;
  Extent3 grid;               // Workgroups; none of the three may be 0.
  uint32_t shared_bytes = 0;  // Dynamic shared memory.
};

enum class BarrierMode : uint8_t {
  kManual,     // The caller places every barrier.
  kAutomatic,  // A barrier is inserted exactly when the next dispatch conflicts with one since the
               // last barrier.
  kSerial,     // A barrier after every dispatch: tells an ordering fault from any other.
};

// What was issued, and nothing else (E3). A replayed dispatch counts at each replay, a captured one
// does not count.
struct Counters {
  uint64_t command_buffers = 0;
  uint64_t encoders_created = 0;
  uint64_t encoders_released = 0;
  uint64_t dispatches = 0;
  uint64_t barriers = 0;
  uint64_t commits = 0;
  uint64_t waits = 0;
  bool operator==(const Counters&) const = default;
};

struct SessionOptions {
  BarrierMode barriers = BarrierMode::kAutomatic;
  // Barrier mutation (E9): this barrier of each command buffer, from 1, is neither issued nor
  // counted, whoever placed it; 0: none.
  uint64_t drop_barrier = 0;
  // Lets the device start while the host encodes on: a barrier that the caller, a graph or a plan
  // places is replaced by a commit once the open command buffer holds this many dispatches (a
  // quarter and a half as many in the first two command buffers behind a Wait). 0: never. The end
  // of a command buffer orders as a barrier does, and the barrier is then neither issued nor
  // counted. Barriers that the session places by its mode stay.
  uint32_t commit_every = 0;
};

class Graph;      // gpu_graph.h
class GraphPlan;  // gpu_graph.h

// One stream of command buffers and the one owned encoder of each (E1, E2). The encoder opens at
// the first dispatch of a command buffer and has a single release path, taken by Commit, Reset, a
// failed call and destruction alike; nobody else can hold it. One thread at a time; many sessions
// of one device may encode at once. Each session is a queue of its own: nothing orders the command
// buffers of two sessions but a Wait between them.
//
// When the backend fails in the middle of a command buffer, the command buffer is abandoned and
// every call but Wait repeats the failure until Reset, so that no half of it runs unnoticed.
class Session final {
 public:
  // Abandons the open command buffer and waits for what is in flight.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Errors: kInvalidArgument (binding count, constant size, grid, range, foreign or released
  // buffer), naming kernel and binding. A refused dispatch leaves the command buffer as it was.
  Status Dispatch(const gpu::Dispatch& dispatch);
  // Orders everything before it ahead of everything after it. With no open encoder it is neither
  // issued nor counted. Where it commits in its place (SessionOptions::commit_every) it has the
  // errors of Commit, and one of the backend repeats until Reset.
  Status Barrier();
  // Hands the command buffer to the device. Without an open encoder it does nothing. Error
  // kCommandBuffer while the host maps bytes that it binds in conflict; it then stays open.
  Status Commit();
  // Returns when all that was committed has finished; with nothing in flight it is neither issued
  // nor counted. Reports device faults, buffers dropped in flight (kCommandBuffer) and, on a
  // checked device, accesses that a dispatch did not declare (kInvalidArgument).
  Status Wait();
  // Abandons the open command buffer, or the capture; nothing of it runs. What is committed does.
  void Reset();

  // From here to EndCapture dispatches and barriers go into a graph instead of the encoder, and
  // Commit and Wait are refused. Error kCommandBuffer when already capturing.
  Status BeginCapture();
  // Captures dispatches of the same kernels again, each in the place of the one before: those that
  // KeepCaptured stands for stay as they are. Barriers are left out.
  Status BeginRecapture(Graph&& graph);
  Status KeepCaptured();
  Result<Graph> EndCapture();
  // Encodes the graph's dispatches, with this session's barrier mode (manual barriers of the graph
  // are kept).
  Status Replay(const Graph& graph);
  // The same in the order, with the fusions and, in manual mode, with the barriers of `plan`. Error
  // kInvalidArgument, with nothing encoded, when the plan was not made for such a graph.
  Status Replay(const Graph& graph, const GraphPlan& plan);

  const Counters& counters() const;
  BarrierMode barrier_mode() const;

 private:
  friend class Device;
  explicit Session(std::unique_ptr<SessionState> state);
  std::unique_ptr<SessionState> state_;
};

// --- Device

// What a backend says about itself; the same for every run on one machine.
struct DeviceInfo {
  std::string backend;  // "cpu", "vulkan", "null".
  std::string name;     // For people; never in a trace.
  // The KernelCode::format that it runs: "cpu", "spirv". Kernels choose grids and data types by it.
  std::string_view code_format = "cpu";
  uint64_t max_buffer_bytes = 0;
  uint64_t max_binding_bytes = 0;
  uint32_t max_constant_bytes = 0;
  uint32_t max_shared_bytes = 0;  // Dynamic shared memory of one dispatch.
  bool host_visible = false;      // Map works without a copy.
  bool interleaves = false;       // Can run ScheduleKind::kInterleaved.
  // Computes apart from the host, so that it would idle while a long command buffer is encoded:
  // SessionOptions::commit_every pays.
  bool overlaps_encoding = false;
  uint32_t subgroup_size = 0;  // That a shader gets; 0: it has none.
  uint32_t threads = 0;        // Of the host that compute; 0: they are not the host's.
  // Optional paths of the backend that are in use, by name.
  std::vector<std::string> features;
};

// The memory that a device's buffers lie in, at the moment of asking.
struct DeviceMemory {
  uint64_t total_bytes = 0;                 // 0: the device does not tell.
  std::optional<uint64_t> free_bytes = {};  // That this program can still get; none: unknown.
  // The system promises more than is free, and ends the program when it touches what is not there:
  // who wants much compares first.
  bool overcommits = false;
};

struct DeviceOptions {
  // Slow, for finding faults: memory that waits for reuse holds poison, and the backend verifies
  // that a dispatch touches only what it declares (E6); Wait reports what it found, and
  // docs/runtime.md says what that proves. Device::Create refuses it (kUnsupported) on a backend
  // that cannot.
  bool checked = false;
};

// Host access to a view's bytes for as long as it lives; counts as one host access of that kind in
// the trace. While it lives, a command buffer that binds these bytes in conflict cannot be
// committed and the buffer cannot be released. When the device has gone, `bytes` is invalid.
class HostMapping {
 public:
  HostMapping(HostMapping&&) noexcept;
  HostMapping& operator=(HostMapping&&) noexcept;
  ~HostMapping();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class Device;
  friend class DeviceState;
  HostMapping(BufferView view, Access access, std::span<std::byte> bytes)
      : view_(std::move(view)), access_(access), bytes_(bytes) {}
  void Unmap();
  BufferView view_;
  Access access_ = Access::kRead;
  std::span<std::byte> bytes_;
};

// Makes buffers and sessions. Thread-safe, but for destruction. Must outlive what it made; a
// session or buffer that outlives it is an error reported by every later call, not a crash.
class Device final {
 public:
  static Result<std::unique_ptr<Device>> Create(std::unique_ptr<Backend> backend,
                                                const DeviceOptions& options = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const;
  DeviceMemory memory() const;
  KernelRegistry& kernels();

  // Errors: kInvalidArgument for size 0, kUnsupported over max_buffer_bytes, kAllocation.
  Result<Buffer> CreateBuffer(const BufferDesc& desc);
  // Makes a buffer over memory of the caller's (a mapped file), which must outlive it, page-aligned
  // or not. Nobody may write to it, neither host nor kernel. kUnsupported on a device without
  // host_visible.
  Result<Buffer> ImportHostMemory(const BufferDesc& desc, std::span<const std::byte> memory);
  Result<std::unique_ptr<Session>> CreateSession(const SessionOptions& options = {});

  // Host access. Errors: kInvalidArgument on a size mismatch; kCommandBuffer when a command buffer
  // that binds the buffer in conflict is in flight.
  Status Write(const BufferView& view, std::span<const std::byte> bytes);
  Status Read(const BufferView& view, std::span<std::byte> bytes);
  Result<HostMapping> Map(const BufferView& view, Access access);

  // For InOrder; null when nobody records.
  LoadObserver* load_observer();

  // Sums over all sessions of this device; buffers alive; bytes allocated.
  Counters counters() const;
  uint64_t live_buffers() const;
  uint64_t live_bytes() const;

 private:
  friend class GraphPlan;
  explicit Device(std::shared_ptr<DeviceState> state);
  std::shared_ptr<DeviceState> state_;
};

// --- Backends

// Of the vulkan backend; docs/vulkan.md has the words.
struct VulkanOptions {
  // A number of ListDevices (gpu_devices.h) or a part of a name; empty: a GPU where there is one.
  std::string device;
  // Compiles each kernel's GLSL when it is first used, in place of the embedded SPIR-V.
  bool kernels_from_source = false;
  // Optional paths that it does not take, by name.
  std::vector<std::string> disabled;
  // When set, Vulkan's validation layer runs, and its messages come here, from any thread.
  std::function<void(std::string_view message)> validation;
};

struct BackendOptions {
  // Threads of the cpu backend, the host's inside Wait included; 0: one for each core. At most
  // 1024.
  int threads = 0;
  // How long an idle thread of the cpu backend looks for work before it sleeps.
  uint32_t spin_us = 20;
  // The order in which the dispatches of a group run; kUnsupported where the backend cannot.
  Schedule schedule = {};
  VulkanOptions vulkan = {};
  // Asked while work runs, from any thread and often; must not throw. Once it says true, whatever
  // of the committed work has not begun is left out, and Wait fails with kCancelled. On a vulkan
  // device with memory of its own, which gets all work at once, that is left out to nothing.
  std::function<bool()> cancelled = {};
};

// The names that MakeBackend takes, in the order of src/gpu/backends.cc.
std::vector<std::string> BackendNames();
// Errors: kNotFound for an unknown name, with the known ones; kDevice when it cannot start here.
Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name,
                                             const BackendOptions& options = {});

}  // namespace assay::gpu

#endif  // ASSAY_GPU_H_
