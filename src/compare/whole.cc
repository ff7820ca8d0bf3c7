#include "compare/whole.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "compare/count_lines.h"
#include "trace/parse.h"

namespace assay::compare {
namespace {

// Longer than a first line, and than an end line with the refused lines that may stand before it.
constexpr size_t kEdgeBytes = 4096;
// Two of them stay in the second-level cache while they are compared, digested and counted.
constexpr size_t kBlockBytes = size_t{256} << 10;

constexpr std::string_view kRefusedWord = "refused ";

class BlockReader {
 public:
  explicit BlockReader(std::unique_ptr<trace::Source> source)
      : source_(std::move(source)), block_(std::make_unique_for_overwrite<char[]>(kBlockBytes)) {}

  // A full block, or a shorter one only at the end of the text; empty behind it.
  Result<std::string_view> Next() {
    size_t filled = 0;
    while (filled < kBlockBytes) {
      ASSAY_ASSIGN_OR_RETURN(const size_t got,
                             source_->Read(block_.get() + filled, kBlockBytes - filled));
      if (got == 0) break;
      filled += got;
    }
    return std::string_view(block_.get(), filled);
  }

 private:
  std::unique_ptr<trace::Source> source_;
  std::unique_ptr<char[]> block_;
};

Status FeedRest(BlockReader* reader, WholeChecker* checker) {
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::string_view block, reader->Next());
    if (block.empty()) return {};
    checker->Feed(block);
  }
}

}  // namespace

void WholeChecker::Feed(std::string_view block) {
  TakeHead(block);
  if (block.size() >= 2 * kEdgeBytes) {
    const size_t pending = pending_.size();
    pending_ += block.substr(0, kLookAhead);
    Account(pending_, pending);
    Account(block, block.size() - kEdgeBytes);
    pending_.assign(block.substr(block.size() - kEdgeBytes));
    return;
  }
  pending_ += block;
  if (pending_.size() < 2 * kEdgeBytes) return;
  Account(pending_, pending_.size() - kEdgeBytes);
  pending_.erase(0, pending_.size() - kEdgeBytes);
}

void WholeChecker::TakeHead(std::string_view block) {
  if (head_.size() < kEdgeBytes) head_ += block.substr(0, kEdgeBytes - head_.size());
}

// Counts and digests text[0..size); kLookAhead bytes more are in sight.
void WholeChecker::Account(std::string_view text, size_t size) {
  const LineCount count = CountLines(text.substr(0, size + kLookAhead));
  newlines_ += count.newlines;
  maybe_refused_ = maybe_refused_ || count.maybe_refused;
  hasher_.Update(text.substr(0, size));
}

std::optional<WholeFacts> WholeChecker::Finish() {
  std::string_view text = pending_;
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  const size_t line_break = text.rfind('\n');
  if (line_break == std::string_view::npos) return std::nullopt;
  const std::string_view last_line = text.substr(line_break + 1);
  const std::string_view before = text.substr(0, line_break + 1);
  newlines_ += static_cast<uint64_t>(std::ranges::count(before, '\n'));
  const std::string_view first_line = std::string_view(head_).substr(0, head_.find('\n'));

  // A line that begins where `before` does was in sight of the count before it.
  for (size_t at = 0; (at = before.find(kRefusedWord, at)) != std::string_view::npos; ++at) {
    maybe_refused_ = maybe_refused_ || at == 0 || before[at - 1] == '\n';
  }
  hasher_.Update(before);

  trace::ParseFailure failure;
  trace::EndOfTrace end;
  uint64_t version = 0;
  if (!trace::ParseFirstLine(first_line, &version, &failure)) return std::nullopt;
  if (version != trace::kCurrentVersion && version != trace::kCreationOrderVersion) {
    return std::nullopt;
  }
  if (!trace::ParseEndLine(last_line, &end, &failure)) return std::nullopt;
  if (end.lines != newlines_ || end.digest != hasher_.HexDigest()) return std::nullopt;
  return WholeFacts{.version = static_cast<int>(version),
                    .lines = end.lines,
                    .digest = std::move(end.digest),
                    .maybe_refused = maybe_refused_};
}

void SideReading::Start() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { why_ = WhyRefused(input_, &dropped_); });
  } catch (const std::system_error&) {
    // There is no thread to be had: Result reads.
  }
}

void SideReading::Drop() {
  dropped_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

std::optional<std::string> SideReading::Result() {
  if (!thread_.joinable()) return WhyRefused(input_);
  thread_.join();
  return std::move(why_);
}

Result<BothWhole> CheckBothWhole(const Input& a, const Input& b, SideReading* reading_a) {
  ASSAY_ASSIGN_OR_RETURN(auto source_a, a.OpenText());
  ASSAY_ASSIGN_OR_RETURN(auto source_b, b.OpenText());
  BlockReader reader_a(std::move(source_a)), reader_b(std::move(source_b));
  WholeChecker checker_a;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::string_view block_a, reader_a.Next());
    ASSAY_ASSIGN_OR_RETURN(const std::string_view block_b, reader_b.Next());
    if (block_a.size() != block_b.size() ||
        std::memcmp(block_a.data(), block_b.data(), block_a.size()) != 0) {
      reading_a->Drop();
      WholeChecker checker_b = checker_a;
      checker_a.Feed(block_a);
      checker_b.Feed(block_b);
      Status status_b;
      std::jthread other([&] { status_b = FeedRest(&reader_b, &checker_b); });
      const Status status_a = FeedRest(&reader_a, &checker_a);
      other.join();
      ASSAY_TRY(status_a);
      ASSAY_TRY(status_b);
      return BothWhole{.same_bytes = false, .a = checker_a.Finish(), .b = checker_b.Finish()};
    }
    if (block_a.empty()) {
      const std::optional<WholeFacts> facts = checker_a.Finish();
      return BothWhole{.same_bytes = true, .a = facts, .b = facts};
    }
    if (block_a.size() == kBlockBytes) reading_a->Start();
    checker_a.Feed(block_a);
  }
}

std::optional<std::string> WhyRefused(const Input& input, const std::atomic<bool>* dropped) {
  auto reader = input.OpenReader();
  if (!reader) return reader.error().ToString();
  const auto stop = [&] {
    return input.stopped() || (dropped != nullptr && dropped->load(std::memory_order_relaxed));
  };
  if (const Status whole = (*reader)->CheckRest(stop); !whole) {
    return whole.error().code() == ErrorCode::kCancelled ? "The comparison was stopped."
                                                         : whole.error().ToString();
  }
  const auto& refusals = (*reader)->refusals();
  if (refusals.empty()) return std::nullopt;
  std::string reasons;
  for (const trace::RefusedEvent& refusal : refusals) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : ", ",
                           trace::RefusalName(refusal.reason), refusal.count);
  }
  return fmt::format(
      "\"{}\" holds buffers or events without a deterministic place (refused {}), so it proves "
      "nothing.",
      input.name(), reasons);
}

}  // namespace assay::compare
