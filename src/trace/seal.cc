#include <utility>

#include "assay/trace.h"

#include "trace/checked_lines.h"
#include "trace/line_file.h"
#include "trace/sink.h"
#include "trace/source.h"

namespace assay::trace {

Status Seal(const std::string& path, const std::function<bool()>& stop) {
  bool compressed = false;
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, OpenPathSource(path, &compressed));
  CheckedLines lines(std::move(source), path, {.stop = stop}, CheckedLines::EndLine::kIgnored);
  ASSAY_TRY(lines.ReadFirstLine());

  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Sink> sink, MakeFileSink(path));
  if (compressed) {
    ASSAY_ASSIGN_OR_RETURN(sink, MakeZstdSink(std::move(sink)));
  }
  LineFile sealed(std::move(sink));
  for (;;) {
    sealed.Append(lines.line(), 1);
    sealed.Append("\n", 0);
    ASSAY_ASSIGN_OR_RETURN(const std::optional<Event> event, lines.Next());
    if (!event) return sealed.Finish();
  }
}

}  // namespace assay::trace
