// Byte pair encoding: merges of neighbouring tokens by rank.
//
// Sennrich, Haddow, Birch: "Neural Machine Translation of Rare Words with Subword Units" (2016),
// section 3.2; at each step the pair of the lowest rank is merged, the leftmost where ranks tie.
#ifndef ASSAY_LLM_TOKENIZER_BPE_H_
#define ASSAY_LLM_TOKENIZER_BPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assay/llm.h"

namespace assay::llm {

struct Merge {
  uint32_t rank = 0;
  TokenId token = 0;
};

// Pairs of tokens to what they merge into. Immutable once filled; then thread-safe.
class MergeTable final {
 public:
  // For up to `pairs` pairs.
  explicit MergeTable(size_t pairs);
  // A pair that is there already keeps its first merge.
  void Add(TokenId left, TokenId right, const Merge& merge);
  // Null where the pair does not merge.
  const Merge* Find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t key = 0;  // Pair + 1; 0: free.
    Merge merge;
  };
  size_t SlotOf(uint64_t key) const;

  std::vector<Slot> slots_;  // A power of two of them, at least half free.
};

// Merges one piece at a time; keeps its work space between calls. One thread. Borrows the table.
class BytePairMerger final {
 public:
  explicit BytePairMerger(const MergeTable* table) : table_(*table) {}

  // Appends the tokens that `tokens` (one a byte) merge into. Time O(n log n) for n tokens.
  void Append(std::span<const TokenId> tokens, std::vector<TokenId>* out);

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  struct Symbol {
    TokenId token;
    uint32_t previous;
    uint32_t next;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t left;  // Index of the left symbol.
    // The tokens at the time: a symbol that has merged since no longer matches.
    TokenId left_token;
    TokenId right_token;
    TokenId merged;
  };

  void Consider(uint32_t left);

  const MergeTable& table_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;  // The best candidate first.
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_BPE_H_
