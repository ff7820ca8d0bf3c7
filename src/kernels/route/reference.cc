#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/route/route.h"

namespace assay::kernels {

void ReferenceRoute(std::span<const double> logits, bool normalise, std::span<int32_t> ids,
                    std::span<double> weights) {
  const double top = *std::ranges::max_element(logits);
  std::vector<double> probability(logits.size());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += probability[i] = std::exp(logits[i] - top);
  for (double& p : probability) p /= sum;
  double chosen = 0;
  std::vector<double> left = probability;
  for (size_t j = 0; j < ids.size(); ++j) {
    const auto best = std::ranges::max_element(left);
    ids[j] = static_cast<int32_t>(best - left.begin());
    weights[j] = *best;
    chosen += *best;
    *best = -1;
  }
  if (normalise) {
    for (double& w : weights) w /= chosen;
  }
}

}  // namespace assay::kernels
