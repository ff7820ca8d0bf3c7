#include "llm/tokenizer/bpe.h"

#include <algorithm>
#include <bit>

namespace assay::llm {
namespace {

constexpr TokenId kMergedAway = -1;

uint64_t KeyOf(TokenId left, TokenId right) {
  return ((uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right)) + 1;
}

}  // namespace

MergeTable::MergeTable(size_t pairs) : slots_(std::bit_ceil(2 * pairs + 2)) {}

size_t MergeTable::SlotOf(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  // The high half of a product with 2^64 / golden ratio spreads neighbouring ids.
  size_t slot = static_cast<size_t>((key * 0x9E3779B97F4A7C15) >> 32) & mask;
  while (slots_[slot].key != 0 && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::Add(TokenId left, TokenId right, const Merge& merge) {
  const uint64_t key = KeyOf(left, right);
  Slot& slot = slots_[SlotOf(key)];
  if (slot.key == key) return;
  slot.key = key;
  slot.merge = merge;
}

const Merge* MergeTable::Find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[SlotOf(KeyOf(left, right))];
  return slot.key == 0 ? nullptr : &slot.merge;
}

void BytePairMerger::Consider(uint32_t left) {
  const Symbol& symbol = symbols_[left];
  if (symbol.next == kNone) return;
  const TokenId right_token = symbols_[symbol.next].token;
  const Merge* merge = table_.Find(symbol.token, right_token);
  if (merge == nullptr) return;
  heap_.push_back({merge->rank, left, symbol.token, right_token, merge->token});
}

void BytePairMerger::Append(std::span<const TokenId> tokens, std::vector<TokenId>* out) {
  const auto count = static_cast<uint32_t>(tokens.size());
  symbols_.clear();
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    symbols_.push_back({tokens[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1});
  }
  for (uint32_t i = 0; i < count; ++i) Consider(i);

  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  std::ranges::make_heap(heap_, worse);
  const auto consider = [&](uint32_t left) {
    const size_t before = heap_.size();
    Consider(left);
    if (heap_.size() > before) std::ranges::push_heap(heap_, worse);
  };
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::ranges::pop_heap(heap_, worse);
    heap_.pop_back();
    Symbol& left = symbols_[best.left];
    if (left.token != best.left_token || left.next == kNone) continue;
    Symbol& right = symbols_[left.next];
    if (right.token != best.right_token) continue;
    left.token = best.merged;
    right.token = kMergedAway;
    left.next = right.next;
    if (right.next != kNone) symbols_[right.next].previous = best.left;
    if (left.previous != kNone) consider(left.previous);
    consider(best.left);
  }
  for (const Symbol& symbol : symbols_) {
    if (symbol.token != kMergedAway) out->push_back(symbol.token);
  }
}

}  // namespace assay::llm
