#include "support/pattern_oracle.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace assay::testing {

struct PatternOracle::State {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;

  ~State() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

PatternOracle::PatternOracle(const std::string& pattern) : state_(std::make_unique<State>()) {
  int error = 0;
  PCRE2_SIZE at = 0;
  state_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                               PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &at, nullptr);
  if (state_->code == nullptr) return;
  pcre2_jit_compile(state_->code, PCRE2_JIT_COMPLETE);
  state_->match = pcre2_match_data_create_from_pattern(state_->code, nullptr);
}

PatternOracle::~PatternOracle() = default;

std::optional<size_t> PatternOracle::MatchAt(std::string_view text, size_t offset) const {
  if (state_->code == nullptr) return std::nullopt;
  const int count = pcre2_match(state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), offset, 0, state_->match, nullptr);
  if (count < 0) return std::nullopt;
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state_->match);
  return range[1] - range[0];
}

std::string PatternOracle::UnicodeVersion() {
  std::string version(24, '\0');
  const int length = pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version.data());
  version.resize(static_cast<size_t>(length) - 1);
  return version;
}

}  // namespace assay::testing
