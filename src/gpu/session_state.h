// The working half of a Session: validates, tracks, encodes.
#ifndef ASSAY_GPU_SESSION_STATE_H_
#define ASSAY_GPU_SESSION_STATE_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/access_tracker.h"
#include "gpu/backend.h"
#include "gpu/command_encoder.h"
#include "gpu/device_state.h"
#include "gpu/graph_plan_state.h"
#include "gpu/graph_state.h"

namespace assay::gpu {

// One thread, but for the counters, which the device reads from others.
class SessionState final {
 public:
  SessionState(std::shared_ptr<DeviceState> device, std::unique_ptr<BackendQueue> queue,
               const SessionOptions& options);
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;
  ~SessionState() { Close(); }

  Status Dispatch(const gpu::Dispatch& dispatch);
  Status Barrier();
  Status Commit();
  Status Wait();
  void Reset();
  Status BeginCapture();
  Status BeginRecapture(Graph&& graph);
  Status KeepCaptured();
  Result<Graph> EndCapture();
  Status Replay(const Graph& graph);
  Status Replay(const Graph& graph, const GraphPlan& plan);

  const Counters& counters() const { return counters_; }
  BarrierMode barrier_mode() const { return options_.barriers; }

  // Waits for what is in flight and gives up the queue; every later call reports kDevice.
  void Close();

 private:
  Status CheckUsable() const;
  Status CheckReplay(const Graph& graph) const;
  // Adds a validated dispatch to the capture.
  Status Capture(const gpu::Dispatch& dispatch);
  Result<const KernelEntry*> FindKernel(KernelId id);
  Status Validate(const gpu::Dispatch& dispatch, const KernelEntry** kernel);
  Status ValidateBinding(const KernelEntry& kernel, size_t index, const Binding& binding) const;
  // Of a dispatch that has been validated.
  Status Encode(const gpu::Dispatch& dispatch, const KernelEntry& kernel);
  Status Pin(const gpu::Dispatch& dispatch);
  bool ConflictsSinceBarrier() const;
  Status IssueBarrier();
  // True when a commit is to stand in for the barrier that comes next.
  bool CommitIsDue() const;
  Status CommitOpen();
  // Abandons the command buffer after a failure of the backend, which later calls repeat.
  Status FailEncoding(Error error);
  // Ends the encoder, drops its command buffer and lets go of what it held.
  void Abandon();
  // Retires all that was in flight, which has finished. Returns the first error of Retire.
  Status Land();
  // Lets go of what `record` held. Returns the error of a buffer dropped in flight.
  Status Retire(CommandRecord* record);

  std::shared_ptr<DeviceState> device_;
  SessionOptions options_;
  Counters counters_;
  std::unique_ptr<BackendQueue> queue_;  // Null once closed.

  CommandEncoder encoder_;
  std::optional<Error> failure_;             // Of the open command buffer; sticks until Reset.
  std::unique_ptr<CommandRecord> recorded_;  // Of the open command buffer; never null.
  AccessTracker tracker_;                    // In automatic mode only.
  std::deque<std::unique_ptr<CommandRecord>> in_flight_;
  std::vector<std::unique_ptr<CommandRecord>> spare_records_;

  // By allocation index: the number of the command buffer that last pinned it.
  std::vector<uint64_t> pinned_by_;
  uint64_t command_buffer_number_ = 1;
  // In the open command buffer; the dropped barrier is included.
  uint64_t barriers_placed_ = 0;
  uint64_t dispatches_encoded_ = 0;
  // By kernel id; spares the lookup its lock.
  std::vector<const KernelEntry*> kernels_;
  std::vector<BackendBinding> bindings_;   // Of the dispatch being encoded.
  std::unique_ptr<Graph::State> capture_;  // While capturing.
  // While capturing again, the dispatch that the next one replaces.
  std::optional<uint32_t> recaptured_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SESSION_STATE_H_
