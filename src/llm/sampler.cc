// Sampler: the same choices for the same seed and logits on every machine.
//
// Random numbers: xoshiro256++ 1.0, its state filled by splitmix64 (Blackman and Vigna,
// "Scrambled Linear Pseudorandom Number Generators", 2021). Choices use double arithmetic that
// IEEE 754 rounds in one way only, and an exponential of their own: a C library's may differ in
// the last bit. The build forbids fused multiply-adds in this file.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "assay/llm.h"

#include "llm/exponential.h"

namespace assay::llm {
namespace {

uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t NextRandom(uint64_t (&s)[4]) {
  const uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = std::rotl(s[3], 45);
  return result;
}

struct Candidate {
  double logit;
  TokenId id;
};

// The larger logit first, the lower id where they tie: a strict order, so that every way of
// sorting gives the same.
bool Better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The candidates of one choice, of which each filter keeps the best few.
class Choice final {
 public:
  explicit Choice(std::span<const float> logits) {
    candidates_.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      if (std::isnan(logits[i])) continue;
      candidates_.push_back({logits[i], static_cast<TokenId>(i)});
    }
    if (!candidates_.empty()) best_ = *std::ranges::min_element(candidates_, Better);
  }

  // Id 0 where there is no candidate.
  const Candidate& best() const { return best_; }

  void KeepTopK(size_t k) {
    if (k == 0 || k >= candidates_.size()) return;
    std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<ptrdiff_t>(k), Better);
    candidates_.resize(k);
  }

  // The fewest best candidates whose probabilities add up to `p` or more; at least one.
  void KeepTopP(double p) {
    if (p >= 1.0) return;
    double total = 0.0;
    // In the order of the ids, so that the sum's last bits do not follow the order of a partition.
    SortById();
    for (const Candidate& candidate : candidates_) total += Weight(candidate, 1.0);
    const double wanted = p * total;
    double sum = 0.0;
    size_t kept = 0;
    while (kept < candidates_.size()) {
      if (kept == sorted_) SortMore();
      sum += Weight(candidates_[kept++], 1.0);
      if (sum >= wanted) break;
    }
    candidates_.resize(kept);
  }

  // Those at least `p` times as probable as the best.
  void KeepMinP(double p) {
    if (p <= 0.0) return;
    std::erase_if(candidates_, [&](const Candidate& c) { return Weight(c, 1.0) < p; });
  }

  // The candidate at `unit` (in [0, 1)) of the way through the weights, in the order of the ids.
  TokenId Draw(double unit, double temperature) {
    SortById();
    std::vector<double> sums;
    sums.reserve(candidates_.size());
    double total = 0.0;
    for (const Candidate& candidate : candidates_) {
      total += Weight(candidate, temperature);
      sums.push_back(total);
    }
    // unit is below 1, so that the product is at most the total; rounding may make them equal.
    const auto after = std::ranges::upper_bound(sums, unit * total);
    const auto place = static_cast<size_t>(after - sums.begin());
    return place < candidates_.size() ? candidates_[place].id : best_.id;
  }

 private:
  void SortById() {
    if (!std::ranges::is_sorted(candidates_, {}, &Candidate::id)) {
      std::ranges::sort(candidates_, {}, &Candidate::id);
    }
  }

  // Sorts some more of the best candidates to the front: a few are nearly always enough.
  void SortMore() {
    const size_t end = std::min(candidates_.size(), std::max<size_t>(64, 8 * sorted_));
    const auto at = [&](size_t i) { return candidates_.begin() + static_cast<ptrdiff_t>(i); };
    if (end < candidates_.size()) {
      std::ranges::nth_element(at(sorted_), at(end), candidates_.end(), Better);
    }
    std::ranges::sort(at(sorted_), at(end), Better);
    sorted_ = end;
  }

  // e^((logit - best logit) / temperature): 1 for the best.
  double Weight(const Candidate& candidate, double temperature) const {
    // Also for infinities, whose difference is no number.
    if (candidate.logit == best_.logit) return 1.0;
    return ExpOfNegative((candidate.logit - best_.logit) / temperature);
  }

  std::vector<Candidate> candidates_;
  Candidate best_{};
  size_t sorted_ = 0;  // So many at the front are the best ones, in order.
};

tl::unexpected<Error> OutOfRange(std::string_view name, float value, std::string_view limits) {
  return Fail(ErrorCode::kInvalidArgument, std::string(name),
              fmt::format("The {} is {}; it must be {}.", name, value, limits));
}

}  // namespace

Result<Sampler> Sampler::Create(const SamplerOptions& options) {
  // Written so that a NaN fails each.
  if (!(options.temperature >= 0.0F && std::isfinite(options.temperature))) {
    return OutOfRange("temperature", options.temperature, "0 (greedy) or a positive number");
  }
  if (!(options.top_p > 0.0F && options.top_p <= 1.0F)) {
    return OutOfRange("top-p", options.top_p, "above 0 and at most 1 (off)");
  }
  if (!(options.min_p >= 0.0F && options.min_p <= 1.0F)) {
    return OutOfRange("min-p", options.min_p, "0 (off) to 1");
  }
  return Sampler(options);
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  uint64_t seed = options.seed;
  for (uint64_t& word : state_) word = SplitMix64(&seed);
}

TokenId Sampler::Sample(std::span<const float> logits) {
  Choice choice(logits);
  if (options_.temperature == 0.0F) return choice.best().id;
  // Drawn even where nothing is left to choose: the n-th choice takes the n-th number.
  const double unit = static_cast<double>(NextRandom(state_) >> 11) * 0x1p-53;
  choice.KeepTopK(options_.top_k);
  choice.KeepTopP(options_.top_p);
  choice.KeepMinP(options_.min_p);
  return choice.Draw(unit, options_.temperature);
}

}  // namespace assay::llm
