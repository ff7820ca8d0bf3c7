#include "base/counted.h"

#include <fmt/format.h>

namespace assay {

std::string NounFor(uint64_t count, std::string_view noun) {
  if (count == 1 || noun.empty()) return std::string(noun);
  for (const std::string_view hiss : {"s", "x", "z", "ch", "sh"}) {
    if (noun.ends_with(hiss)) return fmt::format("{}es", noun);
  }
  constexpr std::string_view kVowels = "aeiou";
  const bool y = noun.size() > 1 && noun.ends_with('y') &&
                 kVowels.find(noun[noun.size() - 2]) == std::string_view::npos;
  return y ? fmt::format("{}ies", noun.substr(0, noun.size() - 1)) : fmt::format("{}s", noun);
}

std::string Counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}", count, NounFor(count, noun));
}

}  // namespace assay
