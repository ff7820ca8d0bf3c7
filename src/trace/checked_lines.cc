#include "trace/checked_lines.h"

#include <fmt/format.h>

#include "trace/format.h"
#include "trace/quick_dispatch.h"

namespace assay::trace {
namespace {

constexpr std::string_view kStopped = "The reading was stopped.";
constexpr std::string_view kTorn =
    "A second trace begins here: the file is torn, two recorders wrote to it.";

constexpr std::string_view kBeginLine = "begin\n";
constexpr std::string_view kBarrierLine = "barrier\n";
constexpr std::string_view kCommitLine = "commit\n";

// Whether the same line may come again (KnownLines).
bool CanBeRepeated(const Event& event) {
  return !std::holds_alternative<MetaEvent>(event) && !std::holds_alternative<BufferEvent>(event) &&
         !std::holds_alternative<KernelEvent>(event) &&
         !std::holds_alternative<RefusedEvent>(event);
}

}  // namespace

Error CheckedLines::At(ErrorCode code, std::string_view message) const {
  return {code, name_, fmt::format("\"{}\", line {}: {}", name_, lines_.number(), message)};
}

Error CheckedLines::At(const ParseFailure& failure) const {
  return {ErrorCode::kFormat, name_,
          fmt::format("\"{}\", line {}, column {}: {}", name_, lines_.number(), failure.column,
                      failure.message)};
}

Result<bool> CheckedLines::ReadLine() {
  using Found = LineReader::Found;
  ASSAY_ASSIGN_OR_RETURN(const Found found, lines_.Next());
  switch (found) {
    case Found::kLine:
      return true;
    case Found::kUnended:
      if (end_line_ == EndLine::kIgnored) return true;
      return Fail(At(ErrorCode::kFormat,
                     "The file is cut short: its last line does not end in a line feed."));
    case Found::kEnd:
      if (lines_.number() == 1) return Fail(At(ErrorCode::kFormat, "The file is empty."));
      if (end_line_ == EndLine::kIgnored) return false;
      return Fail(At(ErrorCode::kFormat, "The file is cut short: it has no end line."));
    case Found::kTooLong:
      return Fail(
          At(ErrorCode::kFormat,
             fmt::format("The line is longer than the limit ({} bytes).", limits_.max_line_bytes)));
    case Found::kTooLarge:
      return Fail(
          At(ErrorCode::kFormat,
             fmt::format("The text is longer than the limit ({} bytes).", limits_.max_bytes)));
  }
  return false;
}

Status CheckedLines::ReadFirstLine() {
  ASSAY_TRY(ReadLine());
  uint64_t number = 0;
  ParseFailure failure;
  if (!ParseFirstLine(lines_.line(), &number, &failure)) return Fail(At(failure));
  // As it stands there, for it may be larger than any number here.
  constexpr size_t kShownDigits = 40;
  if (number != kCurrentVersion && number != kCreationOrderVersion) {
    return Fail(At(ErrorCode::kUnsupported,
                   fmt::format("The trace has version {}; versions {} and {} can be read.",
                               lines_.line().substr(lines_.line().rfind(' ') + 1, kShownDigits),
                               kCreationOrderVersion, kCurrentVersion)));
  }
  version_ = static_cast<int>(number);
  return {};
}

Result<std::optional<Event>> CheckedLines::Next() {
  ASSAY_ASSIGN_OR_RETURN(const bool found, ReadLine());
  // The first event stands on line 2.
  constexpr uint64_t kLinesBetweenStops = 1024;
  if (lines_.number() % kLinesBetweenStops == 2 && limits_.stop && limits_.stop()) {
    return Fail(At(ErrorCode::kCancelled, kStopped));
  }
  if (!found || IsEndLine(lines_.line())) {
    if (const std::string wrong = rules_.CheckEnd(); !wrong.empty()) {
      return Fail(At(ErrorCode::kFormat, wrong));
    }
    if (found) ASSAY_TRY(CheckEndLine());
    return std::optional<Event>();
  }
  const std::string_view line = lines_.line();
  if (line.starts_with(kMagic)) return Fail(At(ErrorCode::kFormat, kTorn));
  std::optional<Event> event(std::in_place);
  ParseFailure failure;
  if (!ParseEventLine(line, &*event, &failure)) return Fail(At(failure));
  if (const std::string wrong = rules_.Check(*event); !wrong.empty()) {
    return Fail(At(ErrorCode::kFormat, wrong));
  }
  return event;
}

Status CheckedLines::CheckRest(const std::function<bool()>& stop) {
  constexpr uint64_t kRoundsBetweenStops = 64;
  for (uint64_t round = 0;; ++round) {
    if (round % kRoundsBetweenStops == 0 && stop && stop()) {
      return Fail(At(ErrorCode::kCancelled, kStopped));
    }
    SkipCertain();
    const bool inside = rules_.inside();
    ASSAY_ASSIGN_OR_RETURN(const std::optional<Event> event, Next());
    if (!event) return {};
    if (CanBeRepeated(*event)) known_.Take(lines_.line_with_feed(), inside);
  }
}

void CheckedLines::SkipCertain() {
  // Only refusals and the end line may follow a refusal.
  if (!rules_.refusals().empty()) return;
  for (;;) {
    const std::string_view ahead = lines_.Ahead();
    const KnownLines::Run run = known_.Pass(ahead, rules_.inside());
    if (run.lines > 0) {
      lines_.Skip(run.bytes, run.lines);
      rules_.PassLines(run.inside);
    }
    const std::string_view rest = ahead.substr(run.bytes);
    const size_t size = CertainLine(rest);
    if (size == 0) return;
    known_.Take(rest.substr(0, size), rules_.inside());
    lines_.Skip(size, 1);
    rules_.PassLines(!rest.starts_with(kCommitLine));
  }
}

// The size of the line that `text` begins with, when it is certain to be right here; else 0.
size_t CheckedLines::CertainLine(std::string_view text) const {
  if (!rules_.inside()) return text.starts_with(kBeginLine) ? kBeginLine.size() : 0;
  if (text.starts_with(kBarrierLine)) return kBarrierLine.size();
  if (text.starts_with(kCommitLine)) return kCommitLine.size();
  const char* const end = QuickDispatch(text.data(), rules_.kernels(), rules_.buffers());
  if (end == nullptr) return 0;
  const auto size = static_cast<size_t>(end - text.data());
  // The line feed may be the one behind what has been read.
  return size <= text.size() && size - 1 <= limits_.max_line_bytes ? size : 0;
}

Status CheckedLines::CheckEndLine() {
  if (end_line_ == EndLine::kRequired) {
    EndOfTrace end;
    ParseFailure failure;
    if (!ParseEndLine(lines_.line(), &end, &failure)) return Fail(At(failure));
    const uint64_t lines_before = lines_.number() - 1;
    if (end.lines != lines_before) {
      return Fail(At(ErrorCode::kFormat,
                     fmt::format("The end line counts {} lines before it, but there are {}.",
                                 end.lines, lines_before)));
    }
    const std::string digest = lines_.DigestBeforeLine();
    if (end.digest != digest) {
      return Fail(At(ErrorCode::kFormat,
                     fmt::format("The end line says digest {}, but the lines before it have {}.",
                                 end.digest, digest)));
    }
  }
  ASSAY_ASSIGN_OR_RETURN(const LineReader::Found found, lines_.Next());
  if (found == LineReader::Found::kEnd) return {};
  if (lines_.line().starts_with(kMagic)) return Fail(At(ErrorCode::kFormat, kTorn));
  return Fail(
      At(ErrorCode::kFormat, "Something stands behind the end line, which must be the last."));
}

}  // namespace assay::trace
