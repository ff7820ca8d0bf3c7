#include <utility>

#include <fmt/format.h>

#include "assay/trace.h"

#include "trace/format.h"
#include "trace/line_reader.h"
#include "trace/line_rules.h"
#include "trace/parse.h"
#include "trace/source.h"

namespace assay::trace {

struct TraceReader::State {
  State(std::unique_ptr<Source> source, std::string reader_name, const ReaderLimits& reader_limits)
      : name(std::move(reader_name)),
        limits(reader_limits),
        lines(std::move(source), reader_limits) {}

  // Every error of the reader: the file's name, the line and, where it helps, the column.
  Error At(ErrorCode code, std::string_view message) const {
    return {code, name, fmt::format("\"{}\", line {}: {}", name, lines.number(), message)};
  }
  Error At(const ParseFailure& failure) const {
    return {ErrorCode::kFormat, name,
            fmt::format("\"{}\", line {}, column {}: {}", name, lines.number(), failure.column,
                        failure.message)};
  }

  // The next whole line is in lines.line().
  Status ReadLine();
  Status ReadFirstLine();
  Result<std::optional<Event>> ReadEvent();
  Status CheckEnd();

  const std::string name;
  const ReaderLimits limits;
  LineReader lines;
  LineRules rules;
  int version = 0;
  bool whole = false;
  std::optional<Error> failed;
};

Status TraceReader::State::ReadLine() {
  using Found = LineReader::Found;
  ASSAY_ASSIGN_OR_RETURN(const Found found, lines.Next());
  switch (found) {
    case Found::kLine:
      return {};
    case Found::kUnended:
      return Fail(At(ErrorCode::kFormat,
                     "The file is cut short: its last line does not end in a line feed."));
    case Found::kEnd:
      return Fail(At(ErrorCode::kFormat, lines.number() == 1
                                             ? "The file is empty."
                                             : "The file is cut short: it has no end line."));
    case Found::kTooLong:
      return Fail(
          At(ErrorCode::kFormat,
             fmt::format("The line is longer than the limit ({} bytes).", limits.max_line_bytes)));
    case Found::kTooLarge:
      return Fail(
          At(ErrorCode::kFormat,
             fmt::format("The text is longer than the limit ({} bytes).", limits.max_bytes)));
  }
  return {};
}

Status TraceReader::State::ReadFirstLine() {
  ASSAY_TRY(ReadLine());
  uint64_t number = 0;
  ParseFailure failure;
  if (!ParseFirstLine(lines.line(), &number, &failure)) return Fail(At(failure));
  if (number != kCurrentVersion && number != kCreationOrderVersion) {
    return Fail(At(ErrorCode::kUnsupported,
                   fmt::format("The trace has version {}; versions {} and {} can be read.", number,
                               kCreationOrderVersion, kCurrentVersion)));
  }
  version = static_cast<int>(number);
  return {};
}

Result<std::optional<Event>> TraceReader::State::ReadEvent() {
  ASSAY_TRY(ReadLine());
  const std::string_view line = lines.line();
  if (IsEndLine(line)) {
    ASSAY_TRY(CheckEnd());
    return std::optional<Event>();
  }
  if (line.starts_with(kMagic)) {
    return Fail(At(ErrorCode::kFormat,
                   "A second trace begins here: the file is torn, two recorders wrote to it."));
  }
  std::optional<Event> event(std::in_place);
  ParseFailure failure;
  if (!ParseEventLine(line, &*event, &failure)) return Fail(At(failure));
  const std::string wrong = rules.Check(*event);
  if (!wrong.empty()) return Fail(At(ErrorCode::kFormat, wrong));
  return event;
}

Status TraceReader::State::CheckEnd() {
  EndOfTrace end;
  ParseFailure failure;
  if (!ParseEndLine(lines.line(), &end, &failure)) return Fail(At(failure));
  if (const std::string wrong = rules.CheckEnd(); !wrong.empty()) {
    return Fail(At(ErrorCode::kFormat, wrong));
  }
  const uint64_t lines_before = lines.number() - 1;
  if (end.lines != lines_before) {
    return Fail(At(ErrorCode::kFormat,
                   fmt::format("The end line counts {} lines before it, but there are {}.",
                               end.lines, lines_before)));
  }
  const std::string digest = lines.DigestBeforeLine();
  if (end.digest != digest) {
    return Fail(At(ErrorCode::kFormat,
                   fmt::format("The end line says digest {}, but the lines before it have {}.",
                               end.digest, digest)));
  }
  ASSAY_ASSIGN_OR_RETURN(const LineReader::Found found, lines.Next());
  if (found != LineReader::Found::kEnd) {
    const bool torn = lines.line().starts_with(kMagic);
    return Fail(At(ErrorCode::kFormat,
                   torn ? "A second trace begins here: the file is torn, two recorders wrote to it."
                        : "Something stands behind the end line, which must be the last."));
  }
  whole = true;
  return {};
}

Result<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path,
                                                       const ReaderLimits& limits) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, OpenPathSource(path));
  auto state = std::make_unique<State>(std::move(source), path, limits);
  ASSAY_TRY(state->ReadFirstLine());
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(state)));
}

Result<std::unique_ptr<TraceReader>> TraceReader::FromMemory(std::string_view text,
                                                             std::string name,
                                                             const ReaderLimits& limits) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, OpenMemorySource(text, name));
  auto state = std::make_unique<State>(std::move(source), std::move(name), limits);
  ASSAY_TRY(state->ReadFirstLine());
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(state)));
}

TraceReader::TraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceReader::~TraceReader() = default;

int TraceReader::version() const { return state_->version; }
const std::string& TraceReader::name() const { return state_->name; }
uint64_t TraceReader::line_number() const { return state_->lines.number(); }
std::string_view TraceReader::line() const { return state_->lines.line(); }
const std::vector<RefusedEvent>& TraceReader::refusals() const { return state_->rules.refusals(); }

Result<std::optional<Event>> TraceReader::Next() {
  if (state_->failed) return Fail(*state_->failed);
  if (state_->whole) return std::optional<Event>();
  Result<std::optional<Event>> event = state_->ReadEvent();
  if (!event) state_->failed = event.error();
  return event;
}

}  // namespace assay::trace
