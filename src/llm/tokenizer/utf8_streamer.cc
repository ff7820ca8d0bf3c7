#include "llm/tokenizer/utf8_streamer.h"

#include <algorithm>

#include "llm/tokenizer/unicode_class.h"

namespace assay::llm {
namespace {

// How many bytes at the end of `text` begin a character that more bytes could finish.
size_t UnfinishedLength(std::string_view text) {
  const size_t most = std::min<size_t>(3, text.size());
  for (size_t length = 1; length <= most; ++length) {
    const std::string_view tail = text.substr(text.size() - length);
    const auto lead = static_cast<unsigned char>(tail[0]);
    if ((lead & 0xC0) == 0x80) continue;
    const size_t needed = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length >= needed) return 0;
    // The lowest and the highest continuation; a character is there if either completes one.
    for (const char fill : {'\x80', '\xBF'}) {
      std::string completed(tail);
      completed.resize(needed, fill);
      if (DecodeAt(completed, 0).length == needed) return length;
    }
    return 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Streamer::Push(std::string_view bytes) {
  held_ += bytes;
  const size_t ready = held_.size() - UnfinishedLength(held_);
  std::string out = held_.substr(0, ready);
  held_.erase(0, ready);
  return out;
}

}  // namespace assay::llm
