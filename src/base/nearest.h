// The word that a mistyped one was probably meant to be.
#ifndef ASSAY_BASE_NEAREST_H_
#define ASSAY_BASE_NEAREST_H_

#include <span>
#include <string>
#include <string_view>

namespace assay {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `word`; empty when none is near enough to be meant.
std::string_view Nearest(std::string_view word, std::span<const std::string> candidates);

// `sentence`, without its full stop, about a word that is none of `candidates`, brought to its end:
// `...; did you mean "x"?`, or else `...; OTHERWISE.`, or `....` when that is empty. `quotes` is
// what stands around the candidate: nothing or two characters.
std::string SuggestNearest(std::string sentence, std::string_view word,
                           std::span<const std::string> candidates, std::string_view quotes,
                           std::string_view otherwise = {});

}  // namespace assay

#endif  // ASSAY_BASE_NEAREST_H_
