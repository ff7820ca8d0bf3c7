// The names in braces that a command of the configuration may hold.
#ifndef ASSAY_PROVE_PLACEHOLDERS_H_
#define ASSAY_PROVE_PLACEHOLDERS_H_

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace assay::prove {

inline constexpr std::array<std::string_view, 2> kBuildPlaceholders = {"build", "source"};
inline constexpr std::array<std::string_view, 6> kRecordPlaceholders = {"build", "depth", "depths",
                                                                        "model", "out",   "source"};

// True for what can stand in braces: lower-case letters.
bool IsPlaceholder(std::string_view name);

// A sentence about the first name in braces that is none of `known`; empty when there is none. What
// stands behind a '$' is the shell's, and so are braces around anything but lower-case letters.
std::string CheckPlaceholders(std::string_view command, std::span<const std::string_view> known);

// True when `command` holds `{name}`.
bool HasPlaceholder(std::string_view command, std::string_view name);

// `command` with each name's value, quoted for the shell, in the place of its braces.
std::string FillPlaceholders(std::string_view command,
                             const std::map<std::string, std::string, std::less<>>& values);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_PLACEHOLDERS_H_
