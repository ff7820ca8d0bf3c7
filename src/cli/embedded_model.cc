#include "cli/embedded_model.h"

// Defined by embedded_model.S.
extern "C" {
extern const std::byte kAssayEmbeddedModelBegin[];
extern const std::byte kAssayEmbeddedModelEnd[];
}

namespace assay::cli {

std::span<const std::byte> EmbeddedModel() {
  return {kAssayEmbeddedModelBegin,
          static_cast<size_t>(kAssayEmbeddedModelEnd - kAssayEmbeddedModelBegin)};
}

}  // namespace assay::cli
