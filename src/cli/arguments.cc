#include "cli/arguments.h"

#include <charconv>
#include <cmath>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"

namespace assay::cli {
namespace {

template <typename... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overload(Ts...) -> Overload<Ts...>;

tl::unexpected<Error> Usage(std::string subject, std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(subject), std::move(message));
}

// "Flag --depth" inside a sentence.
std::string Uncapitalised(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

Result<int64_t> ParseInteger(const std::string& what, const std::string& text, int64_t min,
                             int64_t max) {
  const auto value = ParseNumber<int64_t>(text);
  if (!value || *value < min || *value > max) {
    return Usage(what, fmt::format("{} (\"{}\") is not a whole number from {} to {}.", what, text,
                                   min, max));
  }
  return *value;
}

// Puts `texts`, the occurrences of one flag or argument in order, where `value` says.
class Assign {
 public:
  Assign(std::string what, const std::vector<std::string>& texts)
      : what_(std::move(what)), texts_(texts) {}

  Status operator()(const SwitchValue& value) const {
    *value.target = true;
    return {};
  }
  Status operator()(const IntegerValue& value) const {
    ASSAY_ASSIGN_OR_RETURN(*value.target, ParseInteger(what_, last(), value.min, value.max));
    return {};
  }
  Status operator()(const RealValue& value) const {
    const auto number = ParseNumber<double>(last());
    // Written so that a NaN is outside.
    if (!number || !(*number >= value.min && *number <= value.max)) {
      return Usage(what_, fmt::format("{} (\"{}\") is not a number from {} to {}.", what_, last(),
                                      value.min, value.max));
    }
    *value.target = *number;
    return {};
  }
  Status operator()(const TextValue& value) const {
    if (last().empty() && !value.may_be_empty) {
      return Usage(what_,
                   fmt::format("{} is empty (\"\"); give it a value or leave it out.", what_));
    }
    *value.target = last();
    return {};
  }
  Status operator()(const ChoiceValue& value) const {
    if (std::ranges::find(value.choices, last()) == value.choices.end()) {
      return Usage(what_, fmt::format("{} (\"{}\") is not one of {}.", what_, last(),
                                      fmt::join(value.choices, ", ")));
    }
    *value.target = last();
    return {};
  }
  Status operator()(const IntegerListValue& value) const {
    std::vector<int64_t> list;
    std::string_view rest = last();
    for (;;) {
      const size_t comma = rest.find(',');
      const bool alone = list.empty() && comma == std::string_view::npos;
      const std::string what =
          alone ? what_ : fmt::format("Item {} of {}", list.size() + 1, Uncapitalised(what_));
      ASSAY_ASSIGN_OR_RETURN(
          const int64_t item,
          ParseInteger(what, std::string(rest.substr(0, comma)), value.min, value.max));
      list.push_back(item);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    *value.target = std::move(list);
    return {};
  }
  Status operator()(const TextListValue& value) const {
    *value.target = texts_;
    return {};
  }

 private:
  const std::string& last() const { return texts_.back(); }
  std::string what_;
  const std::vector<std::string>& texts_;
};

// One CLI11 option for each flag; CLI11 only tells flags, values and positionals apart. Values are
// judged here, since its own messages and limits do not say what C1 and the error rules ask for.
class Parser {
 public:
  explicit Parser(const CommandSpec& spec) : spec_(spec), app_("", "") {
    app_.set_help_flag();
    app_.allow_extras();
    help_ = app_.add_flag("-h,--help");
    quiet_ = app_.add_flag("-q,--quiet");
    for (const Flag& flag : spec.flags) {
      const bool is_switch = std::holds_alternative<SwitchValue>(flag.value);
      CLI::Option* option =
          is_switch ? app_.add_flag(flag.names)
                    : app_.add_option(flag.names, CLI::callback_t([](const auto&) { return true; }))
                          ->take_all();
      if (is_switch) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      options_.push_back(option);
    }
    for (CLI::Option* option : {help_, quiet_}) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    app_.add_option("positionals", positionals_);
  }

  Result<CommonFlags> Parse(std::span<const std::string> words) {
    std::vector<std::string> reversed = SplitAssignments(words);
    std::ranges::reverse(reversed);
    try {
      app_.parse(reversed);
    } catch (const CLI::ParseError&) {
      // With extras allowed and values taken as text, only a last flag without its value is left.
      if (help_->count() > 0) return CommonFlags{.help = true};
      const std::string& flag = words.back();
      return Usage(flag, fmt::format("Flag {} needs a value.", flag));
    }
    CommonFlags common{.help = help_->count() > 0, .quiet = quiet_->count() > 0};
    if (common.help) return common;
    for (const std::string& unknown : app_.remaining()) {
      if (unknown != "--") return Unknown(unknown);  // CLI11 hands the separator back as well.
    }
    for (size_t i = 0; i < options_.size(); ++i) ASSAY_TRY(TakeFlag(spec_.flags[i], *options_[i]));
    ASSAY_TRY(SwitchTakesNoValue("--quiet", *quiet_));
    ASSAY_TRY(TakePositionals());
    return common;
  }

 private:
  // "--flag=value" as two words, so that an empty value is not mistaken for none.
  std::vector<std::string> SplitAssignments(std::span<const std::string> words) const {
    std::vector<std::string> split;
    bool flags_ended = false;
    for (const std::string& word : words) {
      flags_ended = flags_ended || word == "--";
      const size_t equals = word.find('=');
      if (!flags_ended && word.starts_with("--") && equals != std::string::npos &&
          TakesValue(word.substr(0, equals))) {
        split.push_back(word.substr(0, equals));
        split.push_back(word.substr(equals + 1));
      } else {
        split.push_back(word);
      }
    }
    return split;
  }

  bool TakesValue(const std::string& name) const {
    return std::ranges::any_of(spec_.flags, [&](const Flag& flag) {
      return !std::holds_alternative<SwitchValue>(flag.value) &&
             std::ranges::count(SplitNames(flag.names), name) > 0;
    });
  }

  tl::unexpected<Error> Unknown(const std::string& word) const {
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known = {"--help", "--quiet"};
    for (const Flag& flag : spec_.flags) {
      for (std::string& each : SplitNames(flag.names)) {
        if (each.starts_with("--")) known.push_back(std::move(each));
      }
    }
    return Usage(name, SuggestNearest(fmt::format("There is no flag {}", name), name, known, ""));
  }

  static Status SwitchTakesNoValue(const std::string& name, const CLI::Option& option) {
    for (const std::string& result : option.results()) {
      if (result != "true") {
        return Usage(name, fmt::format("Flag {} takes no value (\"{}\").", name, result));
      }
    }
    return {};
  }

  static Status TakeFlag(const Flag& flag, const CLI::Option& option) {
    if (option.count() == 0) return {};
    const std::string name = SplitNames(flag.names).back();
    if (std::holds_alternative<SwitchValue>(flag.value)) {
      ASSAY_TRY(SwitchTakesNoValue(name, option));
    }
    if (flag.given != nullptr) *flag.given = true;
    return std::visit(Assign("Flag " + name, option.results()), flag.value);
  }

  Status TakePositionals() {
    size_t next = 0;
    for (const Positional& positional : spec_.positionals) {
      if (next == positionals_.size()) {
        if (!positional.required) break;
        return Usage(positional.name, fmt::format("The argument {} is missing.", positional.name));
      }
      const bool takes_rest = std::holds_alternative<TextListValue>(positional.value);
      const size_t count = takes_rest ? positionals_.size() - next : 1;
      const std::vector<std::string> texts(
          positionals_.begin() + static_cast<ptrdiff_t>(next),
          positionals_.begin() + static_cast<ptrdiff_t>(next + count));
      ASSAY_TRY(std::visit(Assign("Argument " + positional.name, texts), positional.value));
      next += count;
    }
    if (next < positionals_.size()) {
      const std::string& extra = positionals_[next];
      return Usage(
          extra, fmt::format("The argument \"{}\" is one too many: {} takes {}.", extra, spec_.name,
                             spec_.positionals.empty()
                                 ? "none"
                                 : fmt::format("at most {}", spec_.positionals.size())));
    }
    return {};
  }

  const CommandSpec& spec_;
  CLI::App app_;
  CLI::Option* help_ = nullptr;
  CLI::Option* quiet_ = nullptr;
  std::vector<CLI::Option*> options_;  // One for each flag of the spec.
  std::vector<std::string> positionals_;
};

}  // namespace

std::vector<std::string> SplitNames(std::string_view names) {
  std::vector<std::string> split;
  for (;;) {
    const size_t comma = names.find(',');
    split.emplace_back(names.substr(0, comma));
    if (comma == std::string_view::npos) return split;
    names.remove_prefix(comma + 1);
  }
}

Result<CommonFlags> ParseArguments(const CommandSpec& spec, std::span<const std::string> words) {
  return Parser(spec).Parse(words);
}

}  // namespace assay::cli
