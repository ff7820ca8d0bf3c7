// SpecialTokens: finds tokens that are whole texts (<|im_end|>) before the rest is split.
#ifndef ASSAY_LLM_TOKENIZER_SPECIAL_TOKENS_H_
#define ASSAY_LLM_TOKENIZER_SPECIAL_TOKENS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/llm.h"

namespace assay::llm {

// Immutable, thread-safe.
class SpecialTokens final {
 public:
  struct Entry {
    std::string text;
    TokenId id;
    bool control;  // Only parsed on request; the others (user defined) always.
  };
  // Either a token or a stretch of ordinary text.
  struct Fragment {
    std::string_view text;
    std::optional<TokenId> token;
  };

  explicit SpecialTokens(std::vector<Entry> entries);

  // Longer texts are looked for first, in the whole input, and each from left to right: what a
  // longer one has taken is no longer there for a shorter one.
  std::vector<Fragment> Split(std::string_view text, bool with_control) const;

 private:
  std::vector<Entry> entries_;  // By falling length, then by id.
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_SPECIAL_TOKENS_H_
