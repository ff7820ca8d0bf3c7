// Text from outside (names of files, what stands in them) made safe to show.
#ifndef ASSAY_BASE_TEXT_H_
#define ASSAY_BASE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// One code point of a UTF-8 text, or the one byte that begins none.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 1;
  bool valid = false;
};
// The one that begins at `at`, which must lie inside `text`.
CodePoint DecodeCodePoint(std::string_view text, size_t at);

// True for bytes that are no UTF-8 and for what a program may act on instead of showing it:
// controls (C0, DEL and C1), and code points that end a line, turn its direction or are not seen.
bool MustEscape(const CodePoint& point);

// Appends `text`, what must be escaped as \xhh (each byte, lower-case hex) and the characters in
// `also` behind a backslash.
void AppendEscaped(std::string* out, std::string_view text, std::string_view also = {});

// `text` for a terminal: one line that steers nothing.
std::string Printable(std::string_view text);
// The same in double quotes, with quotes and backslashes escaped, so that no two texts look alike.
// Of a longer text only whole characters within the first `max_bytes` are shown, and "...".
std::string Quoted(std::string_view text, size_t max_bytes = std::string_view::npos);
// As many whole characters of `text` as fit into `max_bytes`.
std::string_view Beginning(std::string_view text, size_t max_bytes);

}  // namespace assay

#endif  // ASSAY_BASE_TEXT_H_
