#include "prove/json_file.h"

#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace assay::prove {

using nlohmann::ordered_json;

std::string JsonMembers::Text(const char* name) {
  const ordered_json* member = Find(name, "a text", &ordered_json::is_string);
  return member == nullptr ? "" : member->get<std::string>();
}

int64_t JsonMembers::Count(const char* name) {
  const ordered_json* member = Find(name, "a whole number", &ordered_json::is_number_integer);
  // Compared as JSON, so that a number past int64_t does not wrap.
  if (member != nullptr && *member >= 0 && *member <= INT64_MAX) return member->get<int64_t>();
  Refuse(fmt::format("\"{}\" is not a whole number from 0 to {}", name, INT64_MAX));
  return 0;
}

const ordered_json* JsonMembers::List(const char* name) {
  return Find(name, "a list", &ordered_json::is_array);
}

const ordered_json* JsonMembers::Object(const char* name) {
  return Find(name, "an object", &ordered_json::is_object);
}

void JsonMembers::CheckComplete() {
  const bool complete = json_.is_object() && !json_.empty() && json_.back() == true &&
                        std::prev(json_.end()).key() == "complete";
  if (!complete) Refuse("the last member is not \"complete\": true");
}

void JsonMembers::Refuse(std::string_view fault) {
  if (fault_.empty()) fault_ = fault;
}

Status JsonMembers::status() const {
  if (fault_.empty()) return {};
  return Fail(ErrorCode::kFormat, path_, fmt::format("In \"{}\" {}.", path_, fault_));
}

const ordered_json* JsonMembers::Find(const char* name, std::string_view wanted, Check check) {
  if (json_.is_object()) {
    const auto member = json_.find(name);
    if (member != json_.end() && ((*member).*check)()) return &*member;
  }
  Refuse(fmt::format("\"{}\" is missing or not {}", name, wanted));
  return nullptr;
}

Result<ordered_json> ReadJson(const std::string& path, uint64_t max_bytes) {
  ASSAY_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > max_bytes) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" ({} bytes) is larger than such a file can be ({} bytes).", path,
                            file.bytes().size(), max_bytes));
  }
  ordered_json json = ordered_json::parse(file.text(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" is not whole JSON: its recording was cut short or the file was "
                            "changed.",
                            path));
  }
  return json;
}

}  // namespace assay::prove
