// PatternOracle: PCRE2 as an independent judge of the pre-tokenizer.
#ifndef ASSAY_TESTS_SUPPORT_PATTERN_ORACLE_H_
#define ASSAY_TESTS_SUPPORT_PATTERN_ORACLE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace assay::testing {

// Matches a pattern in UTF and Unicode-property mode. One thread.
class PatternOracle final {
 public:
  // A pattern that the library refuses matches nothing.
  explicit PatternOracle(const std::string& pattern);
  ~PatternOracle();
  PatternOracle(const PatternOracle&) = delete;
  PatternOracle& operator=(const PatternOracle&) = delete;

  // The length of the match at the start of `text` from `offset` on; nothing where none is.
  std::optional<size_t> MatchAt(std::string_view text, size_t offset) const;

  // Of the library, as "14.0.0".
  static std::string UnicodeVersion();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_PATTERN_ORACLE_H_
