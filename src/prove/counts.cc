#include "prove/counts.h"

#include <array>
#include <charconv>
#include <deque>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "assay/trace.h"

#include "base/counted.h"
#include "prove/evidence.h"

namespace assay::prove {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 1;

struct Member {
  const char* name;  // In the file.
  const char* one;   // For people, of a share of 1.
  const char* word;  // Of any other.
  uint64_t TokenCounts::*value;
};
constexpr std::array<Member, 4> kMembers = {{
    {"dispatches", "dispatch", "dispatches", &TokenCounts::dispatches},
    {"barriers", "barrier", "barriers", &TokenCounts::barriers},
    {"bytes_bound", "byte bound", "bytes bound", &TokenCounts::bytes_bound},
    {"commits", "commit", "commits", &TokenCounts::commits},
}};

void AddTo(TokenCounts* sum, const TokenCounts& counts) {
  ++sum->tokens;
  for (const Member& member : kMembers) sum->*member.value += counts.*member.value;
}

void Count(const trace::Event& event, TokenCounts* counts) {
  if (std::holds_alternative<trace::BarrierEvent>(event)) ++counts->barriers;
  if (std::holds_alternative<trace::CommitEvent>(event)) ++counts->commits;
  if (const auto* dispatch = std::get_if<trace::DispatchEvent>(&event)) {
    ++counts->dispatches;
    for (const trace::BufferAccess& access : dispatch->accesses) {
      counts->bytes_bound += access.range.size();
    }
  }
}

// A token's share, a whole number where it is one.
std::string Share(uint64_t count, uint64_t tokens) {
  if (count % tokens == 0) return fmt::format("{}", count / tokens);
  return fmt::format("{:.2f}", static_cast<double>(count) / static_cast<double>(tokens));
}

// Below 0, 0 or above as a token's share of a is smaller, the same or larger than that of b.
int CompareShares(uint64_t a, uint64_t tokens_a, uint64_t b, uint64_t tokens_b) {
  if (tokens_a == tokens_b) return a < b ? -1 : a > b ? 1 : 0;
  const auto share = [](uint64_t count, uint64_t tokens) {
    return static_cast<double>(count) / static_cast<double>(tokens);
  };
  const double difference = share(a, tokens_a) - share(b, tokens_b);
  return difference < 0 ? -1 : difference > 0 ? 1 : 0;
}

}  // namespace

Result<TokenCounts> CountTokens(const std::string& path, const std::function<bool()>& stop) {
  ASSAY_ASSIGN_OR_RETURN(const auto reader, trace::TraceReader::Open(path, {.stop = stop}));
  std::optional<uint64_t> steps;
  std::deque<TokenCounts> tokens;
  TokenCounts token;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::optional<trace::Event> event, reader->Next());
    if (!event) break;
    if (const auto* meta = std::get_if<trace::MetaEvent>(&*event)) {
      uint64_t value = 0;
      const char* end = meta->value.data() + meta->value.size();
      const auto [behind, error] = std::from_chars(meta->value.data(), end, value);
      if (meta->key == "steps" && error == std::errc() && behind == end) steps = value;
    }
    Count(*event, &token);
    if (!std::holds_alternative<trace::WaitEvent>(*event) || token.commits == 0) continue;
    tokens.push_back(token);
    token = {};
    if (steps && tokens.size() > *steps) tokens.pop_front();
  }
  if (!reader->refusals().empty()) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" holds refused buffers: it proves nothing.", path));
  }
  TokenCounts sum;
  for (const TokenCounts& each : tokens) AddTo(&sum, each);
  if (sum.tokens == 0 || sum.tokens < steps.value_or(0)) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" has {} for committed work, but {} to be counted.", path,
                            Counted(sum.tokens, "wait"),
                            steps.value_or(1) == 1 ? "1 token was"
                                                   : fmt::format("{} tokens were", *steps)));
  }
  return sum;
}

Result<CountsByTrace> ReadCountsOf(const std::string& path, const std::function<bool()>& stop) {
  CountsByTrace counts;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    ASSAY_ASSIGN_OR_RETURN(counts["trace"], CountTokens(path, stop));
    return counts;
  }
  ASSAY_ASSIGN_OR_RETURN(const EvidenceFolder folder, EvidenceFolder::Open(path));
  for (const int64_t depth : folder.manifest().depths) {
    ASSAY_ASSIGN_OR_RETURN(counts[fmt::format("depth-{}", depth)],
                           CountTokens(folder.TracePath(depth), stop));
  }
  return counts;
}

std::string FormatCountsJson(const CountsByTrace& counts) {
  ordered_json json = {{"format", kFormat}};
  json["traces"] = ordered_json::object();
  for (const auto& [name, trace] : counts) {
    ordered_json item = {{"tokens", trace.tokens}};
    for (const Member& member : kMembers) item[member.name] = trace.*member.value;
    json["traces"][name] = std::move(item);
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<CountsByTrace> ParseCountsJson(std::string_view text, const std::string& path,
                                      std::string_view counted) {
  const auto fault = [&](std::string_view what) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" is no file of counts: {}. `assay counts --check {} --update "
                            "{}` writes it again.",
                            path, what, path, counted));
  };
  const ordered_json json = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fault("it is not whole JSON");
  if (json.value("format", ordered_json()) != kFormat) return fault("its format is not 1");
  const ordered_json traces = json.value("traces", ordered_json());
  if (!traces.is_object()) return fault("it has no \"traces\"");
  CountsByTrace counts;
  for (const auto& [name, item] : traces.items()) {
    TokenCounts& trace = counts[name];
    const auto take = [&item = item](const char* member, uint64_t* out) {
      const auto found = item.is_object() ? item.find(member) : item.end();
      if (found == item.end() || !found->is_number_unsigned()) return false;
      *out = found->get<uint64_t>();
      return true;
    };
    bool good = take("tokens", &trace.tokens) && trace.tokens > 0;
    for (const Member& member : kMembers) good &= take(member.name, &(trace.*member.value));
    if (!good) return fault(fmt::format("a count of \"{}\" is missing or no whole number", name));
  }
  return counts;
}

std::string FormatCountsText(const CountsByTrace& counts) {
  std::string text;
  for (const auto& [name, trace] : counts) {
    text += fmt::format("{}, a token:", name);
    for (const Member& member : kMembers) {
      const std::string share = Share(trace.*member.value, trace.tokens);
      text += fmt::format("{} {} {}", &member == &kMembers.front() ? "" : ",", share,
                          share == "1" ? member.one : member.word);
    }
    text += fmt::format(" (of {})\n", Counted(trace.tokens, "token"));
  }
  return text;
}

Result<CountsCheck> CheckCounts(const CountsByTrace& found, const CountsByTrace& allowed) {
  for (const auto* side : {&found, &allowed}) {
    for (const auto& [name, counts] : *side) {
      if (found.contains(name) && allowed.contains(name)) continue;
      return Fail(ErrorCode::kInvalidArgument, name,
                  fmt::format("Only the {} \"{}\"; count the same traces, or take them over with "
                              "--update.",
                              side == &found ? "recording has" : "file of counts names", name));
    }
  }
  CountsCheck check;
  for (const auto& [name, counts] : found) {
    const TokenCounts& limit = allowed.at(name);
    for (const Member& member : kMembers) {
      const int order =
          CompareShares(counts.*member.value, counts.tokens, limit.*member.value, limit.tokens);
      if (order == 0) continue;
      (order > 0 ? check.risen : check.fallen)
          .push_back(fmt::format("{}: {} a token {} from {} to {}.", name, member.word,
                                 order > 0 ? "rose" : "fell",
                                 Share(limit.*member.value, limit.tokens),
                                 Share(counts.*member.value, counts.tokens)));
    }
  }
  return check;
}

}  // namespace assay::prove
