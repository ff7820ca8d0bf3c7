#include "trace/parse.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "trace/format.h"
#include "trace/text.h"

namespace assay::trace {
namespace {

constexpr std::array<int8_t, 256> MakeHexValues() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 10; ++i) values[static_cast<size_t>('0' + i)] = static_cast<int8_t>(i);
  for (int i = 0; i < 6; ++i) values[static_cast<size_t>('a' + i)] = static_cast<int8_t>(10 + i);
  return values;
}
constexpr std::array<int8_t, 256> kHexValues = MakeHexValues();

int HexValue(char c) { return kHexValues[static_cast<unsigned char>(c)]; }

// Reads a line from left to right. Each reading function returns false at the first fault, after
// which `failure` says where and why; nothing is read past the end.
class Cursor {
 public:
  Cursor(std::string_view line, ParseFailure* failure)
      : line_(line), at_(line.data()), end_(line.data() + line.size()), failure_(failure) {}

  bool AtEnd() const { return at_ == end_; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  // Reads `text` where it stands here.
  bool Skip(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool Skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool Expect(std::string_view text) {
    return Skip(text) || FailHere(fmt::format("Expected \"{}\" here, but {}.", text, Found()));
  }
  bool ExpectEnd() {
    return AtEnd() || FailHere(fmt::format("The line should end here, but {}.", Found()));
  }

  // A number without sign or leading zero, at most `limit`.
  bool Number(uint64_t limit, uint64_t* value) {
    const char* const start = at_;
    uint64_t sum = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      const auto digit = static_cast<uint64_t>(*at_ - '0');
      if (sum > (UINT64_MAX - digit) / 10 || sum * 10 + digit > limit) {
        return FailAt(start, fmt::format("The number is larger than its limit ({}).", limit));
      }
      sum = sum * 10 + digit;
      ++at_;
    }
    if (at_ == start) return FailHere(fmt::format("Expected a number here, but {}.", Found()));
    if (*start == '0' && at_ - start > 1) {
      return FailAt(start, "The number begins with a superfluous 0.");
    }
    *value = sum;
    return true;
  }
  bool Number(uint32_t* value) {
    uint64_t wide = 0;
    if (!Number(std::numeric_limits<uint32_t>::max(), &wide)) return false;
    *value = static_cast<uint32_t>(wide);
    return true;
  }

  bool Extent(Extent3* extent) {
    return Number(&extent->x) && Expect(",") && Number(&extent->y) && Expect(",") &&
           Number(&extent->z);
  }
  bool Range(ByteRange* range) {
    const char* const start = at_;
    if (!(Expect("[") && Number(UINT64_MAX, &range->begin) && Expect(",") &&
          Number(UINT64_MAX, &range->end) && Expect(")"))) {
      return false;
    }
    return range->begin <= range->end ||
           FailAt(start, fmt::format("The range begins ({}) behind its end ({}).", range->begin,
                                     range->end));
  }
  // `#n`; also `#?` when `unnamed_allowed`.
  bool Buffer(bool unnamed_allowed, BufferId* buffer) {
    if (!Expect("#")) return false;
    if (unnamed_allowed && Skip('?')) {
      *buffer = kUnnamedBuffer;
      return true;
    }
    uint64_t number = 0;
    if (!Number(kUnnamedBuffer.value() - 1, &number)) return false;
    *buffer = BufferId(number);
    return true;
  }
  bool Kernel(KernelId* kernel) {
    uint32_t number = 0;
    if (!(Expect("k") && Number(&number))) return false;
    *kernel = KernelId(number);
    return true;
  }

  std::string_view Word() {
    const char* const start = at_;
    while (at_ != end_ && IsWordByte(*at_)) ++at_;
    return {start, static_cast<size_t>(at_ - start)};
  }
  bool Quoted(std::string* text) {
    const auto offset = static_cast<size_t>(at_ - line_.data());
    const QuotedEnd stop = ParseQuoted(line_, offset, text);
    at_ = line_.data() + stop.next;
    return stop.wrong == nullptr || FailHere(stop.wrong);
  }
  // A word, or a quoted string that is none.
  bool Text(std::string* text) {
    const char* const start = at_;
    if (at_ == end_ || *at_ != '"') {
      *text = Word();
      return !text->empty() ||
             FailHere(fmt::format("Expected a word or a quoted string here, but {}.", Found()));
    }
    if (!Quoted(text)) return false;
    return !IsWord(*text) || FailAt(start, "A word must stand without quotes.");
  }
  bool Digest(std::string* digest) {
    const char* const start = at_;
    while (at_ != end_ && HexValue(*at_) >= 0) ++at_;
    if (at_ == start)
      return FailHere(fmt::format("Expected lower-case hex here, but {}.", Found()));
    digest->assign(start, at_);
    return true;
  }
  bool Bytes(std::vector<std::byte>* bytes) {
    const char* const start = at_;
    const char* p = at_;
    while (p != end_ && HexValue(*p) >= 0) ++p;
    const auto digits = static_cast<size_t>(p - start);
    if (digits == 0 || digits % 2 != 0) {
      at_ = p;
      return FailHere(fmt::format("Expected pairs of lower-case hex digits here, but {}.",
                                  digits == 0 ? Found() : "their number is odd"));
    }
    bytes->resize(digits / 2);
    for (std::byte& byte : *bytes) {
      byte = static_cast<std::byte>(HexValue(at_[0]) << 4 | HexValue(at_[1]));
      at_ += 2;
    }
    return true;
  }
  // A number that is left out when it is 0.
  bool OptionalNumber(std::string_view field, uint32_t* value) {
    if (!Skip(field)) return true;
    const char* const start = at_;
    if (!Number(value)) return false;
    return *value != 0 || FailAt(start, "A field whose value is 0 must be left out.");
  }

  bool FailHere(std::string message) { return FailAt(at_, std::move(message)); }
  bool FailAt(const char* where, std::string message) {
    failure_->column = static_cast<size_t>(where - line_.data()) + 1;
    failure_->message = std::move(message);
    return false;
  }
  // "found ..." for a message: a few characters of the rest, made safe to print.
  std::string Found() const {
    if (AtEnd()) return "the line ends";
    if (*at_ == '\r') return "found a carriage return; lines end in a line feed alone";
    constexpr size_t kShown = 16;
    std::string shown;
    AppendQuoted(&shown, rest().substr(0, kShown));
    return "found " + shown;
  }

 private:
  std::string_view line_;
  const char* at_;
  const char* end_;
  ParseFailure* failure_;
};

// One overload an event: reads what stands behind the event's word.

bool ParseFields(Cursor& in, MetaEvent* event) {
  if (!in.Expect(" ")) return false;
  const Cursor key_start = in;
  while (!in.AtEnd() && in.rest()[0] != ' ') {
    event->key += in.rest()[0];
    in.Skip(in.rest()[0]);
  }
  if (!IsMetaKey(event->key)) {
    in = key_start;
    return in.FailHere(
        fmt::format("Expected a key of lower-case letters, digits, '.', '_' and '-' here, but {}.",
                    in.Found()));
  }
  return in.Expect(" ") && in.Text(&event->value);
}

bool ParseFields(Cursor& in, BufferEvent* event) {
  if (!(in.Expect(" ") && in.Buffer(false, &event->buffer) && in.Expect(" size=") &&
        in.Number(UINT64_MAX, &event->size_bytes) && in.Expect(" kind="))) {
    return false;
  }
  const Cursor kind_start = in;
  const std::optional<BufferKind> kind = ParseBufferKind(in.Word());
  if (!kind) {
    in = kind_start;
    return in.FailHere(fmt::format("Expected the kind of a buffer here, but {}.", in.Found()));
  }
  event->kind = *kind;
  if (in.Skip(" label=")) {
    const Cursor label_start = in;
    if (!in.Quoted(&event->label)) return false;
    if (event->label.empty()) {
      in = label_start;
      return in.FailHere("An empty label must be left out.");
    }
  }
  return !in.Skip(" digest=") || in.Digest(&event->digest);
}

bool ParseFields(Cursor& in, FreeEvent* event) {
  return in.Expect(" ") && in.Buffer(false, &event->buffer);
}

bool ParseFields(Cursor& in, KernelEvent* event) {
  if (!(in.Expect(" ") && in.Kernel(&event->kernel) && in.Expect(" name=") &&
        in.Text(&event->name) && in.Expect(" digest=") && in.Digest(&event->digest) &&
        in.Expect(" workgroup=") && in.Extent(&event->workgroup))) {
    return false;
  }
  if (in.Skip(" spec=")) {
    const Cursor spec_start = in;
    if (!in.Text(&event->spec)) return false;
    if (event->spec.empty()) {
      in = spec_start;
      return in.FailHere("An empty specialisation must be left out.");
    }
  }
  return in.OptionalNumber(" shared=", &event->shared_bytes);
}

bool ParseFields(Cursor&, BeginEvent*) { return true; }

bool ParseAccess(Cursor& in, BufferAccess* access) {
  if (in.Skip('r')) {
    access->access = in.Skip('w') ? Access::kReadWrite : Access::kRead;
  } else if (in.Skip('w')) {
    access->access = Access::kWrite;
  } else {
    return in.FailHere(fmt::format("Expected an access (r, w or rw) here, but {}.", in.Found()));
  }
  if (!(in.Buffer(true, &access->buffer) && in.Range(&access->range))) return false;
  access->exact = !in.Skip('?');
  return true;
}

bool ParseFields(Cursor& in, DispatchEvent* event) {
  if (!(in.Expect(" ") && in.Kernel(&event->kernel) && in.Expect(" grid=") &&
        in.Extent(&event->grid) && in.OptionalNumber(" shared=", &event->shared_bytes))) {
    return false;
  }
  if (in.Skip(" args=") && !in.Bytes(&event->args)) return false;
  while (in.Skip(' ')) {
    if (!ParseAccess(in, &event->accesses.emplace_back())) return false;
  }
  return true;
}

bool ParseFields(Cursor&, BarrierEvent*) { return true; }
bool ParseFields(Cursor&, CommitEvent*) { return true; }
bool ParseFields(Cursor&, WaitEvent*) { return true; }

template <typename HostEvent>
bool ParseHostAccess(Cursor& in, HostEvent* event) {
  return in.Expect(" ") && in.Buffer(true, &event->buffer) && in.Range(&event->range);
}
bool ParseFields(Cursor& in, HostWriteEvent* event) { return ParseHostAccess(in, event); }
bool ParseFields(Cursor& in, HostReadEvent* event) { return ParseHostAccess(in, event); }

bool ParseFields(Cursor& in, RefusedEvent* event) {
  if (!in.Expect(" ")) return false;
  std::string_view word = in.rest();
  word = word.substr(0, word.find(':'));
  const std::optional<Refusal> reason = ParseRefusal(word);
  if (!reason) {
    return in.FailHere(fmt::format("Expected the reason of a refusal here, but {}.", in.Found()));
  }
  event->reason = *reason;
  in.Skip(word);
  if (!in.Expect(": ")) return false;
  const Cursor count_start = in;
  if (!in.Number(UINT64_MAX, &event->count)) return false;
  if (event->count > 0) return true;
  in = count_start;
  return in.FailHere("A refusal of 0 buffers must be left out.");
}

template <typename SomeEvent>
bool ParseAs(Cursor& in, Event* event) {
  return ParseFields(in, &event->emplace<SomeEvent>()) && in.ExpectEnd();
}

}  // namespace

bool ParseEventLine(std::string_view line, Event* event, ParseFailure* failure) {
  Cursor in(line, failure);
  const Cursor start = in;
  size_t word_bytes = 0;
  while (word_bytes < line.size() && line[word_bytes] >= 'a' && line[word_bytes] <= 'z') {
    ++word_bytes;
  }
  const std::string_view word = line.substr(0, word_bytes);
  in.Skip(word);
  // The commonest line first.
  if (word == "dispatch") return ParseAs<DispatchEvent>(in, event);
#define ASSAY_TRACE_EVENT(name, Type) \
  if (word == name) return ParseAs<Type>(in, event);
#include "trace/events.def"
#undef ASSAY_TRACE_EVENT
  in = start;
  return in.FailHere(fmt::format("Expected the name of an event here, but {}.", in.Found()));
}

bool ParseFirstLine(std::string_view line, uint64_t* version, ParseFailure* failure) {
  Cursor in(line, failure);
  if (!in.Skip(kMagic)) {
    return in.FailHere(
        fmt::format("The file is not a trace: its first line must begin with \"{}\", but {}.",
                    kMagic, in.Found()));
  }
  const std::string_view digits = in.rest();
  const bool all_digits = digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (all_digits && digits.size() > 19 && digits[0] != '0') {
    *version = UINT64_MAX;
    return true;
  }
  return in.Number(UINT64_MAX, version) && in.ExpectEnd();
}

bool IsEndLine(std::string_view line) {
  return line.starts_with("end") && (line.size() == 3 || line[3] < 'a' || line[3] > 'z');
}

bool ParseEndLine(std::string_view line, EndOfTrace* end, ParseFailure* failure) {
  Cursor in(line, failure);
  return in.Expect("end events=") && in.Number(UINT64_MAX, &end->lines) && in.Expect(" digest=") &&
         in.Digest(&end->digest) && in.ExpectEnd();
}

Result<Event> ParseEvent(std::string_view line) {
  Event event;
  ParseFailure failure;
  if (ParseEventLine(line, &event, &failure)) return event;
  return Fail(ErrorCode::kFormat, "",
              fmt::format("Column {}: {}", failure.column, failure.message));
}

}  // namespace assay::trace
