#include "llm/gguf/quoted.h"

#include "base/text.h"

namespace assay::gguf {

std::string Quoted(std::string_view text) {
  constexpr size_t kShownBytes = 64;
  return assay::Quoted(text, kShownBytes);
}

}  // namespace assay::gguf
