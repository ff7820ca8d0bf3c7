#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "assay/trace.h"

#include "trace/checked_lines.h"
#include "trace/source.h"

namespace assay::trace {

struct TraceReader::State {
  State(std::unique_ptr<Source> source, std::string name, const ReaderLimits& limits)
      : lines(std::move(source), std::move(name), limits, CheckedLines::EndLine::kRequired) {}

  CheckedLines lines;
  uint64_t line_number = 1;
  std::string_view line;
  bool whole = false;
  std::optional<Error> failed;
};

namespace {

// A folder of evidence is easily given for one of its traces; the message names one.
Status CheckNoFolder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return {};
  std::string first;
  for (const auto& entry : fs::directory_iterator(path, failure)) {
    std::string name = entry.path().string();
    const bool trace = name.ends_with(".trace") || name.ends_with(".trace.zst");
    if (trace && (first.empty() || name < first)) first = std::move(name);
  }
  return Fail(ErrorCode::kIo, path,
              fmt::format("\"{}\" is a folder, not a trace{}.", path,
                          first.empty() ? std::string()
                                        : fmt::format("; name a trace in it: \"{}\"", first)));
}

}  // namespace

Result<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path,
                                                       const ReaderLimits& limits) {
  ASSAY_TRY(CheckNoFolder(path));
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, OpenPathSource(path));
  auto state = std::make_unique<State>(std::move(source), path, limits);
  ASSAY_TRY(state->lines.ReadFirstLine());
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(state)));
}

Result<std::unique_ptr<TraceReader>> TraceReader::FromMemory(std::string_view text,
                                                             std::string name,
                                                             const ReaderLimits& limits) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, OpenMemorySource(text, name));
  auto state = std::make_unique<State>(std::move(source), std::move(name), limits);
  ASSAY_TRY(state->lines.ReadFirstLine());
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(state)));
}

TraceReader::TraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceReader::~TraceReader() = default;

int TraceReader::version() const { return state_->lines.version(); }
const std::string& TraceReader::name() const { return state_->lines.name(); }
uint64_t TraceReader::line_number() const { return state_->line_number; }
std::string_view TraceReader::line() const { return state_->line; }
const std::vector<RefusedEvent>& TraceReader::refusals() const { return state_->lines.refusals(); }

Result<std::optional<Event>> TraceReader::Next() {
  State& state = *state_;
  if (state.failed) return Fail(*state.failed);
  if (state.whole) return std::optional<Event>();
  Result<std::optional<Event>> event = state.lines.Next();
  if (!event) {
    state.failed = event.error();
    state.line = {};
  } else if (!*event) {
    state.whole = true;
    state.line = {};
  } else {
    state.line_number = state.lines.line_number();
    state.line = state.lines.line();
  }
  return event;
}

Status TraceReader::CheckRest(const std::function<bool()>& stop) {
  State& state = *state_;
  if (state.failed) return Fail(*state.failed);
  if (state.whole) return {};
  state.line = {};
  Status status = state.lines.CheckRest(stop);
  if (status) {
    state.whole = true;
  } else {
    state.failed = status.error();
  }
  return status;
}

}  // namespace assay::trace
