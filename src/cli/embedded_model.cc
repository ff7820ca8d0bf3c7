#include "cli/embedded_model.h"

// Defined by embedded_model.S.
extern "C" {
extern const std::byte assay_embedded_model_begin[];
extern const std::byte assay_embedded_model_end[];
}

namespace assay::cli {

std::span<const std::byte> EmbeddedModel() {
  return {assay_embedded_model_begin,
          static_cast<size_t>(assay_embedded_model_end - assay_embedded_model_begin)};
}

}  // namespace assay::cli
