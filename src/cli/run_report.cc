#include "cli/run_report.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"

namespace assay::cli {
namespace {

using nlohmann::ordered_json;

std::string_view StopName(Stop stop) {
  switch (stop) {
    case Stop::kLength:
      return "length";
    case Stop::kEndOfText:
      return "end-of-text";
    case Stop::kContext:
      return "context";
    case Stop::kCancelled:
      return "cancelled";
  }
  return "";
}

// None where nothing was done, or in no time that the clock can tell.
std::optional<double> Rate(size_t count, std::optional<double> seconds) {
  if (count == 0 || seconds.value_or(0) <= 0) return std::nullopt;
  return static_cast<double>(count) / *seconds;
}

ordered_json OrNull(std::optional<double> value) {
  return value ? ordered_json(*value) : ordered_json();
}

std::string CountedWithRate(size_t count, std::optional<double> rate) {
  return Counted(count, "token") + (rate ? fmt::format(", {:.1f} tok/s", *rate) : "");
}

}  // namespace

std::string FormatRunJson(const Generation& generation, const std::string& text,
                          const Status& whole) {
  const Timings& timings = generation.timings;
  ordered_json json;
  json["prompt_ids"] = generation.prompt;
  json["ids"] = generation.ids;
  json["text"] = text;
  json["stop"] = StopName(generation.stop);
  json["logits_digest"] =
      generation.logits_seen ? ordered_json(generation.logits.HexDigest()) : ordered_json();
  if (!whole) json["error"] = whole.error().ToString();
  json["load_s"] = timings.load_s;
  json["prompt_s"] = OrNull(timings.prompt_s);
  json["decode_s"] = OrNull(timings.decode_s);
  json["prompt_tokens_per_s"] = OrNull(Rate(generation.prompt.size(), timings.prompt_s));
  json["decode_tokens_per_s"] = OrNull(Rate(generation.decode_passes, timings.decode_s));
  // A text may end inside a character; JSON holds whole ones only.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string FormatRunNote(const Generation& generation) {
  const Timings& timings = generation.timings;
  return fmt::format(
      "loaded in {:.3f} s; prompt {}; generated {}", timings.load_s,
      CountedWithRate(generation.prompt.size(), Rate(generation.prompt.size(), timings.prompt_s)),
      CountedWithRate(generation.ids.size(), Rate(generation.decode_passes, timings.decode_s)));
}

}  // namespace assay::cli
