#include "compare/fields.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "assay/trace.h"

#include "compare/align.h"

namespace assay::compare {
namespace {

using Found = std::optional<FieldDifference>;

std::string ShowBuffer(trace::BufferId id) { return fmt::format("#{}", id.value()); }
std::string ShowRange(ByteRange range) { return fmt::format("[{},{})", range.begin, range.end); }
std::string ShowExtent(Extent3 extent) {
  return fmt::format("{},{},{}", extent.x, extent.y, extent.z);
}
std::string ShowText(const std::string& text) { return text.empty() ? "none" : text; }
std::string ShowBytes(const std::vector<std::byte>& bytes) {
  std::string hex;
  for (const std::byte byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return ShowText(hex);
}

// Takes fields in order and keeps the first that differs.
class Fields {
 public:
  void Compare(std::string_view field, std::string value_a, std::string value_b) {
    if (!found_ && value_a != value_b) {
      found_ = {std::string(field), std::move(value_a), std::move(value_b)};
    }
  }
  template <typename Number>
  void CompareNumber(std::string_view field, Number a, Number b) {
    if (!found_ && a != b) Compare(field, fmt::format("{}", a), fmt::format("{}", b));
  }
  // For values that may be the same under two spellings, or two under one.
  void Put(std::string_view field, bool same, std::string value_a, std::string value_b) {
    if (!found_ && !same) found_ = {std::string(field), std::move(value_a), std::move(value_b)};
  }
  Found Take() { return std::move(found_); }

 private:
  Found found_;
};

// One overload an event: the first difference of two of them.
class Comparer {
 public:
  explicit Comparer(const Names& names) : names_(names) {}

  Found operator()(const trace::MetaEvent& a, const trace::MetaEvent& b) const {
    Fields fields;
    fields.Compare("key", a.key, b.key);
    fields.Compare("value of " + a.key, a.value, b.value);
    return fields.Take();
  }
  Found operator()(const trace::BufferEvent& a, const trace::BufferEvent& b) const {
    Fields fields;
    fields.CompareNumber("size", a.size_bytes, b.size_bytes);
    fields.Compare("kind", std::string(BufferKindName(a.kind)),
                   std::string(BufferKindName(b.kind)));
    fields.Compare("label", ShowText(a.label), ShowText(b.label));
    fields.Compare("digest", ShowText(a.digest), ShowText(b.digest));
    PutBuffer("buffer", a.buffer, b.buffer, &fields);
    return fields.Take();
  }
  Found operator()(const trace::FreeEvent& a, const trace::FreeEvent& b) const {
    Fields fields;
    PutBuffer("buffer", a.buffer, b.buffer, &fields);
    return fields.Take();
  }
  Found operator()(const trace::KernelEvent& a, const trace::KernelEvent& b) const {
    Fields fields;
    fields.Compare("name", a.name, b.name);
    fields.Compare("digest", a.digest, b.digest);
    fields.Compare("workgroup", ShowExtent(a.workgroup), ShowExtent(b.workgroup));
    fields.Compare("spec", ShowText(a.spec), ShowText(b.spec));
    fields.CompareNumber("shared", a.shared_bytes, b.shared_bytes);
    PutKernel(a.kernel, b.kernel, &fields);
    return fields.Take();
  }
  Found operator()(const trace::DispatchEvent& a, const trace::DispatchEvent& b) const {
    Fields fields;
    PutKernel(a.kernel, b.kernel, &fields);
    fields.Compare("grid", ShowExtent(a.grid), ShowExtent(b.grid));
    fields.CompareNumber("shared", a.shared_bytes, b.shared_bytes);
    fields.Compare("args", ShowBytes(a.args), ShowBytes(b.args));
    const size_t common = std::min(a.accesses.size(), b.accesses.size());
    for (size_t i = 0; i < common; ++i) {
      const trace::BufferAccess& binding_a = a.accesses[i];
      const trace::BufferAccess& binding_b = b.accesses[i];
      const std::string binding = fmt::format("binding {} ", i + 1);
      PutBuffer(binding + "buffer", binding_a.buffer, binding_b.buffer, &fields);
      fields.Compare(binding + "range", ShowRange(binding_a.range), ShowRange(binding_b.range));
      fields.Compare(binding + "access", std::string(AccessName(binding_a.access)),
                     std::string(AccessName(binding_b.access)));
      fields.Compare(binding + "exactness", binding_a.exact ? "exact" : "upper bound",
                     binding_b.exact ? "exact" : "upper bound");
    }
    fields.CompareNumber("number of bindings", a.accesses.size(), b.accesses.size());
    return fields.Take();
  }
  Found operator()(const trace::HostWriteEvent& a, const trace::HostWriteEvent& b) const {
    return HostAccess(a, b);
  }
  Found operator()(const trace::HostReadEvent& a, const trace::HostReadEvent& b) const {
    return HostAccess(a, b);
  }
  Found operator()(const trace::RefusedEvent& a, const trace::RefusedEvent& b) const {
    Fields fields;
    fields.CompareNumber("count", a.count, b.count);
    return fields.Take();
  }
  // Events of two kinds, and those without a field.
  template <typename A, typename B>
  Found operator()(const A&, const B&) const {
    return std::nullopt;
  }

 private:
  template <typename HostEvent>
  Found HostAccess(const HostEvent& a, const HostEvent& b) const {
    Fields fields;
    PutBuffer("buffer", a.buffer, b.buffer, &fields);
    fields.Compare("range", ShowRange(a.range), ShowRange(b.range));
    return fields.Take();
  }
  void PutBuffer(std::string_view field, trace::BufferId a, trace::BufferId b,
                 Fields* fields) const {
    fields->Put(field, names_.pairing.SameBuffer(a.value(), b.value()), ShowBuffer(a),
                ShowBuffer(b));
  }
  void PutKernel(trace::KernelId a, trace::KernelId b, Fields* fields) const {
    if (names_.pairing.SameKernel(a.value(), b.value())) return;
    std::string name_a(names_.a.KernelName(a.value())), name_b(names_.b.KernelName(b.value()));
    if (name_a == name_b) {
      // Two pipelines of one name.
      name_a += fmt::format(" (k{})", a.value());
      name_b += fmt::format(" (k{})", b.value());
    }
    fields->Put("kernel", false, std::move(name_a), std::move(name_b));
  }

  const Names& names_;
};

// What makes two lines comparable.
struct LineKind {
  std::string_view word;
  // Behind the kernel's number for a dispatch, behind the word for others.
  std::string_view rest;
  uint64_t kernel = 0;

  explicit LineKind(std::string_view line) : word(line.substr(0, line.find(' '))) {
    rest = line.substr(word.size());
    LineName name;
    if (IsDispatchLine(line) && LineNames(line).Next(&name)) {
      kernel = name.number;
      rest = line.substr(name.end);
    }
  }
};

// 0 to 64: how much of the longer text the common beginning and end make up.
int Similarity(std::string_view a, std::string_view b) {
  const size_t longer = std::max(a.size(), b.size()), shorter = std::min(a.size(), b.size());
  if (longer == 0) return 64;
  size_t begin = 0, end = 0;
  while (begin < shorter && a[begin] == b[begin]) ++begin;
  while (end < shorter - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  return static_cast<int>(64 * (begin + end) / longer);
}

bool SameKind(const LineKind& a, const LineKind& b, const Names& names) {
  const bool has_fields = !a.rest.empty() && !b.rest.empty();
  if (a.word != b.word || !has_fields) return false;
  return a.word != "dispatch" || names.pairing.SameKernel(a.kernel, b.kernel);
}

// How good it is to show one line as a change of the other; 0: not at all.
int Score(const LineKind& a, const LineKind& b, const Names& names) {
  if (SameKind(a, b, names)) return 65 + Similarity(a.rest, b.rest);
  if (a.word != "dispatch" || b.word != "dispatch") return 0;
  // Another kernel in the place of one, on much the same bindings.
  const int similarity = Similarity(a.rest, b.rest);
  return similarity >= 32 ? similarity : 0;
}

// Above this many candidates they are not all tried, so that the work for a line is bounded.
constexpr size_t kMaxCandidates = 1024;

// Equal for lines of one kind. Lines without fields, which cannot change, get tokens of their own.
constexpr Token kOnlyInA = Token{1} << 62;
constexpr Token kOnlyInB = Token{2} << 62;
std::vector<Token> KindTokens(const std::vector<LineKind>& kinds, const SideNames& names,
                              Token own) {
  std::vector<Token> tokens;
  tokens.reserve(kinds.size());
  for (const LineKind& kind : kinds) {
    if (kind.rest.empty()) {
      tokens.push_back(own | tokens.size());
    } else {
      const uint64_t kernel = kind.word == "dispatch" ? names.kernels.Find(kind.kernel) : 0;
      tokens.push_back(std::hash<std::string_view>()(kind.word) + kernel);
    }
  }
  return tokens;
}

}  // namespace

FieldDifference FirstDifference(std::string_view line_a, std::string_view line_b,
                                const Names& names) {
  const Result<trace::Event> a = trace::ParseEvent(line_a), b = trace::ParseEvent(line_b);
  if (a && b) {
    if (Found found = std::visit(Comparer(names), *a, *b)) return *std::move(found);
  }
  return {"line", std::string(line_a), std::string(line_b)};
}

std::string_view KernelOf(std::string_view line, const Declarations& declarations) {
  LineName name;
  if (!IsDispatchLine(line) || !LineNames(line).Next(&name)) return {};
  return declarations.KernelName(name.number);
}

std::vector<std::pair<size_t, size_t>> PairChanged(std::span<const std::string_view> a,
                                                   std::span<const std::string_view> b,
                                                   const Names& names) {
  std::vector<std::pair<size_t, size_t>> pairs;
  if (a.empty() || b.empty()) return pairs;
  const std::vector<LineKind> kinds_a(a.begin(), a.end()), kinds_b(b.begin(), b.end());
  if (a.size() > kMaxCandidates / b.size()) {
    // The kinds of the lines are aligned as the lines were.
    const std::vector<Token> tokens_a = KindTokens(kinds_a, names.pairing.a(), kOnlyInA);
    const std::vector<Token> tokens_b = KindTokens(kinds_b, names.pairing.b(), kOnlyInB);
    for (const Match& match : AlignTokens(tokens_a, tokens_b)) {
      for (size_t i = 0; i < match.size; ++i) pairs.emplace_back(match.a + i, match.b + i);
    }
    return pairs;
  }
  // best[i][j]: the greatest sum of scores for the lines from i and from j on.
  const size_t width = b.size() + 1;
  std::vector<int> best((a.size() + 1) * width, 0);
  std::vector<int> score(a.size() * width, 0);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const int here = score[i * width + j] = Score(kinds_a[i], kinds_b[j], names);
      const int paired = here > 0 ? here + best[(i + 1) * width + j + 1] : 0;
      best[i * width + j] = std::max({paired, best[(i + 1) * width + j], best[i * width + j + 1]});
    }
  }
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int here = score[i * width + j];
    if (here > 0 && best[i * width + j] == here + best[(i + 1) * width + j + 1]) {
      pairs.emplace_back(i++, j++);
    } else if (best[i * width + j] == best[(i + 1) * width + j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

}  // namespace assay::compare
