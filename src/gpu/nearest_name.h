// Finds the name a person most likely meant.
#ifndef ASSAY_GPU_NEAREST_NAME_H_
#define ASSAY_GPU_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace assay::gpu {

// The candidate with the fewest single-character edits from `name`, the first of equals; empty
// where there is no candidate.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_NEAREST_NAME_H_
