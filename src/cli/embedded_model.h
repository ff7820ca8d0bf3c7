// The model that is linked into the program, used where none is named.
#ifndef ASSAY_CLI_EMBEDDED_MODEL_H_
#define ASSAY_CLI_EMBEDDED_MODEL_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace assay::cli {

// Stands for it in messages.
inline constexpr std::string_view kEmbeddedModelName = "tiny-tales-12m-Q8_0.gguf (built in)";

// Its bytes, a GGUF file, aligned to 64; they live as long as the program.
std::span<const std::byte> EmbeddedModel();

}  // namespace assay::cli

#endif  // ASSAY_CLI_EMBEDDED_MODEL_H_
