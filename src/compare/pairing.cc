#include "compare/pairing.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "compare/align.h"
#include "compare/line_feed.h"
#include "trace/parse.h"

namespace assay::compare {
namespace {

// Tokens of names without a partner; a pair's token is a small index.
constexpr uint64_t kOnlyInA = uint64_t{1} << 62;
constexpr uint64_t kOnlyInB = uint64_t{2} << 62;
constexpr uint64_t kUndeclared = uint64_t{3} << 62;

Token HashText(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

// A stretch of two lists that are unlike there.
struct Gap {
  size_t a_begin, a_end;
  size_t b_begin, b_end;
};

// Finds partners among two lists of declarations.
class Matcher {
 public:
  Matcher(const std::vector<Declaration>& a, const std::vector<Declaration>& b)
      : a_(a), b_(b), partner_of_a_(a.size(), kNoPartner), b_taken_(b.size(), false) {}

  // For each of `a`, the index in `b` or kNoPartner.
  std::vector<size_t> Run(const Partners& preferred) {
    for (size_t i = 0; i < preferred.size(); ++i) {
      const size_t j = preferred[i];
      if (j != kNoPartner && !b_taken_[j] && a_[i].content == b_[j].content) Join(i, j);
    }
    const std::vector<Gap> gaps = ByContentInOrder();
    ByContentAnywhere();
    for (const Gap& gap : gaps) ByPlace(gap);
    return std::move(partner_of_a_);
  }

 private:
  void Join(size_t a, size_t b) {
    partner_of_a_[a] = b;
    b_taken_[b] = true;
  }

  std::vector<Gap> ByContentInOrder() {
    std::vector<Token> tokens_a(a_.size()), tokens_b(b_.size());
    std::ranges::transform(a_, tokens_a.begin(), &Declaration::content);
    std::ranges::transform(b_, tokens_b.begin(), &Declaration::content);
    std::vector<Gap> gaps;
    size_t a = 0, b = 0;
    for (const Match& match : AlignTokens(tokens_a, tokens_b)) {
      gaps.push_back({a, match.a, b, match.b});
      for (size_t i = 0; i < match.size; ++i) {
        const bool free = partner_of_a_[match.a + i] == kNoPartner && !b_taken_[match.b + i];
        if (free) Join(match.a + i, match.b + i);
      }
      a = match.a + match.size;
      b = match.b + match.size;
    }
    gaps.push_back({a, a_.size(), b, b_.size()});
    return gaps;
  }

  void ByContentAnywhere() {
    std::unordered_map<Token, std::vector<size_t>> free_b;
    for (size_t j = b_.size(); j-- > 0;) {
      if (!b_taken_[j]) free_b[b_[j].content].push_back(j);
    }
    for (size_t i = 0; i < a_.size() && !free_b.empty(); ++i) {
      if (partner_of_a_[i] != kNoPartner) continue;
      const auto found = free_b.find(a_[i].content);
      if (found == free_b.end() || found->second.empty()) continue;
      Join(i, found->second.back());
      found->second.pop_back();
    }
  }

  // What is left in the gap: all in order when as many are left on both sides, else what is alike.
  void ByPlace(const Gap& gap) {
    std::vector<size_t> left_a, left_b;
    for (size_t i = gap.a_begin; i < gap.a_end; ++i) {
      if (partner_of_a_[i] == kNoPartner) left_a.push_back(i);
    }
    for (size_t j = gap.b_begin; j < gap.b_end; ++j) {
      if (!b_taken_[j]) left_b.push_back(j);
    }
    if (left_a.size() == left_b.size()) {
      for (size_t i = 0; i < left_a.size(); ++i) Join(left_a[i], left_b[i]);
      return;
    }
    std::unordered_map<Token, std::vector<size_t>> alike;
    for (size_t k = left_b.size(); k-- > 0;) alike[b_[left_b[k]].likeness].push_back(left_b[k]);
    for (const size_t i : left_a) {
      std::vector<size_t>& candidates = alike[a_[i].likeness];
      if (candidates.empty()) continue;
      Join(i, candidates.back());
      candidates.pop_back();
    }
  }

  const std::vector<Declaration>& a_;
  const std::vector<Declaration>& b_;
  std::vector<size_t> partner_of_a_;
  std::vector<bool> b_taken_;
};

Status AddDeclaration(std::string_view line, const std::string& name, Declarations* into) {
  trace::Event event;
  trace::ParseFailure failure;
  if (!trace::ParseEventLine(line, &event, &failure)) {
    return Fail(ErrorCode::kFormat, name,
                fmt::format("\"{}\" is sealed, but its line \"{}\" breaks the format: {}", name,
                            line, failure.message));
  }
  LineNames names(line);
  LineName own;
  names.Next(&own);
  Declaration declaration{
      .number = own.number, .content = HashText(line.substr(own.end)), .likeness = 0};
  if (const auto* buffer = std::get_if<trace::BufferEvent>(&event)) {
    declaration.likeness =
        buffer->label.empty() ? static_cast<Token>(buffer->kind) : HashText(buffer->label);
    into->buffers.push_back(declaration);
  } else if (auto* kernel = std::get_if<trace::KernelEvent>(&event)) {
    declaration.likeness = HashText(kernel->name);
    into->kernels.push_back(declaration);
    into->kernel_index.Set(own.number, into->kernel_names.size());
    into->kernel_names.push_back(std::move(kernel->name));
  }
  return {};
}

}  // namespace

Result<Declarations> ReadDeclarations(const Input& input) {
  ASSAY_ASSIGN_OR_RETURN(LineFeed feed, LineFeed::Open(input));
  Declarations declarations;
  std::string_view line;
  while (feed.Next(&line)) {
    if (IsBufferLine(line) || IsKernelLine(line)) {
      ASSAY_TRY(AddDeclaration(line, input.name(), &declarations));
    }
    feed.Release(line);
  }
  ASSAY_TRY(feed.status());
  return declarations;
}

Pairing::Pairing(const Declarations& a, const Declarations& b, const Partners& preferred) {
  buffers_renumbered_ = Pair(a.buffers, b.buffers, preferred, &a_.buffers, &b_.buffers);
  kernels_renumbered_ = Pair(a.kernels, b.kernels, {}, &a_.kernels, &b_.kernels);
}

uint64_t Pairing::Pair(const std::vector<Declaration>& a, const std::vector<Declaration>& b,
                       const Partners& preferred, NumberMap* names_a, NumberMap* names_b) {
  uint64_t renumbered = 0;
  for (const Declaration& each : b) names_b->Set(each.number, kOnlyInB | each.number);
  const std::vector<size_t> partners = Matcher(a, b).Run(preferred);
  for (size_t i = 0; i < a.size(); ++i) {
    if (partners[i] == kNoPartner) {
      names_a->Set(a[i].number, kOnlyInA | a[i].number);
      continue;
    }
    names_a->Set(a[i].number, i);
    names_b->Set(b[partners[i]].number, i);
    renumbered += a[i].number == b[partners[i]].number ? 0 : 1;
  }
  return renumbered;
}

Token LineTokenizer::operator()(std::string_view line) {
  text_.clear();
  size_t done = 0;
  LineNames names(line);
  for (LineName name; names.Next(&name); done = name.end) {
    text_.append(line, done, name.begin - done);
    uint64_t token = (name.is_kernel ? names_.kernels : names_.buffers).Find(name.number);
    if (token == NumberMap::kNone) token = kUndeclared | name.number;
    text_.append(reinterpret_cast<const char*>(&token), sizeof(token));
  }
  text_.append(line, done);
  return HashText(text_);
}

}  // namespace assay::compare
