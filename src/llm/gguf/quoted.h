// Quoted: names from a model file, made safe for a message.
#ifndef ASSAY_LLM_GGUF_QUOTED_H_
#define ASSAY_LLM_GGUF_QUOTED_H_

#include <string>
#include <string_view>

namespace assay::gguf {

// The first 64 bytes of `text` or a little less, as base/text.h quotes it. Names in a file may hold
// anything, terminal escapes too, and be very long.
std::string Quoted(std::string_view text);

}  // namespace assay::gguf

#endif  // ASSAY_LLM_GGUF_QUOTED_H_
