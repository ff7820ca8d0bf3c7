#include "cli/help.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/arguments.h"

namespace assay::cli {
namespace {

constexpr size_t kWidth = 100;

template <typename... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overload(Ts...) -> Overload<Ts...>;

// `text` broken at spaces into lines of kWidth, each but the first after `indent` spaces.
// `column` is where the first line begins.
std::string Wrap(std::string_view text, size_t column, size_t indent) {
  std::string wrapped;
  bool line_start = true;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    if (!line_start && column + 1 + word.size() > kWidth) {
      wrapped += '\n';
      wrapped.append(indent, ' ');
      column = indent;
      line_start = true;
    }
    if (!line_start) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
    line_start = false;
  }
  return wrapped;
}

// Rows of a name and a text, the texts aligned and wrapped.
class Table {
 public:
  void Add(std::string name, std::string text) {
    rows_.emplace_back(std::move(name), std::move(text));
  }
  std::string Format() const {
    constexpr size_t kWidestName = 26;
    size_t widest = 0;
    for (const auto& [name, text] : rows_) {
      if (name.size() <= kWidestName) widest = std::max(widest, name.size());
    }
    const size_t indent = 2 + widest + 2;
    std::string out;
    for (const auto& [name, text] : rows_) {
      out += "  " + name;
      if (name.size() > widest) {
        out += '\n';
        out.append(indent, ' ');
      } else {
        out.append(widest + 2 - name.size(), ' ');
      }
      out += Wrap(text, indent, indent) + '\n';
    }
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

// The upper limit of the type itself tells a reader nothing.
std::string Span(int64_t min, int64_t max) {
  return max == INT64_MAX ? fmt::format("at least {}", min) : fmt::format("{} to {}", min, max);
}

std::string Limits(const Value& value) {
  return std::visit(
      Overload{
          [](const SwitchValue&) { return std::string(); },
          [](const IntegerValue& v) { return Span(v.min, v.max); },
          [](const RealValue& v) { return fmt::format("{} to {}", v.min, v.max); },
          [](const TextValue&) { return std::string(); },
          [](const ChoiceValue& v) { return fmt::format("{}", fmt::join(v.choices, ", ")); },
          [](const IntegerListValue& v) { return fmt::format("each {}", Span(v.min, v.max)); },
          [](const TextListValue&) { return std::string("may be given again"); },
      },
      value);
}

std::string Default(const Value& value) {
  return std::visit(
      Overload{
          [](const SwitchValue&) { return std::string(); },
          [](const IntegerValue& v) { return fmt::format("{}", *v.target); },
          [](const RealValue& v) { return fmt::format("{}", *v.target); },
          [](const TextValue& v) { return *v.target; },
          [](const ChoiceValue& v) { return *v.target; },
          [](const IntegerListValue& v) { return fmt::format("{}", fmt::join(*v.target, ",")); },
          [](const TextListValue& v) { return fmt::format("{}", fmt::join(*v.target, ", ")); },
      },
      value);
}

std::string FlagName(const Flag& flag) {
  std::string name = fmt::format("{}", fmt::join(SplitNames(flag.names), ", "));
  // Long names line up whether or not they have a short one.
  if (flag.names.starts_with("--")) name = "    " + name;
  return flag.placeholder.empty() ? name : name + " " + flag.placeholder;
}

std::string FlagText(const Flag& flag) {
  std::string facts = Limits(flag.value);
  const std::string standard = flag.show_default ? Default(flag.value) : "";
  if (!standard.empty()) facts += fmt::format("{}default {}", facts.empty() ? "" : "; ", standard);
  return facts.empty() ? flag.help : fmt::format("{} ({})", flag.help, facts);
}

std::string Usage(const CommandSpec& spec) {
  std::string usage = "usage: assay " + spec.name + " [flags]";
  for (const Positional& positional : spec.positionals) {
    std::string name = positional.name;
    if (std::holds_alternative<TextListValue>(positional.value)) name += "...";
    usage += positional.required ? " " + name : " [" + name + "]";
  }
  return usage + "\n";
}

std::string Paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    out += '\n' + Wrap(text.substr(0, end), 0, 0) + '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return out;
}

}  // namespace

std::string FormatCommandHelp(const CommandSpec& spec) {
  std::string out = Usage(spec);
  out += '\n' + Wrap(spec.summary, 0, 0) + '\n' + Paragraphs(spec.description);
  if (!spec.positionals.empty()) {
    Table table;
    for (const Positional& positional : spec.positionals) {
      table.Add(positional.name, positional.help);
    }
    out += "\narguments:\n" + table.Format();
  }
  std::vector<std::string> groups;
  for (const Flag& flag : spec.flags) {
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  }
  if (std::ranges::find(groups, "flags") == groups.end()) groups.emplace_back("flags");
  for (const std::string& group : groups) {
    Table table;
    for (const Flag& flag : spec.flags) {
      if (flag.group == group) table.Add(FlagName(flag), FlagText(flag));
    }
    if (group == "flags") {
      table.Add("-q, --quiet", spec.quiet_help);
      table.Add("-h, --help", "Prints this text.");
    }
    out += "\n" + group + ":\n" + table.Format();
  }
  if (!spec.examples.empty()) {
    out += "\nexamples:\n";
    for (const Example& example : spec.examples) {
      out += "  " + example.command_line + "\n      " + Wrap(example.says, 6, 6) + "\n";
    }
  }
  Table statuses;
  for (const ExitMeaning& exit : spec.exit_meanings) {
    statuses.Add(fmt::format("{:>3}", exit.status), exit.meaning);
  }
  statuses.Add(fmt::format("{:>3}", kExitUsage), "The command line is wrong.");
  statuses.Add("130", "Stopped by Ctrl-C.");
  return out + "\nexit status:\n" + statuses.Format();
}

std::string FormatProgramHelp(std::span<const CommandEntry> commands) {
  std::string out =
      "usage: assay COMMAND [flags] [arguments]\n\n" +
      Wrap(
          "Records what a program dispatches to a device, byte for byte, and says whether two "
          "runs dispatched the same.",
          0, 0) +
      "\n\ncommands:\n";
  Table table;
  for (const CommandEntry& entry : commands) {
    table.Add(std::string(entry.name), entry.make()->Describe().summary);
  }
  table.Add("help", "Prints this text, or that of a command: assay help COMMAND.");
  out += table.Format();
  Table flags;
  flags.Add("--version", "Prints the version.");
  flags.Add("-h, --help", "Prints this text; after a command, that command's.");
  return out + "\nflags:\n" + flags.Format();
}

}  // namespace assay::cli
