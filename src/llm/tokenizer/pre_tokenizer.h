// The qwen2 pre-tokenizer: splits text into the pieces inside which byte pairs are merged.
//
// It is this pattern of the public Qwen2 and Qwen3 tokenizers, with its alternatives in order, on
// Unicode 15.1 (L letters, N numbers, \s white space):
//
//   '[sS] | '[tT] | '[rR][eE] | '[vV][eE] | '[mM] | '[lL][lL] | '[dD]
//   | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} | ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//
// (the fourth line begins with an optional space). It is written by hand rather than handed to a
// regular expression library: the classes then do not depend on the Unicode version of a library
// on the user's machine, bytes that are not UTF-8 need no detour, and the time is linear in the
// text for every input.
#ifndef ASSAY_LLM_TOKENIZER_PRE_TOKENIZER_H_
#define ASSAY_LLM_TOKENIZER_PRE_TOKENIZER_H_

#include <cstddef>
#include <string_view>

namespace assay::llm {

// The length in bytes, at least 1, of the piece that `text` (not empty) begins with. The end of
// `text` is the end of the input: a caller may drop pieces from the front, never from the back.
size_t NextPieceLength(std::string_view text);

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_PRE_TOKENIZER_H_
