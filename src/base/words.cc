#include <array>

#include "assay/base.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 3> kAccessNames = {"r", "w", "rw"};
constexpr std::array<std::string_view, 6> kBufferKindNames = {"weight",  "kv",   "activation",
                                                              "scratch", "host", "other"};

template <typename Enum, size_t N>
std::optional<Enum> Parse(const std::array<std::string_view, N>& names, std::string_view text) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view AccessName(Access access) { return kAccessNames[static_cast<size_t>(access)]; }
std::optional<Access> ParseAccess(std::string_view text) {
  return Parse<Access>(kAccessNames, text);
}

std::string_view BufferKindName(BufferKind kind) {
  return kBufferKindNames[static_cast<size_t>(kind)];
}
std::optional<BufferKind> ParseBufferKind(std::string_view text) {
  return Parse<BufferKind>(kBufferKindNames, text);
}

}  // namespace assay
