#include "cli/perfetto_export.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace assay::cli {
namespace {

// Microseconds of a step. An arrow leaves early in one slice and arrives late in the other, so that
// its ends are in order also between two of one step.
constexpr uint64_t kStep = 10;
constexpr uint64_t kLeaves = 2;
constexpr uint64_t kArrives = 8;

constexpr uint32_t kHostTrack = 1;
constexpr uint32_t kCommandTrack = 2;
constexpr uint32_t kFirstLane = 10;

// `text` as a JSON string in ASCII.
std::string Json(std::string_view text) {
  return nlohmann::json(Printable(text))
      .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

std::string ExtentText(const Extent3& extent) {
  return fmt::format("{},{},{}", extent.x, extent.y, extent.z);
}

std::string RangeText(ByteRange range) { return fmt::format("[{},{})", range.begin, range.end); }

}  // namespace

Status PerfettoExport::Begin(std::string_view name) {
  ASSAY_TRY(sink_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"));
  ASSAY_TRY(Write(fmt::format(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})",
                              Json(name))));
  ASSAY_TRY(NameTrack(kHostTrack, "host"));
  return NameTrack(kCommandTrack, "command buffers, in the order of their commits");
}

Status PerfettoExport::Add(const trace::Event& event, uint64_t line) {
  return std::visit([&](const auto& each) { return On(each, line); }, event);
}

Status PerfettoExport::Finish() {
  // The trace was whole, so a command buffer that is open here was cut by the limit.
  if (inside_) ASSAY_TRY(On(trace::CommitEvent{}, 0));
  return sink_(fmt::format(
      "\n],\"otherData\":{{{}\"assay.steps\":\"one for each dispatch of a lane; no time "
      "was "
      "measured\",\"assay.dispatches\":{},\"assay.left_out\":{},\"assay.arrows_left_out\":{}}}}}\n",
      facts_, dispatches_, left_out_, arrows_left_out_));
}

Status PerfettoExport::Write(std::string_view event) {
  if (any_event_) ASSAY_TRY(sink_(",\n"));
  any_event_ = true;
  return sink_(event);
}

Status PerfettoExport::NameTrack(uint32_t track, std::string_view name) {
  ASSAY_TRY(Write(
      fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                  track, name)));
  return Write(fmt::format(
      R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
      track));
}

Status PerfettoExport::NameLanes(uint64_t used) {
  for (; lanes_named_ < used; ++lanes_named_) {
    ASSAY_TRY(NameTrack(kFirstLane + static_cast<uint32_t>(lanes_named_),
                        fmt::format("lane {}", lanes_named_ + 1)));
  }
  return {};
}

std::string PerfettoExport::BufferName(trace::BufferId id) const {
  const auto found = buffers_.find(id);
  return found == buffers_.end() ? std::string("#?") : found->second.name;
}

void PerfettoExport::CollectArrows(const trace::BufferAccess& access,
                                   std::vector<Arrow>* arrows) const {
  const auto buffer = buffers_.find(access.buffer);
  if (!Reads(access.access) || buffer == buffers_.end()) return;
  buffer->second.written.ForEach(access.range, [&](const auto& entry) {
    const ByteRange shared = access.range.Intersect(entry.range());
    if (entry.state.line == 0 || shared.empty()) return;
    arrows->push_back({entry.state, access.buffer, shared});
  });
}

void PerfettoExport::KeepLatest(std::vector<Arrow>* arrows) {
  std::ranges::sort(*arrows, [](const Arrow& a, const Arrow& b) {
    if (a.buffer != b.buffer) return a.buffer.value() < b.buffer.value();
    return a.writer.line > b.writer.line;
  });
  std::vector<Arrow> kept;
  uint64_t of_buffer = 0;
  for (size_t i = 0; i < arrows->size(); ++i) {
    const Arrow& arrow = (*arrows)[i];
    const Arrow* before = i == 0 ? nullptr : &(*arrows)[i - 1];
    const bool same_buffer = before != nullptr && before->buffer == arrow.buffer;
    const bool same_writer = same_buffer && before->writer == arrow.writer;
    of_buffer = same_buffer ? of_buffer + (same_writer ? 0 : 1) : 1;
    if (of_buffer > options_.arrows) {
      if (!same_writer) ++arrows_left_out_;
    } else if (same_writer) {
      ByteRange& within = kept.back().within;
      within = {std::min(within.begin, arrow.within.begin), std::max(within.end, arrow.within.end)};
    } else {
      kept.push_back(arrow);
    }
  }
  *arrows = std::move(kept);
}

Status PerfettoExport::WriteArrows(std::vector<Arrow> arrows, const Slice& reader) {
  KeepLatest(&arrows);
  for (const Arrow& arrow : arrows) {
    const Slice& writer = arrow.writer.slice;
    // Without a barrier between them nothing says that the reader sees the bytes.
    const bool unordered = writer.group != 0 && writer.group == reader.group;
    ++arrows_;
    const auto end = [&](std::string_view phase, const Slice& slice, uint64_t offset) {
      return fmt::format(R"({{"ph":"{}","cat":"{}","name":"{}","id":{},"pid":1,"tid":{},"ts":{},)"
                         R"("args":{{"within":"{}"}}}})",
                         phase, unordered ? "unordered" : "bytes", BufferName(arrow.buffer),
                         arrows_, slice.track, slice.step * kStep + offset,
                         RangeText(arrow.within));
    };
    ASSAY_TRY(Write(end("s", writer, kLeaves)));
    ASSAY_TRY(Write(end("f\",\"bp\":\"e", reader, kArrives)));
  }
  return {};
}

void PerfettoExport::SetWriter(const trace::BufferAccess& access, const Writer& writer) {
  const auto buffer = buffers_.find(access.buffer);
  if (!Writes(access.access) || buffer == buffers_.end()) return;
  buffer->second.written.Assign(access.range, writer);
}

void PerfettoExport::CloseGroup() {
  step_ += (in_group_ + options_.lanes - 1) / options_.lanes;
  in_group_ = 0;
}

Status PerfettoExport::AddHostAccess(const trace::BufferAccess& access, uint64_t line) {
  if (full_) return {};
  const Slice slice{.step = step_++, .group = 0, .track = kHostTrack};
  ASSAY_TRY(Write(fmt::format(
      R"({{"ph":"X","cat":"host","name":"{}","pid":1,"tid":{},"ts":{},"dur":{},)"
      R"("args":{{"line":{},"buffer":"{}","bytes":"{}"}}}})",
      access.access == Access::kRead ? "host read" : "host write", slice.track, slice.step * kStep,
      kStep, line, BufferName(access.buffer), RangeText(access.range))));
  std::vector<Arrow> arrows;
  CollectArrows(access, &arrows);
  SetWriter(access, {line, slice});
  return WriteArrows(std::move(arrows), slice);
}

Status PerfettoExport::On(const trace::MetaEvent& event, uint64_t) {
  // They are held to the end; a trace of the program has a dozen.
  constexpr size_t kMostBytes = size_t{64} << 10;
  if (facts_.size() < kMostBytes)
    facts_ += fmt::format("{}:{},", Json(event.key), Json(event.value));
  return {};
}

Status PerfettoExport::On(const trace::BufferEvent& event, uint64_t) {
  // Buffers without a place share one name, so that nobody can tell whose bytes are whose.
  if (event.buffer == trace::kUnnamedBuffer) return {};
  std::string name = fmt::format("#{}", event.buffer.value());
  if (!event.label.empty()) name += ' ' + event.label;
  name = Json(name);
  buffers_[event.buffer] = {name.substr(1, name.size() - 2), {}};
  return {};
}

Status PerfettoExport::On(const trace::FreeEvent& event, uint64_t) {
  buffers_.erase(event.buffer);
  return {};
}

Status PerfettoExport::On(const trace::KernelEvent& event, uint64_t) {
  kernels_[event.kernel] = {
      Json(event.name),
      fmt::format(R"("workgroup":"{}","code":"{}","specialisation":{},"static shared bytes":{})",
                  ExtentText(event.workgroup), event.digest, Json(event.spec), event.shared_bytes)};
  return {};
}

Status PerfettoExport::On(const trace::BeginEvent&, uint64_t) {
  if (full_) return {};
  inside_ = true;
  ++command_buffer_;
  ++group_;
  command_begin_ = step_;
  in_command_ = 0;
  return {};
}

Status PerfettoExport::On(const trace::DispatchEvent& event, uint64_t line) {
  if (dispatches_ == options_.max_dispatches) {
    // What comes behind the limit is read, since only the end says that the trace is whole.
    if (inside_) ASSAY_TRY(On(trace::CommitEvent{}, 0));
    full_ = true;
  }
  if (full_) {
    ++left_out_;
    return {};
  }
  ++dispatches_;
  ++in_command_;
  const uint64_t lane = in_group_ % options_.lanes;
  const Slice slice{.step = step_ + in_group_ / options_.lanes,
                    .group = group_,
                    .track = kFirstLane + static_cast<uint32_t>(lane)};
  ++in_group_;
  ASSAY_TRY(NameLanes(lane + 1));
  std::string args;
  for (const std::byte byte : event.args) args += fmt::format("{:02x}", static_cast<int>(byte));
  std::string bindings;
  std::vector<Arrow> arrows;
  for (size_t i = 0; i < event.accesses.size(); ++i) {
    const trace::BufferAccess& access = event.accesses[i];
    bindings +=
        fmt::format(R"({}"{} {}":"{} {}{}")", i == 0 ? "" : ",", i, AccessName(access.access),
                    BufferName(access.buffer), RangeText(access.range), access.exact ? "" : "?");
    CollectArrows(access, &arrows);
  }
  const Kernel& kernel = kernels_[event.kernel];
  ASSAY_TRY(Write(fmt::format(
      R"({{"ph":"X","cat":"dispatch","name":{},"pid":1,"tid":{},"ts":{},"dur":{},)"
      R"("args":{{"line":{},"command buffer":{},"dispatch":{},"group":{},"grid":"{}",)"
      R"("shared bytes":{},"constants":"{}",{},"bindings":{{{}}}}}}})",
      kernel.name, slice.track, slice.step * kStep, kStep, line, command_buffer_, in_command_,
      group_, ExtentText(event.grid), event.shared_bytes, args, kernel.facts, bindings)));
  // A dispatch reads what was there before it writes.
  for (const trace::BufferAccess& access : event.accesses) SetWriter(access, {line, slice});
  return WriteArrows(std::move(arrows), slice);
}

Status PerfettoExport::On(const trace::BarrierEvent&, uint64_t line) {
  if (full_) return {};
  CloseGroup();
  ++group_;
  return Write(
      fmt::format(R"({{"ph":"i","s":"p","cat":"barrier","name":"barrier","pid":1,"tid":{},"ts":{},)"
                  R"("args":{{"line":{}}}}})",
                  kCommandTrack, step_ * kStep, line));
}

Status PerfettoExport::On(const trace::CommitEvent&, uint64_t) {
  if (full_) return {};
  CloseGroup();
  // An empty one is seen as well.
  if (step_ == command_begin_) ++step_;
  inside_ = false;
  return Write(fmt::format(
      R"({{"ph":"X","cat":"commands","name":"command buffer {0}","pid":1,"tid":{1},"ts":{2},)"
      R"("dur":{3},"args":{{"command buffer":{0},"dispatches":{4}}}}})",
      command_buffer_, kCommandTrack, command_begin_ * kStep, (step_ - command_begin_) * kStep,
      in_command_));
}

Status PerfettoExport::On(const trace::WaitEvent&, uint64_t line) {
  if (full_) return {};
  return Write(
      fmt::format(R"({{"ph":"i","s":"t","cat":"host","name":"wait","pid":1,"tid":{},"ts":{},)"
                  R"("args":{{"line":{}}}}})",
                  kHostTrack, step_ * kStep, line));
}

Status PerfettoExport::On(const trace::HostWriteEvent& event, uint64_t line) {
  return AddHostAccess({.access = Access::kWrite, .buffer = event.buffer, .range = event.range},
                       line);
}

Status PerfettoExport::On(const trace::HostReadEvent& event, uint64_t line) {
  return AddHostAccess({.access = Access::kRead, .buffer = event.buffer, .range = event.range},
                       line);
}

Status PerfettoExport::On(const trace::RefusedEvent& event, uint64_t) {
  facts_ += fmt::format("\"refused {}\":{},", trace::RefusalName(event.reason), event.count);
  return {};
}

}  // namespace assay::cli
