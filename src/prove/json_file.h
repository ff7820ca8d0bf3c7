// Reads the JSON files of folders that this program writes.
#ifndef ASSAY_PROVE_JSON_FILE_H_
#define ASSAY_PROVE_JSON_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "assay/base.h"

namespace assay::prove {

// Takes typed members out of a JSON object; the first fault sticks and names file and member. Both
// must outlive it.
class JsonMembers final {
 public:
  JsonMembers(const nlohmann::ordered_json& json, std::string path)
      : json_(json), path_(std::move(path)) {}

  // Empty after a fault.
  std::string Text(const char* name);
  // From 0 to INT64_MAX.
  int64_t Count(const char* name);
  // Null after a fault.
  const nlohmann::ordered_json* List(const char* name);
  const nlohmann::ordered_json* Object(const char* name);
  // The last member of the object must be "complete": true, which a writer puts there last.
  void CheckComplete();

  void Refuse(std::string_view fault);
  Status status() const;

 private:
  using Check = bool (nlohmann::ordered_json::*)() const noexcept;
  const nlohmann::ordered_json* Find(const char* name, std::string_view wanted, Check check);

  const nlohmann::ordered_json& json_;
  std::string path_;
  std::string fault_;
};

// Errors: kFormat when the file is longer than `max_bytes` or is no JSON; those of reading it.
Result<nlohmann::ordered_json> ReadJson(const std::string& path, uint64_t max_bytes);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_JSON_FILE_H_
