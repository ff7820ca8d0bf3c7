// JSON text built a member at a time, so that a million findings need no tree in memory.
#ifndef ASSAY_HAZARD_JSON_LINES_H_
#define ASSAY_HAZARD_JSON_LINES_H_

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace assay::hazard {

using Json = nlohmann::ordered_json;

// One object, a member a line; arrays have an element a line. Bytes that are not UTF-8 become
// U+FFFD.
class JsonObjectLines final {
 public:
  void Member(std::string_view name, const Json& value);
  // Text that is JSON already.
  void RawMember(std::string_view name, std::string_view json);

  void BeginArray(std::string_view name);
  void Element(const Json& value);
  void EndArray();

  // Ends the object; there is no newline behind it.
  std::string Finish() &&;

 private:
  void Begin(std::string_view name);

  std::string text_;
  bool empty_ = true;
  bool empty_array_ = true;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_JSON_LINES_H_
