#include "llm/tokenizer/special_tokens.h"

#include <algorithm>
#include <utility>

namespace assay::llm {
namespace {

using Fragment = SpecialTokens::Fragment;

void SplitFragment(std::string_view text, const SpecialTokens::Entry& entry,
                   std::vector<Fragment>* out) {
  for (size_t at = text.find(entry.text); at != std::string_view::npos;
       at = text.find(entry.text)) {
    if (at > 0) out->push_back({text.substr(0, at), std::nullopt});
    out->push_back({text.substr(at, entry.text.size()), entry.id});
    text.remove_prefix(at + entry.text.size());
  }
  if (!text.empty()) out->push_back({text, std::nullopt});
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
  });
}

std::vector<Fragment> SpecialTokens::Split(std::string_view text, bool with_control) const {
  std::vector<Fragment> fragments;
  if (!text.empty()) fragments.push_back({text, std::nullopt});
  for (const Entry& entry : entries_) {
    if (entry.control && !with_control) continue;
    // Most texts hold none of them, and each is looked for in the whole text only once.
    if (text.find(entry.text) == std::string_view::npos) continue;
    std::vector<Fragment> split;
    for (const Fragment& fragment : fragments) {
      if (fragment.token) {
        split.push_back(fragment);
      } else {
        SplitFragment(fragment.text, entry, &split);
      }
    }
    fragments = std::move(split);
  }
  return fragments;
}

}  // namespace assay::llm
