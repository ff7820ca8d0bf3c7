// How `assay show` shows the events of a trace: as rows of a table, as JSON, or summed up.
#ifndef ASSAY_CLI_EVENT_VIEW_H_
#define ASSAY_CLI_EVENT_VIEW_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "assay/trace.h"

namespace assay::cli {

// What the names of a trace stand for, learnt while it is read.
class TraceNames final {
 public:
  void Learn(const trace::Event& event);
  // Empty for a buffer without one.
  std::string_view Label(trace::BufferId buffer) const;
  // Empty for a kernel that no line declares.
  std::string_view KernelName(trace::KernelId kernel) const;

 private:
  std::unordered_map<trace::BufferId, std::string> labels_;
  std::unordered_map<trace::KernelId, std::string> kernels_;
};

// Where an event stands.
struct EventPlace {
  uint64_t line = 0;            // From 1.
  uint64_t command_buffer = 0;  // From 1; 0: outside one.
  uint64_t dispatch = 0;        // From 1 within the command buffer; 0: not a dispatch.
};

// "meta", "buffer", ...: the word that begins the event's line.
std::string_view EventWord(const trace::Event& event);

// The head of the table and its rows, each with a newline.
std::string EventTableHead();
std::string FormatEventRow(const EventPlace& place, const trace::Event& event,
                           const TraceNames& names);
// One JSON object on a line.
std::string FormatEventJson(const EventPlace& place, const trace::Event& event,
                            const TraceNames& names);

// Counts by kernel and by kind of event.
class EventSummary final {
 public:
  void Add(const trace::Event& event, const TraceNames& names);
  std::string FormatText() const;
  // One JSON object on a line.
  std::string FormatJson() const;

 private:
  struct Kernel {
    uint64_t dispatches = 0;
    uint64_t workgroups = 0;
    uint64_t bytes_read = 0;  // Of all bindings, each dispatch anew.
    uint64_t bytes_written = 0;
    void Add(const Kernel& other);
  };
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::map<std::string, uint64_t, std::less<>> events_;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_EVENT_VIEW_H_
