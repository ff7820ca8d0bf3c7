// Utf8Streamer: passes bytes on to a terminal in whole characters.
//
//   Utf8Streamer streamer;
//   for each token: out << streamer.Push(bytes);
//   out << streamer.Finish();
#ifndef ASSAY_LLM_TOKENIZER_UTF8_STREAMER_H_
#define ASSAY_LLM_TOKENIZER_UTF8_STREAMER_H_

#include <string>
#include <string_view>
#include <utility>

namespace assay::llm {

// A token may end inside a character; a terminal would show such halves as garbage. No byte is
// lost or changed: what Push and Finish return, in order, is what was pushed. One thread.
class Utf8Streamer final {
 public:
  // `bytes` after what was held back, up to where a character may still be unfinished (at most
  // three bytes stay behind). Bytes that can become no character are passed on at once.
  std::string Push(std::string_view bytes);
  // What is still held back.
  std::string Finish() { return std::exchange(held_, {}); }

 private:
  std::string held_;
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_UTF8_STREAMER_H_
