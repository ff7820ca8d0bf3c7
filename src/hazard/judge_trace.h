// Handing a trace to whoever judges it.
#ifndef ASSAY_HAZARD_JUDGE_TRACE_H_
#define ASSAY_HAZARD_JUDGE_TRACE_H_

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "assay/base.h"
#include "assay/trace.h"

namespace assay::hazard {

// Hands the events of the trace that open() gives to `judge` and returns the report of its
// Finish(), with the trace's name and version. `doing` is "checking" or the like, for messages. The
// library throws nothing across its border.
template <typename Judge, typename Open>
auto JudgeTrace(const std::string& name, std::string_view doing, Judge& judge, Open&& open)
    -> Result<decltype(judge.Finish())> try {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<trace::TraceReader> reader, open());
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::optional<trace::Event> event, reader->Next());
    if (!event) break;
    ASSAY_TRY_WHILE(judge.Add(*event, reader->line_number()),
                    fmt::format("{} \"{}\"", doing, reader->name()));
  }
  auto report = judge.Finish();
  report.name = reader->name();
  report.version = reader->version();
  return report;
} catch (const std::bad_alloc&) {
  return Fail(ErrorCode::kAllocation, name,
              fmt::format("There is not enough memory for {} \"{}\".", doing, name));
}

// The sentence about a trace's refusals, a part an event; empty without any.
class RefusalSentence final {
 public:
  void Add(const trace::RefusedEvent& event) {
    parts_ += fmt::format("{}{} {}", parts_.empty() ? "" : ", ", event.count,
                          trace::RefusalName(event.reason));
  }
  std::string Finish() const {
    if (parts_.empty()) return {};
    return fmt::format("The trace has buffers without a place ({}); it proves nothing.", parts_);
  }

 private:
  std::string parts_;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_JUDGE_TRACE_H_
