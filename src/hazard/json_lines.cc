#include "hazard/json_lines.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace assay::hazard {
namespace {

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void JsonObjectLines::Member(std::string_view name, const Json& value) {
  RawMember(name, Dump(value));
}

void JsonObjectLines::RawMember(std::string_view name, std::string_view json) {
  Begin(name);
  text_ += json;
}

void JsonObjectLines::BeginArray(std::string_view name) {
  Begin(name);
  text_ += '[';
  empty_array_ = true;
}

void JsonObjectLines::Element(const Json& value) {
  text_ += empty_array_ ? "\n    " : ",\n    ";
  text_ += Dump(value);
  empty_array_ = false;
}

void JsonObjectLines::EndArray() { text_ += empty_array_ ? "]" : "\n  ]"; }

std::string JsonObjectLines::Finish() && {
  if (empty_) return "{}";
  text_ += "\n}";
  return std::move(text_);
}

void JsonObjectLines::Begin(std::string_view name) {
  text_ += empty_ ? "{\n  " : ",\n  ";
  text_ += Dump(std::string(name));
  text_ += ": ";
  empty_ = false;
}

}  // namespace assay::hazard
