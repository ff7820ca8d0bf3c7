// A trace as Chrome trace events, which Perfetto and chrome://tracing show.
//
// A trace holds no times. The time here is logical, in steps: what runs between two barriers begins
// together, one dispatch a step on a lane of its own; dispatches of a group that has more than
// there are lanes follow in further steps. A host access takes a step of its own. An arrow leads
// from who wrote bytes last to each dispatch or host access that reads them, where there are many
// for one buffer from the latest ones.
#ifndef ASSAY_CLI_PERFETTO_EXPORT_H_
#define ASSAY_CLI_PERFETTO_EXPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/trace.h"

#include "hazard/range_map.h"

namespace assay::cli {

struct PerfettoOptions {
  uint64_t max_dispatches = 100'000;  // Nothing is written of what comes behind them.
  uint32_t lanes = 32;                // At least 1.
  // To one reader, from the latest writers of each buffer that it reads: a cache that every step
  // adds to and reads whole would have an arrow for each pair of steps.
  uint32_t arrows = 8;
};

// Writes events as they come, in memory bounded by the buffers alive and the ranges written in
// them. One thread.
//
//   PerfettoExport exporting(options, sink);
//   ASSAY_TRY(exporting.Begin(name));
//   ASSAY_TRY(exporting.Add(event, line)); ...   // Of a whole trace, in order.
//   ASSAY_TRY(exporting.Finish());
class PerfettoExport final {
 public:
  using Sink = std::function<Status(std::string_view text)>;
  PerfettoExport(const PerfettoOptions& options, Sink sink)
      : options_(options), sink_(std::move(sink)) {}

  // `name` is the trace's. Errors of all three: the sink's.
  Status Begin(std::string_view name);
  Status Add(const trace::Event& event, uint64_t line);
  Status Finish();

  uint64_t dispatches() const { return dispatches_; }  // That were written.
  uint64_t arrows() const { return arrows_; }
  uint64_t left_out() const { return left_out_; }  // Dispatches behind the limit.
  uint64_t arrows_left_out() const { return arrows_left_out_; }

 private:
  // Where something stands in the output.
  struct Slice {
    uint64_t step = 0;
    uint64_t group = 0;  // 0: the host's.
    uint32_t track = 0;
    bool operator==(const Slice&) const = default;
  };
  // Of bytes: who wrote them last. Line 0: nobody.
  struct Writer {
    uint64_t line = 0;
    Slice slice;
    bool operator==(const Writer&) const = default;
  };
  struct Buffer {
    std::string name;  // As a JSON string without its quotes: "#5 label".
    hazard::RangeMap<Writer> written;
  };
  struct Kernel {
    std::string name;  // As a JSON string.
    std::string facts;
  };
  // Bytes that one reads and another wrote, from the first to the last of them.
  struct Arrow {
    Writer writer;
    trace::BufferId buffer;
    ByteRange within;
  };

  Status Write(std::string_view event);
  Status NameTrack(uint32_t track, std::string_view name);
  Status NameLanes(uint64_t used);
  std::string BufferName(trace::BufferId id) const;
  void CollectArrows(const trace::BufferAccess& access, std::vector<Arrow>* arrows) const;
  // Makes one of those of a pair and a buffer, and keeps the latest of each buffer.
  void KeepLatest(std::vector<Arrow>* arrows);
  Status WriteArrows(std::vector<Arrow> arrows, const Slice& reader);
  void SetWriter(const trace::BufferAccess& access, const Writer& writer);
  void CloseGroup();
  Status AddHostAccess(const trace::BufferAccess& access, uint64_t line);

  Status On(const trace::MetaEvent& event, uint64_t line);
  Status On(const trace::BufferEvent& event, uint64_t line);
  Status On(const trace::FreeEvent& event, uint64_t line);
  Status On(const trace::KernelEvent& event, uint64_t line);
  Status On(const trace::BeginEvent& event, uint64_t line);
  Status On(const trace::DispatchEvent& event, uint64_t line);
  Status On(const trace::BarrierEvent& event, uint64_t line);
  Status On(const trace::CommitEvent& event, uint64_t line);
  Status On(const trace::WaitEvent& event, uint64_t line);
  Status On(const trace::HostWriteEvent& event, uint64_t line);
  Status On(const trace::HostReadEvent& event, uint64_t line);
  Status On(const trace::RefusedEvent& event, uint64_t line);

  const PerfettoOptions options_;
  const Sink sink_;
  std::string facts_;  // Members of what stands behind the events.
  std::unordered_map<trace::BufferId, Buffer> buffers_;
  std::unordered_map<trace::KernelId, Kernel> kernels_;
  uint64_t lanes_named_ = 0;
  bool any_event_ = false;
  bool full_ = false;
  bool inside_ = false;

  uint64_t step_ = 0;  // Where the next group, or host access, begins.
  uint64_t group_ = 0;
  uint64_t in_group_ = 0;
  uint64_t command_buffer_ = 0;
  uint64_t command_begin_ = 0;  // Its first step.
  uint64_t in_command_ = 0;
  uint64_t dispatches_ = 0;
  uint64_t arrows_ = 0;
  uint64_t left_out_ = 0;
  uint64_t arrows_left_out_ = 0;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_PERFETTO_EXPORT_H_
