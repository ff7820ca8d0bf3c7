// ByteNames: how a byte-level vocabulary writes bytes, each as one printable character.
//
// A byte that is a printable Latin-1 character other than the space and the soft hyphen stands for
// itself; the other 68 are the code points from U+0100 on, in order (so the space is U+0120).
#ifndef ASSAY_LLM_TOKENIZER_BYTE_NAMES_H_
#define ASSAY_LLM_TOKENIZER_BYTE_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::llm {

// The UTF-8 form of `byte`'s name.
std::string ByteName(uint8_t byte);

// The bytes that `token` names. Characters that name no byte are left as they are.
std::string DecodeByteNames(std::string_view token);

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_BYTE_NAMES_H_
