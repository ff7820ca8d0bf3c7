#include "cli/show_command.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "assay/trace.h"

#include "base/counted.h"
#include "base/nearest.h"
#include "cli/event_view.h"

namespace assay::cli {
namespace {

// Command buffers counted from 1, both ends included.
struct CommandRange {
  uint64_t first = 1;
  uint64_t last = UINT64_MAX;
};

std::optional<uint64_t> ParseCount(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (text.empty() || failure != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<CommandRange> ParseCommandRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<uint64_t> first = ParseCount(text.substr(0, dash));
  const std::optional<uint64_t> last =
      dash == std::string_view::npos ? first : ParseCount(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last) return std::nullopt;
  return CommandRange{*first, *last};
}

// Which events are shown: those that pass every filter that was asked for.
class Filter {
 public:
  std::vector<std::string> kernels;  // Names; empty: not asked for.
  std::vector<std::string> buffers;  // `#n` or labels; empty: not asked for.
  std::optional<CommandRange> commands;

  bool asked() const { return !kernels.empty() || !buffers.empty() || commands; }

  // Called with every event in order, before Passes.
  void Learn(const trace::Event& event) {
    const auto* buffer = std::get_if<trace::BufferEvent>(&event);
    if (buffer == nullptr) return;
    const std::string number = fmt::format("#{}", buffer->buffer.value());
    for (const std::string& wanted : buffers) {
      const bool hit = wanted == number || (!wanted.starts_with('#') && wanted == buffer->label);
      if (hit) wanted_buffers_.insert(buffer->buffer.value());
    }
  }

  bool Passes(const EventPlace& place, const trace::Event& event, const TraceNames& names) const {
    if (commands &&
        (place.command_buffer < commands->first || place.command_buffer > commands->last)) {
      return false;
    }
    if (!kernels.empty() && !NamesKernel(event, names)) return false;
    return buffers.empty() || std::visit([this](const auto& each) { return Touches(each); }, event);
  }

 private:
  bool NamesKernel(const trace::Event& event, const TraceNames& names) const {
    std::string_view name;
    if (const auto* kernel = std::get_if<trace::KernelEvent>(&event)) {
      name = kernel->name;
    } else if (const auto* dispatch = std::get_if<trace::DispatchEvent>(&event)) {
      name = names.KernelName(dispatch->kernel);
    } else {
      return false;
    }
    return std::ranges::count(kernels, name) > 0;
  }

  bool Wanted(trace::BufferId buffer) const { return wanted_buffers_.contains(buffer.value()); }
  bool Touches(const trace::BufferEvent& event) const { return Wanted(event.buffer); }
  bool Touches(const trace::FreeEvent& event) const { return Wanted(event.buffer); }
  bool Touches(const trace::HostWriteEvent& event) const { return Wanted(event.buffer); }
  bool Touches(const trace::HostReadEvent& event) const { return Wanted(event.buffer); }
  bool Touches(const trace::DispatchEvent& event) const {
    return std::ranges::any_of(event.accesses, [this](const trace::BufferAccess& access) {
      return Wanted(access.buffer);
    });
  }
  bool Touches(const trace::MetaEvent&) const { return false; }
  bool Touches(const trace::KernelEvent&) const { return false; }
  bool Touches(const trace::BeginEvent&) const { return false; }
  bool Touches(const trace::BarrierEvent&) const { return false; }
  bool Touches(const trace::CommitEvent&) const { return false; }
  bool Touches(const trace::WaitEvent&) const { return false; }
  bool Touches(const trace::RefusedEvent&) const { return false; }

  std::set<uint64_t> wanted_buffers_;
};

class ShowCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "show",
        .summary = "Shows the events of a trace as a table.",
        .description =
            "Events are printed as they are read. Only a status of 0 says that the trace was whole "
            "to its end. With several filters an event must pass all of them.",
        .positionals = {{.name = "TRACE",
                         .value = TextValue{&path_},
                         .help = "A trace, plain or .zst."}},
        .flags = {{.names = "--kernel",
                   .value = TextListValue{&filter_.kernels},
                   .placeholder = "NAME",
                   .help = "Only this kernel and its dispatches."},
                  {.names = "--buffer",
                   .value = TextListValue{&filter_.buffers},
                   .placeholder = "#N|LABEL",
                   .help = "Only what makes, frees, reads, writes or binds this buffer; a label "
                           "means every buffer that has it."},
                  {.names = "--commands",
                   .value = TextValue{&commands_},
                   .placeholder = "N[-M]",
                   .help = "Only command buffer N, or N to M, counted from 1.",
                   .given = &commands_given_},
                  {.names = "--format",
                   .value = ChoiceValue{&format_, {"text", "jsonl"}},
                   .placeholder = "WORD",
                   .help = "A table for people, or one JSON object a line."},
                  {.names = "--summary",
                   .value = SwitchValue{&summary_},
                   .help = "Counts by kernel and by kind of event instead of the events."}},
        .examples = {{"assay show run.trace --kernel argmax", "One kernel's dispatches."},
                     {"assay show run.trace --buffer '#12' --commands 3",
                      "What command buffer 3 does with buffer #12."},
                     {"assay show run.trace --summary", "How often each kernel runs."}},
        .exit_meanings = {{kExitOk, "The trace was whole and was shown."},
                          {kExitDifferent, "No event passes the filters."},
                          {kExitFailed, "It could not be read or is not whole."}},
    };
  }

  Status CheckArguments() override {
    if (!commands_given_) return {};
    filter_.commands = ParseCommandRange(commands_);
    if (filter_.commands) return {};
    return Fail(
        ErrorCode::kInvalidArgument, "--commands",
        fmt::format("Flag --commands (\"{}\") is not N or N-M with 1 <= N <= M.", commands_));
  }

  Result<int> Run(Context& context) override {
    ASSAY_ASSIGN_OR_RETURN(
        const auto reader,
        trace::TraceReader::Open(path_, {.stop = [&context] { return context.cancelled(); }}));
    const bool json = format_ == "jsonl";
    if (!json && !summary_) context.Print(EventTableHead());
    EventSummary summary;
    uint64_t shown = 0;
    for (EventPlace place;;) {
      ASSAY_ASSIGN_OR_RETURN(const auto event,
                             SayStopped(reader->Next(), "The trace was not shown to its end."));
      if (!event) break;
      if (context.print_failed()) return kExitFailed;
      Locate(*event, reader->line_number(), &place);
      names_.Learn(*event);
      filter_.Learn(*event);
      NoteNames(*event);
      if (!filter_.Passes(place, *event, names_)) continue;
      ++shown;
      if (summary_) {
        summary.Add(*event, names_);
      } else {
        context.Print(json ? FormatEventJson(place, *event, names_)
                           : FormatEventRow(place, *event, names_));
      }
    }
    if (summary_) context.Print(json ? summary.FormatJson() : summary.FormatText());
    std::vector<std::string> notes = Notes(*reader, shown);
    if (shown == 0 && filter_.asked() && notes.empty()) {
      notes.emplace_back("No event passes the filters.");
    }
    for (const std::string& note : notes) context.Note(note);
    if (shown > 0 || !filter_.asked()) return kExitOk;
    return kExitDifferent;
  }

 private:
  void Locate(const trace::Event& event, uint64_t line, EventPlace* place) {
    place->line = line;
    if (std::holds_alternative<trace::BeginEvent>(event)) {
      ++begun_;
      dispatches_ = 0;
      inside_ = true;
    }
    place->command_buffer = inside_ ? begun_ : 0;
    place->dispatch = std::holds_alternative<trace::DispatchEvent>(event) ? ++dispatches_ : 0;
    if (std::holds_alternative<trace::CommitEvent>(event)) inside_ = false;
  }

  // Names that a mistyped filter may have meant; more would cost memory for little.
  void NoteNames(const trace::Event& event) {
    constexpr size_t kMost = 10000;
    if (const auto* kernel = std::get_if<trace::KernelEvent>(&event)) {
      if (kernel_names_.size() < kMost) kernel_names_.insert(kernel->name);
    } else if (const auto* buffer = std::get_if<trace::BufferEvent>(&event)) {
      if (labels_.size() < kMost && !buffer->label.empty()) labels_.insert(buffer->label);
    }
  }

  std::vector<std::string> Notes(const trace::TraceReader& reader, uint64_t shown) const {
    std::vector<std::string> notes;
    if (!reader.refusals().empty()) {
      notes.emplace_back(
          "The trace holds buffers or events without a deterministic place; it proves nothing.");
    }
    if (shown > 0) return notes;
    const auto hint = [&](std::string_view what, const std::string& wanted,
                          const std::set<std::string>& known) {
      if (known.contains(wanted)) return;
      const std::vector<std::string> names(known.begin(), known.end());
      notes.push_back(SuggestNearest(fmt::format("The trace has no {} \"{}\"", what, wanted),
                                     wanted, names, "\"\""));
    };
    for (const std::string& wanted : filter_.kernels) hint("kernel", wanted, kernel_names_);
    for (const std::string& wanted : filter_.buffers) {
      if (!wanted.starts_with('#')) hint("buffer labelled", wanted, labels_);
    }
    if (filter_.commands && filter_.commands->first > begun_) {
      notes.push_back(fmt::format("The trace has {}.", Counted(begun_, "command buffer")));
    }
    if (notes.empty()) notes.emplace_back("No event passes the filters.");
    return notes;
  }

  std::string path_;
  Filter filter_;
  std::string commands_;
  bool commands_given_ = false;
  std::string format_ = "text";
  bool summary_ = false;

  TraceNames names_;
  std::set<std::string> kernel_names_, labels_;
  uint64_t begun_ = 0;
  uint64_t dispatches_ = 0;
  bool inside_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeShowCommand() { return std::make_unique<ShowCommand>(); }

}  // namespace assay::cli
