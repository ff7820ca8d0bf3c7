#include "prove/placeholders.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "prove/process.h"

namespace assay::prove {
namespace {

// The name in braces that begins at `at`, if one does.
std::optional<std::string_view> NameAt(std::string_view command, size_t at) {
  if (command[at] != '{' || (at > 0 && command[at - 1] == '$')) return std::nullopt;
  const size_t end = command.find('}', at);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view name = command.substr(at + 1, end - at - 1);
  return IsPlaceholder(name) ? std::optional(name) : std::nullopt;
}

}  // namespace

bool IsPlaceholder(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string CheckPlaceholders(std::string_view command, std::span<const std::string_view> known) {
  for (size_t at = 0; at < command.size(); ++at) {
    const auto name = NameAt(command, at);
    if (!name || std::ranges::count(known, *name) > 0) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    return SuggestNearest(fmt::format("{{{}}} stands for nothing here", *name), *name, names, "{}",
                          fmt::format("what does is {{{}}}", fmt::join(names, "}, {")));
  }
  return {};
}

bool HasPlaceholder(std::string_view command, std::string_view name) {
  for (size_t at = 0; at < command.size(); ++at) {
    if (NameAt(command, at) == name) return true;
  }
  return false;
}

std::string FillPlaceholders(std::string_view command,
                             const std::map<std::string, std::string, std::less<>>& values) {
  std::string filled;
  for (size_t at = 0; at < command.size();) {
    const auto name = NameAt(command, at);
    const auto value = name ? values.find(*name) : values.end();
    if (value == values.end()) {
      filled += command[at++];
    } else {
      filled += ShellQuote(value->second);
      at += name->size() + 2;
    }
  }
  return filled;
}

}  // namespace assay::prove
