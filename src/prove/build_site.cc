#include "prove/build_site.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>

#include "assay/trace.h"

#include "base/counted.h"
#include "base/file.h"
#include "base/hash.h"
#include "prove/evidence.h"
#include "prove/placeholders.h"
#include "prove/process.h"
#include "prove/site_cache.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTailLines = 20;
constexpr size_t kTailBytes = 8192;

Status MakeFolder(const std::string& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (!failure) return {};
  return Fail(ErrorCode::kIo, folder,
              fmt::format("Cannot make the folder \"{}\": {}.", folder, failure.message()));
}

std::string TailOf(const std::string& path) {
  const Result<std::string> read = ReadFile(path);
  if (!read) return {};
  std::string_view text = *read;
  if (text.size() > kTailBytes) text.remove_prefix(text.size() - kTailBytes);
  size_t lines = 0;
  for (size_t at = text.size(); at > 0; --at) {
    if (text[at - 1] == '\n' && at != text.size() && ++lines == kTailLines) {
      text.remove_prefix(at);
      break;
    }
  }
  return std::string(text);
}

std::string JoinedDepths(const Config& config) {
  return fmt::format("{}", fmt::join(config.depths, ","));
}

// What the model file is, without reading it: a recording writes the digest of its contents.
std::string ModelIdentity(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return path;
  return fmt::format("{} {} {}.{}", path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::string RecordKey(const Config& config) {
  std::string key = fmt::format("{}\n{}\n{}", fmt::join(config.record_commands, "\n"),
                                JoinedDepths(config), ModelIdentity(config.model));
  for (const auto& [name, value] : config.variables) key += fmt::format("\n{}={}", name, value);
  return HexDigest(key);
}

Result<std::vector<int32_t>> ReadIdsFile(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
    if (at == end) return ids;
    const auto [stop, error] = std::from_chars(at, end, ids.emplace_back());
    if (error != std::errc() || ids.back() < 0) {
      return Fail(ErrorCode::kFormat, path,
                  fmt::format("\"{}\" byte {}: an id is a whole number from 0 to {}.", path,
                              at - text.data(), INT32_MAX));
    }
    at = stop;
  }
}

// What a trace says of itself.
struct TraceFacts {
  int version = 0;
  std::string model_digest;
};
Result<TraceFacts> ReadTraceFacts(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const auto reader, trace::TraceReader::Open(path));
  TraceFacts facts{.version = reader->version(), .model_digest = {}};
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::optional<trace::Event> event, reader->Next());
    const auto* meta = event ? std::get_if<trace::MetaEvent>(&*event) : nullptr;
    if (meta == nullptr) return facts;
    if (meta->key == "model-digest") facts.model_digest = meta->value;
  }
}

}  // namespace

// A worktree for as long as it lives.
class BuildSite::Worktree final {
 public:
  Worktree(const Repository& repository, std::string folder)
      : repository_(repository), folder_(std::move(folder)) {}
  ~Worktree() { repository_.RemoveWorktree(folder_); }
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;

 private:
  const Repository& repository_;
  std::string folder_;
};

BuildSite::BuildSite(const Repository& repository, const TreeState& state, const Config& config,
                     const ProveOptions& options)
    : repository_(repository), state_(state), config_(config), options_(options) {}

std::string BuildSite::In(std::string_view name) const {
  return (fs::path(folder_) / name).string();
}

void BuildSite::Say(std::string_view what) {
  step_ = what;
  if (options_.on_step) options_.on_step(fmt::format("{}: {}", role_, what));
}

tl::unexpected<Error> BuildSite::Stopped(std::string_view more) const {
  return Fail(ErrorCode::kCancelled, role_,
              fmt::format("Stopped at {}, {}{}.", role_, step_, more));
}

void BuildSite::Note(const std::string& what) const {
  if (options_.on_note) options_.on_note(what);
}

Result<std::unique_ptr<BuildSite>> BuildSite::Enter(const Repository& repository,
                                                    const TreeState& state, const Config& config,
                                                    const ProveOptions& options, int copy,
                                                    const std::string& toolchain) {
  std::unique_ptr<BuildSite> site(new BuildSite(repository, state, config, options));
  const std::string key = HexDigest(fmt::format("{}\n{}\n{}\n{}", state.identity, copy,
                                                fmt::join(config.build_commands, "\n"), toolchain));
  std::error_code ignored;
  site->folder_ = (fs::absolute(options.cache, ignored) / key).lexically_normal().string();
  ASSAY_TRY(site->TakeTurn());
  if (options.rebuild || !state.links_out.empty()) {
    for (const auto& entry : fs::directory_iterator(site->folder_, ignored)) {
      if (entry.path().filename() != "lock") fs::remove_all(entry.path(), ignored);
    }
  }
  site->RemoveLeftovers();
  return site;
}

Status BuildSite::TakeTurn() {
  constexpr int kPollMs = 50;
  constexpr std::chrono::seconds kSilent{1};
  const std::string path = In("lock");
  const auto began = std::chrono::steady_clock::now();
  bool said = false;
  for (;;) {
    // Again each time, since a site that nobody holds may be taken away.
    ASSAY_TRY(MakeFolder(folder_));
    ASSAY_ASSIGN_OR_RETURN(lock_, FileLock::Open(path));
    ASSAY_ASSIGN_OR_RETURN(const bool locked, lock_.TryExclusive());
    if (locked && lock_.Stands()) {
      lock_.WriteHolder();
      return {};
    }
    if (locked) continue;
    if (options_.stop && options_.stop()) {
      return Fail(ErrorCode::kCancelled, path, "Stopped while another run was building the same.");
    }
    if (!said && std::chrono::steady_clock::now() - began >= kSilent) {
      said = true;
      const int64_t holder = lock_.Holder();
      Note(fmt::format("waiting for another run{} that works in \"{}\"",
                       holder > 0 ? fmt::format(" (process {})", holder) : std::string(), folder_));
    }
    ::poll(nullptr, 0, kPollMs);
  }
}

void BuildSite::RemoveLeftovers() const {
  std::error_code ignored;
  std::vector<fs::path> partial;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name == "out" || name.find(".partial-") != std::string::npos) {
      partial.push_back(entry.path());
    }
  }
  for (const fs::path& path : partial) fs::remove_all(path, ignored);
}

Result<bool> BuildSite::RunCommand(const std::string& command, const std::string& log_name,
                                   std::string_view doing, int64_t limit_s) {
  const std::string log = In("logs/" + log_name);
  ASSAY_TRY(WriteFile(log, "$ " + command + "\n"));
  const Result<ProcessResult> ran =
      RunProcess({"/bin/sh", "-c", command}, {.folder = In("source"),
                                              .log = log,
                                              .time_limit = std::chrono::seconds(limit_s),
                                              .stop = options_.stop});
  if (!ran && ran.error().code() == ErrorCode::kCancelled) {
    return Stopped(fmt::format(": {}; its log is \"{}\"", command, log));
  }
  if (!ran) return Fail(ran.error());
  const ProcessResult& result = *ran;
  if (result.exit_status == 0 && !result.timed_out) return true;
  refused_->push_back(
      {.by = role_,
       .reason =
           result.timed_out
               ? fmt::format("{} took longer than its limit ({} s): {}", doing, limit_s, command)
               : fmt::format("{} failed with status {}: {}", doing, result.exit_status, command),
       .log = log,
       .log_tail = TailOf(log)});
  return false;
}

Result<bool> BuildSite::Build() {
  std::error_code ignored;
  if (fs::exists(In("built"), ignored)) return true;
  fs::remove_all(In("build"), ignored);
  ASSAY_TRY(MakeFolder(In("build")));
  size_t number = 0;
  for (const std::string& command : config_.build_commands) {
    ++number;
    Say(fmt::format("building (command {} of {})", number, config_.build_commands.size()));
    ASSAY_ASSIGN_OR_RETURN(
        const bool done,
        RunCommand(FillPlaceholders(command, {{"source", In("source")}, {"build", In("build")}}),
                   fmt::format("build-{}.log", number), "building", config_.build_limit_s));
    if (!done) return false;
  }
  ASSAY_TRY(WriteFile(In("built"), ""));
  return true;
}

Result<bool> BuildSite::Record(const std::string& out) {
  std::map<std::string, std::string, std::less<>> values(config_.variables.begin(),
                                                         config_.variables.end());
  values["source"] = In("source");
  values["build"] = In("build");
  values["out"] = out;
  values["depths"] = JoinedDepths(config_);
  values["model"] = config_.model;
  size_t number = 0;
  for (const std::string& command : config_.record_commands) {
    ++number;
    const bool each = HasPlaceholder(command, "depth");
    for (const int64_t depth : config_.depths) {
      Say(each ? fmt::format("recording depth {}", depth) : std::string("recording"));
      const std::string log = each ? fmt::format("record-{}-depth-{}.log", number, depth)
                                   : fmt::format("record-{}.log", number);
      values["depth"] = fmt::format("{}", depth);
      ASSAY_ASSIGN_OR_RETURN(const bool done, RunCommand(FillPlaceholders(command, values), log,
                                                         "recording", config_.record_limit_s));
      if (!done) return false;
      if (!each) break;
    }
  }
  return true;
}

Status BuildSite::Gather(const std::string& out, const std::string& evidence) const {
  const auto in_out = [&out](const std::string& name) { return (fs::path(out) / name).string(); };
  std::error_code failure;
  if (fs::exists(in_out("manifest.json"), failure)) {
    ASSAY_ASSIGN_OR_RETURN(const EvidenceFolder folder, EvidenceFolder::Open(out));
    if (folder.manifest().depths != config_.depths) {
      return Fail(ErrorCode::kInvalidArgument, out,
                  fmt::format("The recording has the depths {}, but the depths {} were asked for.",
                              fmt::join(folder.manifest().depths, ","), JoinedDepths(config_)));
    }
    fs::remove_all(evidence, failure);
    fs::rename(out, evidence, failure);
    if (!failure) return {};
    return Fail(
        ErrorCode::kIo, evidence,
        fmt::format("Cannot move the recording to \"{}\": {}.", evidence, failure.message()));
  }
  fs::remove_all(evidence, failure);
  ASSAY_ASSIGN_OR_RETURN(EvidenceWriter writer, EvidenceWriter::Create(evidence, false));
  EvidenceFacts facts;
  facts.tool_version = options_.tool_version;
  facts.command = fmt::format("{}", fmt::join(config_.record_commands, " && "));
  std::vector<IdSequence> sequences;
  for (const int64_t depth : config_.depths) {
    const std::string name = fmt::format("depth-{}.trace", depth);
    const bool compressed = !fs::exists(in_out(name), failure);
    const std::string path = in_out(compressed ? name + ".zst" : name);
    if (!fs::exists(path, failure)) {
      return Fail(ErrorCode::kNotFound, out,
                  fmt::format("The record commands left neither {0} nor {0}.zst in {{out}}, and no "
                              "folder of evidence.",
                              name));
    }
    ASSAY_ASSIGN_OR_RETURN(const TraceFacts told, ReadTraceFacts(path));
    facts.trace_version = told.version;
    facts.model_digest = told.model_digest;
    fs::rename(path, writer.TracePath(depth, compressed), failure);
    const std::string ids = in_out(fmt::format("depth-{}.ids", depth));
    if (!fs::exists(ids, failure)) continue;
    IdSequence& sequence = sequences.emplace_back();
    sequence.depth = depth;
    ASSAY_ASSIGN_OR_RETURN(sequence.ids, ReadIdsFile(ids));
    if (sequence.ids.empty() || sequence.ids.size() != sequences.front().ids.size()) {
      return Fail(ErrorCode::kFormat, ids,
                  fmt::format("\"{}\" holds {}; every depth needs the same number of them, and "
                              "at least one.",
                              ids, Counted(sequence.ids.size(), "id")));
    }
    facts.steps = static_cast<int64_t>(sequence.ids.size());
  }
  std::optional<Scan> scan;
  if (fs::exists(in_out("kernels.scan"), failure)) {
    ASSAY_ASSIGN_OR_RETURN(scan, ReadScan(in_out("kernels.scan")));
  }
  return writer.Finish(facts, sequences, scan);
}

Status BuildSite::Work(ProofSide* side, std::vector<Refusal>* refused) {
  role_ = side->role;
  refused_ = refused;
  const std::string evidence = In("evidence-" + RecordKey(config_));
  if (EvidenceFolder::Open(evidence)) {
    side->evidence = evidence;
    side->cached = true;
    NoteUse(folder_, /*changed=*/false);
    return {};
  }
  ASSAY_TRY(MakeFolder(In("logs")));
  Say("checking out");
  // From before it is made, since making it may stop half way.
  const Worktree worktree(repository_, In("source"));
  if (const Status added = repository_.AddWorktree(state_, In("source")); !added) {
    if (added.error().code() == ErrorCode::kCancelled) return Stopped("");
    return added;
  }
  ASSAY_ASSIGN_OR_RETURN(const bool built, Build());
  if (!built) return {};
  const std::string out = In("out");
  std::error_code ignored;
  fs::remove_all(out, ignored);
  ASSAY_TRY(MakeFolder(out));
  ASSAY_ASSIGN_OR_RETURN(const bool recorded, Record(out));
  if (recorded) {
    if (const Status gathered = Gather(out, evidence); gathered) {
      side->evidence = evidence;
    } else {
      refused_->push_back({.by = role_, .reason = gathered.error().ToString()});
    }
  }
  fs::remove_all(out, ignored);
  NoteUse(folder_, /*changed=*/true);
  return {};
}

}  // namespace assay::prove
