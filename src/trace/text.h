// Text inside a line of a trace: bare words, and quoted strings that hold any bytes.
//
// Each value has exactly one form. A value of word bytes only, at least one, stands bare; every
// other value is quoted. Inside quotes a backslash and a quote are escaped by a backslash; bytes
// that are not UTF-8, controls, and the code points that end a line or turn its direction are
// written \xhh, a byte each, in lower-case hex.
#ifndef ASSAY_TRACE_TEXT_H_
#define ASSAY_TRACE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::trace {

bool IsWordByte(char byte);
// True when every byte of `text` is a word byte and there is at least one.
bool IsWord(std::string_view text);
// A key of a meta line: a lower-case letter or digit, then those, '.', '_' and '-'.
bool IsMetaKey(std::string_view text);
// At least one lower-case hex digit and nothing else.
bool IsHexDigest(std::string_view text);

// Appends `bytes` in quotes.
void AppendQuoted(std::string* out, std::string_view bytes);
// Appends `bytes` bare when they are a word, else in quotes.
void AppendText(std::string* out, std::string_view bytes);

// Where reading a quoted string stopped.
struct QuotedEnd {
  size_t next = 0;              // The byte after the closing quote, or the byte that is wrong.
  const char* wrong = nullptr;  // A full sentence; null when the string was read.
};
// Reads the quoted string that begins at text[at] (the opening quote) into `out`. Only the one form
// that AppendQuoted writes is accepted.
QuotedEnd ParseQuoted(std::string_view text, size_t at, std::string* out);

}  // namespace assay::trace

#endif  // ASSAY_TRACE_TEXT_H_
