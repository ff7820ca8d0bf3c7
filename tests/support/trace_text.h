// Traces as text, for tests: the right end line for lines written by hand, and all events at once.
#ifndef ASSAY_TESTS_SUPPORT_TRACE_TEXT_H_
#define ASSAY_TESTS_SUPPORT_TRACE_TEXT_H_

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base.h"
#include "assay/trace.h"

#include "base/hash.h"

namespace assay::testing {

// `lines`, each with its line feed and the first line included, and the end line that fits them.
inline std::string Sealed(std::string lines) {
  const auto count = std::count(lines.begin(), lines.end(), '\n');
  const std::string digest = HexDigest(lines);
  lines += "end events=" + std::to_string(count) + " digest=" + digest + "\n";
  return lines;
}

// The lines of a trace without its end line.
inline std::string WithoutEnd(std::string_view text) {
  return std::string(text.substr(0, text.rfind("end events=")));
}

// Every event of a trace, or the error that refuses it.
inline Result<std::vector<trace::Event>> ReadAll(trace::TraceReader* reader) {
  std::vector<trace::Event> events;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(std::optional<trace::Event> event, reader->Next());
    if (!event) return events;
    events.push_back(*std::move(event));
  }
}
inline Result<std::vector<trace::Event>> ReadAll(std::string_view text,
                                                 const trace::ReaderLimits& limits = {}) {
  ASSAY_ASSIGN_OR_RETURN(auto reader, trace::TraceReader::FromMemory(text, "test", limits));
  return ReadAll(reader.get());
}
inline Result<std::vector<trace::Event>> ReadAllOf(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(auto reader, trace::TraceReader::Open(path));
  return ReadAll(reader.get());
}

// The text that these events are the lines of.
inline std::string TextOf(int version, const std::vector<trace::Event>& events) {
  std::string lines = "assay-trace " + std::to_string(version) + "\n";
  for (const trace::Event& event : events) lines += trace::FormatEvent(event) + "\n";
  return Sealed(std::move(lines));
}

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_TRACE_TEXT_H_
