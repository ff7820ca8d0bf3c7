#include "base/nearest.h"

#include <algorithm>
#include <vector>

namespace assay {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Optimal string alignment over three rows of the table.
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string_view Nearest(std::string_view word, std::span<const std::string> candidates) {
  // A word much longer than any candidate is no typing error, and would cost time to measure.
  constexpr size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return {};
  std::string_view nearest;
  size_t least = SIZE_MAX;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const size_t distance = begins ? 1 : EditDistance(word, candidate);
    const size_t allowed = std::max<size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (distance <= allowed && distance < least) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

std::string SuggestNearest(std::string sentence, std::string_view word,
                           std::span<const std::string> candidates, std::string_view quotes,
                           std::string_view otherwise) {
  const std::string_view nearest = Nearest(word, candidates);
  if (nearest.empty()) {
    if (!otherwise.empty()) sentence.append("; ").append(otherwise);
    return sentence + '.';
  }
  sentence.append("; did you mean ").append(quotes.substr(0, 1)).append(nearest);
  if (!quotes.empty()) sentence += quotes[1];
  return sentence + '?';
}

}  // namespace assay
