#include "cli/event_view.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/text.h"
#include "trace/text.h"

namespace assay::cli {
namespace {

using nlohmann::ordered_json;
using trace::BufferId;

std::string ShowExtent(const Extent3& extent) {
  return fmt::format("{},{},{}", extent.x, extent.y, extent.z);
}

std::string Hex(const std::vector<std::byte>& bytes) {
  std::string hex;
  for (const std::byte byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

std::string BufferName(BufferId buffer) {
  if (buffer == trace::kUnnamedBuffer) return std::string("#?");
  return fmt::format("#{}", buffer.value());
}

std::string OrDash(uint64_t number) {
  return number == 0 ? std::string(1, '-') : fmt::format("{}", number);
}

// What stands in the last column, one overload an event.
struct Details {
  const TraceNames& names;

  std::string operator()(const trace::MetaEvent& event) const {
    return fmt::format("{} = {}", event.key, Text(event.value));
  }
  std::string operator()(const trace::BufferEvent& event) const {
    std::string text = fmt::format("{}  {}  {}", BufferName(event.buffer),
                                   Counted(event.size_bytes, "byte"), BufferKindName(event.kind));
    if (!event.label.empty()) text += fmt::format("  {}", Quoted(event.label));
    if (!event.digest.empty()) text += "  digest " + event.digest;
    return text;
  }
  std::string operator()(const trace::FreeEvent& event) const {
    return BufferName(event.buffer) + Label(event.buffer);
  }
  std::string operator()(const trace::KernelEvent& event) const {
    std::string text = fmt::format("k{}  {}  digest {}  workgroup {}", event.kernel.value(),
                                   Text(event.name), event.digest, ShowExtent(event.workgroup));
    if (!event.spec.empty()) text += "  spec " + Text(event.spec);
    if (event.shared_bytes > 0) text += fmt::format("  shared {}", event.shared_bytes);
    return text;
  }
  std::string operator()(const trace::DispatchEvent& event) const {
    std::string text =
        fmt::format("{}  grid {}", Text(names.KernelName(event.kernel)), ShowExtent(event.grid));
    if (event.shared_bytes > 0) text += fmt::format("  shared {}", event.shared_bytes);
    if (!event.args.empty()) text += "  args " + Hex(event.args);
    std::string_view separator = "  ";
    for (const trace::BufferAccess& access : event.accesses) {
      text += fmt::format("{}{} {}{}{}", separator, AccessName(access.access),
                          Range(access.buffer, access.range), access.exact ? "" : "?",
                          Label(access.buffer));
      separator = ", ";
    }
    return text;
  }
  std::string operator()(const trace::HostWriteEvent& event) const {
    return Range(event.buffer, event.range) + Label(event.buffer);
  }
  std::string operator()(const trace::HostReadEvent& event) const {
    return Range(event.buffer, event.range) + Label(event.buffer);
  }
  std::string operator()(const trace::RefusedEvent& event) const {
    return fmt::format("{}: {}", RefusalName(event.reason), event.count);
  }
  std::string operator()(const trace::BeginEvent&) const { return {}; }
  std::string operator()(const trace::BarrierEvent&) const { return {}; }
  std::string operator()(const trace::CommitEvent&) const { return {}; }
  std::string operator()(const trace::WaitEvent&) const { return {}; }

 private:
  std::string Label(BufferId buffer) const {
    const std::string_view label = names.Label(buffer);
    return label.empty() ? std::string() : fmt::format(" {}", Quoted(label));
  }
  static std::string Range(BufferId buffer, ByteRange range) {
    return fmt::format("{}[{},{})", BufferName(buffer), range.begin, range.end);
  }
  // As the trace itself writes it: words as they are, anything else in quotes.
  static std::string Text(std::string_view text) {
    std::string written;
    trace::AppendText(&written, text);
    return written;
  }
};

// The fields of an event behind those of its place, one overload an event.
struct JsonFields {
  const TraceNames& names;
  ordered_json& json;

  void operator()(const trace::MetaEvent& event) const {
    json["key"] = event.key;
    json["value"] = event.value;
  }
  void operator()(const trace::BufferEvent& event) const {
    PutBuffer(event.buffer, &json);
    json["size"] = event.size_bytes;
    json["kind"] = BufferKindName(event.kind);
    if (!event.digest.empty()) json["digest"] = event.digest;
  }
  void operator()(const trace::FreeEvent& event) const { PutBuffer(event.buffer, &json); }
  void operator()(const trace::KernelEvent& event) const {
    PutKernel(event.kernel);
    json["digest"] = event.digest;
    json["workgroup"] = Extent(event.workgroup);
    if (!event.spec.empty()) json["spec"] = event.spec;
    if (event.shared_bytes > 0) json["shared"] = event.shared_bytes;
  }
  void operator()(const trace::DispatchEvent& event) const {
    PutKernel(event.kernel);
    json["grid"] = Extent(event.grid);
    if (event.shared_bytes > 0) json["shared"] = event.shared_bytes;
    json["args"] = Hex(event.args);
    json["accesses"] = ordered_json::array();
    for (const trace::BufferAccess& access : event.accesses) {
      ordered_json item = {{"access", AccessName(access.access)}};
      PutBuffer(access.buffer, &item);
      PutRange(access.range, &item);
      item["exact"] = access.exact;
      json["accesses"].push_back(std::move(item));
    }
  }
  void operator()(const trace::HostWriteEvent& event) const {
    PutBuffer(event.buffer, &json);
    PutRange(event.range, &json);
  }
  void operator()(const trace::HostReadEvent& event) const {
    PutBuffer(event.buffer, &json);
    PutRange(event.range, &json);
  }
  void operator()(const trace::RefusedEvent& event) const {
    json["reason"] = RefusalName(event.reason);
    json["count"] = event.count;
  }
  void operator()(const trace::BeginEvent&) const {}
  void operator()(const trace::BarrierEvent&) const {}
  void operator()(const trace::CommitEvent&) const {}
  void operator()(const trace::WaitEvent&) const {}

 private:
  void PutBuffer(BufferId buffer, ordered_json* into) const {
    if (buffer == trace::kUnnamedBuffer) {
      (*into)["buffer"] = nullptr;
    } else {
      (*into)["buffer"] = buffer.value();
    }
    if (const std::string_view label = names.Label(buffer); !label.empty()) {
      (*into)["label"] = label;
    }
  }
  void PutKernel(trace::KernelId kernel) const {
    json["kernel"] = kernel.value();
    json["name"] = names.KernelName(kernel);
  }
  static void PutRange(ByteRange range, ordered_json* into) {
    (*into)["begin"] = range.begin;
    (*into)["end"] = range.end;
  }
  static ordered_json Extent(const Extent3& extent) { return {extent.x, extent.y, extent.z}; }
};

std::string Dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void TraceNames::Learn(const trace::Event& event) {
  if (const auto* buffer = std::get_if<trace::BufferEvent>(&event)) {
    if (!buffer->label.empty()) labels_[buffer->buffer] = buffer->label;
  } else if (const auto* kernel = std::get_if<trace::KernelEvent>(&event)) {
    kernels_[kernel->kernel] = kernel->name;
  }
}

std::string_view TraceNames::Label(BufferId buffer) const {
  const auto found = labels_.find(buffer);
  return found == labels_.end() ? std::string_view() : found->second;
}

std::string_view TraceNames::KernelName(trace::KernelId kernel) const {
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? std::string_view() : found->second;
}

std::string_view EventWord(const trace::Event& event) {
  constexpr std::string_view kWords[] = {
#define ASSAY_TRACE_EVENT(name, Type) name,
#include "trace/events.def"
#undef ASSAY_TRACE_EVENT
  };
  static_assert(std::size(kWords) == std::variant_size_v<trace::Event>);
  return kWords[event.index()];
}

std::string EventTableHead() {
  return fmt::format("{:>8} {:>6} {:>5}  {:<8}  details\n", "line", "cmdbuf", "disp", "event");
}

std::string FormatEventRow(const EventPlace& place, const trace::Event& event,
                           const TraceNames& names) {
  std::string row =
      fmt::format("{:>8} {:>6} {:>5}  {:<8}  {}", place.line, OrDash(place.command_buffer),
                  OrDash(place.dispatch), EventWord(event), std::visit(Details{names}, event));
  row.erase(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

std::string FormatEventJson(const EventPlace& place, const trace::Event& event,
                            const TraceNames& names) {
  ordered_json json = {{"line", place.line}};
  if (place.command_buffer > 0) json["command_buffer"] = place.command_buffer;
  if (place.dispatch > 0) json["dispatch"] = place.dispatch;
  json["event"] = EventWord(event);
  std::visit(JsonFields{names, json}, event);
  return Dump(json);
}

void EventSummary::Kernel::Add(const Kernel& other) {
  dispatches += other.dispatches;
  workgroups += other.workgroups;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
}

void EventSummary::Add(const trace::Event& event, const TraceNames& names) {
  ++events_[std::string(EventWord(event))];
  const auto* dispatch = std::get_if<trace::DispatchEvent>(&event);
  if (dispatch == nullptr) return;
  Kernel one{.dispatches = 1, .workgroups = dispatch->grid.Count()};
  for (const trace::BufferAccess& access : dispatch->accesses) {
    if (Reads(access.access)) one.bytes_read += access.range.size();
    if (Writes(access.access)) one.bytes_written += access.range.size();
  }
  kernels_[std::string(names.KernelName(dispatch->kernel))].Add(one);
}

std::string EventSummary::FormatText() const {
  size_t widest = std::string_view("kernel").size();
  Kernel total;
  for (const auto& [name, kernel] : kernels_) {
    widest = std::max(widest, name.size());
    total.Add(kernel);
  }
  const auto row = [widest](std::string_view name, const Kernel& kernel) {
    return fmt::format("{:<{}}  {:>10}  {:>12}  {:>16}  {:>16}\n", name, widest, kernel.dispatches,
                       kernel.workgroups, kernel.bytes_read, kernel.bytes_written);
  };
  std::string text = fmt::format("{:<{}}  {:>10}  {:>12}  {:>16}  {:>16}\n", "kernel", widest,
                                 "dispatches", "workgroups", "bytes read", "bytes written");
  // The busiest first; of equals, by name.
  std::vector<std::pair<std::string_view, Kernel>> rows(kernels_.begin(), kernels_.end());
  std::ranges::stable_sort(rows, std::greater(),
                           [](const auto& item) { return item.second.dispatches; });
  for (const auto& [name, kernel] : rows) text += row(name, kernel);
  text += row("total", total);
  text += "events:";
  for (const auto& [word, count] : events_) text += fmt::format(" {} {}", count, word);
  return text + "\n";
}

std::string EventSummary::FormatJson() const {
  ordered_json json;
  json["kernels"] = ordered_json::array();
  for (const auto& [name, kernel] : kernels_) {
    json["kernels"].push_back({{"name", name},
                               {"dispatches", kernel.dispatches},
                               {"workgroups", kernel.workgroups},
                               {"bytes_read", kernel.bytes_read},
                               {"bytes_written", kernel.bytes_written}});
  }
  json["events"] = ordered_json::object();
  for (const auto& [word, count] : events_) json["events"][word] = count;
  return Dump(json);
}

}  // namespace assay::cli
