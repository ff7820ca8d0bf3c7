#include "trace/format.h"

#include <algorithm>

#include "trace/text.h"

namespace assay::trace {
namespace {

constexpr std::array<std::string_view, kRefusalCount> kRefusalNames = {"off-thread", "outside-job",
                                                                       "nested-load", "stale-job"};

void AppendDecimal(std::string* out, uint64_t value) {
  std::array<char, 20> digits;
  out->append(digits.data(), PutDecimal(digits.data(), value));
}

void AppendExtent(std::string* out, const Extent3& extent) {
  std::array<char, 32> text;
  out->append(text.data(), PutExtent(text.data(), extent));
}

// The lines without a newline, one overload an event.
struct Formatter {
  std::string operator()(const MetaEvent& event) const { return MetaLine(event.key, event.value); }
  std::string operator()(const BufferEvent& event) const {
    return "buffer " + Name(event.buffer) +
           BufferBody({.size_bytes = event.size_bytes,
                       .kind = event.kind,
                       .label = event.label,
                       .digest = event.digest});
  }
  std::string operator()(const FreeEvent& event) const { return "free " + Name(event.buffer); }
  std::string operator()(const KernelEvent& event) const {
    std::string line = "kernel k";
    AppendDecimal(&line, event.kernel.value());
    return line + KernelBody({.name = event.name,
                              .digest = event.digest,
                              .workgroup = event.workgroup,
                              .spec = event.spec,
                              .shared_bytes = event.shared_bytes});
  }
  std::string operator()(const BeginEvent&) const { return "begin"; }
  std::string operator()(const DispatchEvent& event) const {
    std::string line(DispatchBound(event.args.size(), event.accesses.size()), '\0');
    const char* end = PutDispatchLine(
        line.data(), event.grid, event.shared_bytes, std::span<const std::byte>(event.args),
        std::span<const BufferAccess>(event.accesses),
        [&](char* p) { return PutDecimal(p, event.kernel.value()); },
        [](char* p, const BufferAccess& access) { return PutBufferName(p, access.buffer); });
    line.resize(static_cast<size_t>(end - line.data()) - 1);
    return line;
  }
  std::string operator()(const BarrierEvent&) const { return "barrier"; }
  std::string operator()(const CommitEvent&) const { return "commit"; }
  std::string operator()(const WaitEvent&) const { return "wait"; }
  std::string operator()(const HostWriteEvent& event) const {
    return "write " + Name(event.buffer) + Range(event.range);
  }
  std::string operator()(const HostReadEvent& event) const {
    return "read " + Name(event.buffer) + Range(event.range);
  }
  std::string operator()(const RefusedEvent& event) const {
    return RefusedLine(event.reason, event.count);
  }

 private:
  static std::string Name(BufferId buffer) {
    std::array<char, 24> text;
    return {text.data(), PutBufferName(text.data(), buffer)};
  }
  static std::string Range(ByteRange range) {
    std::array<char, 48> text;
    return {text.data(), PutRange(text.data(), range)};
  }
};

}  // namespace

ptrdiff_t TextBuffer::Replace(size_t at, size_t bytes, std::string_view text) {
  if (text.size() != bytes) {
    if (text.size() > bytes) Reserve(text.size() - bytes);
    char* const behind = At(at + bytes);
    std::memmove(At(at + text.size()), behind, size_ - at - bytes);
    size_ = size_ + text.size() - bytes;
  }
  std::memcpy(At(at), text.data(), text.size());
  return static_cast<ptrdiff_t>(text.size()) - static_cast<ptrdiff_t>(bytes);
}

void TextBuffer::Grow(size_t bytes) {
  capacity_ = std::max({size_ + bytes, 2 * capacity_, size_t{4096}});
  auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
  if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
}

std::string_view RefusalName(Refusal refusal) {
  return kRefusalNames[static_cast<size_t>(refusal)];
}

std::optional<Refusal> ParseRefusal(std::string_view text) {
  for (size_t i = 0; i < kRefusalCount; ++i) {
    if (kRefusalNames[i] == text) return static_cast<Refusal>(i);
  }
  return std::nullopt;
}

std::string BufferBody(const BufferRecord& record) {
  std::string body = " size=";
  AppendDecimal(&body, record.size_bytes);
  body += " kind=";
  body += BufferKindName(record.kind);
  if (!record.label.empty()) {
    body += " label=";
    AppendQuoted(&body, record.label);
  }
  if (!record.digest.empty()) {
    body += " digest=";
    body += record.digest;
  }
  return body;
}

std::string KernelBody(const KernelRecord& record) {
  std::string body = " name=";
  AppendText(&body, record.name);
  body += " digest=";
  body += record.digest;
  body += " workgroup=";
  AppendExtent(&body, record.workgroup);
  if (!record.spec.empty()) {
    body += " spec=";
    AppendText(&body, record.spec);
  }
  if (record.shared_bytes != 0) {
    body += " shared=";
    AppendDecimal(&body, record.shared_bytes);
  }
  return body;
}

std::string MetaLine(std::string_view key, std::string_view value) {
  std::string line = "meta ";
  line += key;
  line += ' ';
  AppendText(&line, value);
  return line;
}

std::string RefusedLine(Refusal reason, uint64_t count) {
  std::string line = "refused ";
  line += RefusalName(reason);
  line += ": ";
  AppendDecimal(&line, count);
  return line;
}

std::string EndLine(uint64_t lines, std::string_view digest) {
  std::string line = "end events=";
  AppendDecimal(&line, lines);
  line += " digest=";
  line += digest;
  return line;
}

std::string FormatEvent(const Event& event) { return std::visit(Formatter(), event); }

}  // namespace assay::trace
