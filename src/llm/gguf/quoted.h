// Quoted: names from a model file, made safe for a message.
#ifndef ASSAY_LLM_GGUF_QUOTED_H_
#define ASSAY_LLM_GGUF_QUOTED_H_

#include <string>
#include <string_view>

namespace assay::gguf {

// `text` in double quotes: bytes that are not printable ASCII as \xHH, and at most 64 bytes of it.
// Names in a file may hold anything, terminal escapes too.
std::string Quoted(std::string_view text);

}  // namespace assay::gguf

#endif  // ASSAY_LLM_GGUF_QUOTED_H_
