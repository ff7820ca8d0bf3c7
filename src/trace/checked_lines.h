// The lines of one trace, each held against the grammar and the rules: what TraceReader and Seal
// share.
#ifndef ASSAY_TRACE_CHECKED_LINES_H_
#define ASSAY_TRACE_CHECKED_LINES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/trace.h"

#include "trace/known_lines.h"
#include "trace/line_reader.h"
#include "trace/line_rules.h"
#include "trace/parse.h"
#include "trace/source.h"

namespace assay::trace {

// One thread.
class CheckedLines final {
 public:
  enum class EndLine : uint8_t {
    kRequired,  // It must be there and right.
    kIgnored,   // It may be missing or wrong, and the last line may lack its line feed.
  };

  // `name` is used in messages.
  CheckedLines(std::unique_ptr<Source> source, std::string name, const ReaderLimits& limits,
               EndLine end_line)
      : name_(std::move(name)),
        limits_(limits),
        end_line_(end_line),
        lines_(std::move(source), limits) {}

  // Call it once, first.
  Status ReadFirstLine();
  // The next event; nullopt behind the last. Not to be called after an error or nullopt.
  Result<std::optional<Event>> Next();

  // Checks all lines that are left as Next does, without making events of them. `stop`, asked now
  // and then, ends it with kCancelled.
  Status CheckRest(const std::function<bool()>& stop);

  const std::string& name() const { return name_; }
  int version() const { return version_; }
  // Of the line last read, from 1, and its text, valid until the next line is read.
  uint64_t line_number() const { return lines_.number(); }
  std::string_view line() const { return lines_.line(); }
  const std::vector<RefusedEvent>& refusals() const { return rules_.refusals(); }

 private:
  Error At(ErrorCode code, std::string_view message) const;
  Error At(const ParseFailure& failure) const;

  // False at the end of the file, where that is allowed.
  Result<bool> ReadLine();
  Status CheckEndLine();
  // Passes over lines in memory that are certain to be right.
  void SkipCertain();
  size_t CertainLine(std::string_view text) const;

  const std::string name_;
  const ReaderLimits limits_;
  const EndLine end_line_;
  LineReader lines_;
  LineRules rules_;
  KnownLines known_;
  int version_ = 0;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_CHECKED_LINES_H_
