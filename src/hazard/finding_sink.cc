#include "hazard/finding_sink.h"

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "hazard/rules.h"

namespace assay::hazard {
namespace {

// A name ends in a zero byte, so that "ab" + "c" is not "a" + "bc".
void AppendName(std::string* key, std::string_view name) {
  key->append(name);
  key->push_back('\0');
}

// What a buffer is called in fingerprints: its number would move when another is made before it.
void AppendBuffer(std::string* key, const BufferInfo* buffer) {
  if (buffer == nullptr) {
    AppendName(key, "*");
  } else if (!buffer->label.empty()) {
    AppendName(key, "label");
    AppendName(key, buffer->label);
  } else {
    AppendName(key, BufferKindName(buffer->kind));
    AppendName(key, std::to_string(buffer->size_bytes));
  }
}

uint64_t IdentityOf(std::string_view key) {
  constexpr size_t kDigits = 16;
  const std::string digest = HexDigest(key);
  uint64_t identity = 0;
  std::from_chars(digest.data(), digest.data() + kDigits, identity, 16);
  return identity;
}

}  // namespace

FindingSink::FindingSink(const Options& options, Report* report)
    : max_listed_(options.max_listed), report_(report), suppressions_(options.suppressions) {
  std::sort(suppressions_.begin(), suppressions_.end());
  suppressions_.erase(std::unique(suppressions_.begin(), suppressions_.end()), suppressions_.end());
  suppression_used_.resize(suppressions_.size());
}

bool FindingSink::Add(Finding finding, const BufferInfo* buffer) {
  key_.clear();
  AppendName(&key_, RuleName(finding.rule));
  AppendName(&key_, finding.first.kernel);
  AppendName(&key_, finding.second.kernel);
  AppendBuffer(&key_, buffer);
  finding.fingerprint = NextFingerprint(IdentityOf(key_));
  finding.suppressed = IsSuppressed(finding.fingerprint);
  if (buffer != nullptr) {
    finding.buffer = buffer->id;
    finding.label = buffer->label;
    finding.buffer_bytes = buffer->size_bytes;
  }

  const Category category = CategoryOf(finding.rule);
  if (finding.suppressed) {
    ++report_->suppressed;
  } else if (category == Category::kNote) {
    ++report_->note_count;
  } else if (finding.certain) {
    ++report_->certain[static_cast<size_t>(category)];
  } else {
    ++report_->possible;
  }
  std::vector<Finding>& list = category == Category::kNote ? report_->notes : report_->findings;
  if (list.size() < max_listed_) list.push_back(finding);
  return !finding.suppressed;
}

void FindingSink::AddRedundantBarrier(RedundantBarrier barrier, std::string_view kernel_before,
                                      std::string_view kernel_after) {
  key_.clear();
  AppendName(&key_, RuleName(Rule::kRedundantBarrier));
  AppendName(&key_, kernel_before);
  AppendName(&key_, kernel_after);
  barrier.fingerprint = NextFingerprint(IdentityOf(key_));
  barrier.suppressed = IsSuppressed(barrier.fingerprint);
  ++report_->barriers.redundant;
  if (report_->redundant_barriers.size() < max_listed_) {
    report_->redundant_barriers.push_back(barrier);
  }
}

void FindingSink::AddSuggestion(const Suggestion& suggestion) {
  ++report_->suggestion_count;
  if (report_->suggestions.size() < max_listed_) report_->suggestions.push_back(suggestion);
}

void FindingSink::Finish() {
  for (size_t i = 0; i < suppressions_.size(); ++i) {
    if (!suppression_used_[i]) report_->unused_suppressions.push_back(suppressions_[i]);
  }
}

Fingerprint FindingSink::NextFingerprint(uint64_t identity) {
  return {.identity = identity, .occurrence = ++occurrences_[identity]};
}

bool FindingSink::IsSuppressed(const Fingerprint& fingerprint) {
  bool suppressed = false;
  for (const Fingerprint& wanted : {Fingerprint{fingerprint.identity, 0}, fingerprint}) {
    const auto found = std::lower_bound(suppressions_.begin(), suppressions_.end(), wanted);
    if (found == suppressions_.end() || *found != wanted) continue;
    suppression_used_[static_cast<size_t>(found - suppressions_.begin())] = true;
    suppressed = true;
  }
  return suppressed;
}

}  // namespace assay::hazard
