#include "prove/toml_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "prove/placeholders.h"

namespace assay::prove {
namespace {

// What the parser says, as the end of a sentence about the file: without the name of the part that
// it was in, which means something to its own programmers alone.
std::string Said(std::string_view description) {
  constexpr std::string_view kBegin = "Error while parsing ";
  if (description.starts_with(kBegin)) {
    description.remove_prefix(kBegin.size());
    const size_t colon = description.find(": ");
    if (colon != std::string_view::npos) {
      return fmt::format("{} (in a {})", description.substr(colon + 2),
                         description.substr(0, colon));
    }
  }
  return std::string(description);
}

// Where a text has a byte that it may not have: a control character, or one beyond ASCII outside of
// lines that are a comment, which the parser takes for what cannot happen (in many places, and what
// is a string for it is known only to it).
struct BadByte {
  toml::source_position at;
  unsigned char byte = 0;
};
std::optional<BadByte> FindBadByte(std::string_view text) {
  BadByte found{.at = {.line = 1, .column = 0}};
  bool blank = true, comment = false;  // So far, of this line.
  for (const char c : text.substr(text.starts_with("\xEF\xBB\xBF") ? 3 : 0)) {
    found.byte = static_cast<unsigned char>(c);
    ++found.at.column;
    if (c == '\n') {
      ++found.at.line;
      found.at.column = 0;
      blank = true;
      comment = false;
      continue;
    }
    if ((found.byte < ' ' && c != '\t' && c != '\r') || found.byte == 0x7F) return found;
    if (found.byte >= 0x80 && !comment) return found;
    if (blank && c == '#') comment = true;
    if (c != ' ' && c != '\t') blank = false;
  }
  return std::nullopt;
}

}  // namespace

std::optional<toml::table> TomlReader::Parse(std::string_view text) {
  if (const std::optional<BadByte> bad = FindBadByte(text)) {
    RefuseAt(bad->at,
             bad->byte >= 0x80
                 ? "a character beyond ASCII may stand in a line of its own behind '#' alone; in a "
                   "text write it as \\uXXXX."
                 : fmt::format("the byte 0x{:02x} may not stand in TOML.", bad->byte));
    return std::nullopt;
  }
  toml::parse_result parsed = toml::parse(text, path_);
  if (parsed) return std::move(parsed).table();
  std::string said = Said(parsed.error().description());
  while (said.ends_with('.')) said.pop_back();
  RefuseAt(parsed.error().source().begin, fmt::format("this is no TOML: {}.", said));
  return std::nullopt;
}

const toml::table* TomlReader::Table(const toml::table& parent, std::string_view name) {
  const toml::node* node = parent.get(name);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) Refuse(*node, fmt::format("\"{}\" must be a table: [{}].", name, name));
  return node->as_table();
}

void TomlReader::CheckKeys(const toml::table& table, std::string_view where,
                           std::span<const std::string> known) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (std::ranges::count(known, name) > 0) continue;
    RefuseAt(key.source().begin,
             SuggestNearest(fmt::format("There is no key \"{}\" in {}", name, where), name, known,
                            "\"\"", fmt::format("the keys are {}", fmt::join(known, ", "))));
  }
}

void TomlReader::Text(const toml::table& table, std::string_view name, std::string* out) {
  const toml::node* node = table.get(name);
  if (node == nullptr) return;
  if (const auto* value = node->as_string()) {
    *out = value->get();
  } else {
    Refuse(*node, fmt::format("\"{}\" must be a text in quotes.", name));
  }
}

void TomlReader::Number(const toml::table& table, std::string_view name, int64_t min, int64_t max,
                        int64_t* out) {
  if (const toml::node* node = table.get(name)) CheckNumber(*node, name, min, max, out);
}

void TomlReader::Numbers(const toml::table& table, std::string_view name, int64_t max,
                         std::vector<int64_t>* out) {
  const toml::node* node = table.get(name);
  if (node == nullptr) return;
  out->clear();
  for (const toml::node* item : Items(*node, name, "whole numbers")) {
    CheckNumber(*item, name, 0, max, &out->emplace_back());
    if (out->size() > 1 && out->back() <= out->end()[-2]) {
      Refuse(*item, fmt::format("\"{}\" must rise.", name));
    }
  }
}

void TomlReader::Texts(const toml::table& table, std::string_view name,
                       const std::function<std::string(const std::string&)>& check,
                       std::vector<std::string>* out) {
  const toml::node* node = table.get(name);
  if (node == nullptr) return;
  out->clear();
  for (const toml::node* item : Items(*node, name, "texts in quotes")) {
    const auto* value = item->as_string();
    if (value == nullptr) {
      Refuse(*item, fmt::format("\"{}\" must be a list of texts in quotes.", name));
      return;
    }
    const std::string fault = check(value->get());
    if (!fault.empty()) Refuse(*item, fault);
    out->push_back(value->get());
  }
}

void TomlReader::Variables(const toml::table& table, std::string_view skip,
                           std::map<std::string, std::string>* out) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (name == skip) continue;
    if (!IsPlaceholder(name)) {
      RefuseAt(key.source().begin,
               fmt::format("\"{}\" cannot stand in braces: only lower-case letters can.", name));
    } else if (std::ranges::count(kRecordPlaceholders, name) > 0) {
      RefuseAt(key.source().begin,
               fmt::format("{{{}}} stands for something already; take another name.", name));
    } else if (const auto* text = node.as_string()) {
      (*out)[name] = text->get();
    } else if (const auto* number = node.as_integer()) {
      (*out)[name] = fmt::format("{}", number->get());
    } else {
      Refuse(node, fmt::format("\"{}\" must be a text in quotes or a whole number.", name));
    }
  }
}

void TomlReader::Refuse(const toml::node& node, std::string_view message) {
  RefuseAt(node.source().begin, message);
}

void TomlReader::RefuseAt(const toml::source_position& at, std::string_view message) {
  if (fault_) return;
  fault_ = Error(ErrorCode::kFormat, path_,
                 fmt::format("\"{}\" line {}, column {}: {}", path_, at.line, at.column, message));
}

void TomlReader::RefuseFile(std::string_view message) {
  if (!fault_) {
    fault_ = Error(ErrorCode::kFormat, path_, fmt::format("\"{}\": {}", path_, message));
  }
}

Status TomlReader::status() const {
  if (fault_) return Fail(*fault_);
  return {};
}

std::vector<const toml::node*> TomlReader::Items(const toml::node& node, std::string_view name,
                                                 std::string_view of) {
  std::vector<const toml::node*> items;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& item : *array) items.push_back(&item);
  } else {
    Refuse(node, fmt::format("\"{}\" must be a list of {}.", name, of));
  }
  return items;
}

void TomlReader::CheckNumber(const toml::node& node, std::string_view name, int64_t min,
                             int64_t max, int64_t* out) {
  const auto* value = node.as_integer();
  if (value != nullptr && value->get() >= min && value->get() <= max) {
    *out = value->get();
    return;
  }
  Refuse(node, fmt::format("\"{}\" must hold whole numbers from {} to {}.", name, min, max));
}

std::string CheckWord(const std::string& word, std::string_view name,
                      std::span<const std::string> known) {
  if (std::ranges::count(known, word) > 0) return {};
  return SuggestNearest(fmt::format("\"{}\" is no value of \"{}\"", word, name), word, known,
                        "\"\"", fmt::format("the values are {}", fmt::join(known, ", ")));
}

}  // namespace assay::prove
