#include "prove/job_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/counted.h"
#include "base/file.h"
#include "base/hash.h"
#include "prove/evidence.h"
#include "prove/json_file.h"
#include "prove/proof_steps.h"
#include "prove/work_folder.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kFormat = 2;
constexpr std::string_view kJobName = "job.json";
constexpr std::string_view kManifest = "manifest.json";
// Far above what 100,000 ids take.
constexpr uint64_t kMaxJobBytes = uint64_t{64} << 20;

std::string Join(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

// Removed at the end, unless it was moved away.
class WorkFolder final {
 public:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<std::string> DigestOfManifest(const std::string& evidence) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(Join(evidence, kManifest)));
  return HexDigest(text);
}

ordered_json SideJson(const ProofSide& side, const std::string& manifest_digest) {
  return {{"name", side.name},
          {"commit", side.commit},
          {"identity", side.identity},
          {"changed_files", side.changed},
          {"manifest", manifest_digest}};
}

// The commit and the count of changed files are for people; the state is what folders are held
// together by. It is the commit, and for a changed tree "+" and a digest.
Status CheckState(const ProofSide& side, const std::string& path) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const bool id = side.commit.size() >= 40 &&
                  side.commit.find_first_not_of(kHex) == std::string::npos &&
                  side.identity.starts_with(side.commit);
  const std::string_view rest =
      id ? std::string_view(side.identity).substr(side.commit.size()) : std::string_view();
  if (!id || (!rest.empty() && rest.front() != '+')) {
    return Fail(
        ErrorCode::kFormat, path,
        fmt::format("\"{}\" contradicts itself: the commit {} of {} is not that of its state "
                    "({}).",
                    path, side.commit, side.role, side.identity));
  }
  if (rest.empty() == (side.changed == 0)) return {};
  return Fail(ErrorCode::kFormat, path,
              fmt::format("\"{}\" contradicts itself: it counts {} of {}, and its state ({}) is of "
                          "{}.",
                          path, Counted(side.changed, "changed file"), side.role, side.identity,
                          rest.empty() ? "none" : "some"));
}

Status ReadSide(const ordered_json& json, const std::string& path, const std::string& folder,
                ProofSide* side) {
  JsonMembers members(json, path);
  const ordered_json* object = members.Object(side->role.c_str());
  ASSAY_TRY(members.status());
  JsonMembers fields(*object, path);
  side->name = fields.Text("name");
  side->commit = fields.Text("commit");
  side->identity = fields.Text("identity");
  side->changed = static_cast<uint64_t>(fields.Count("changed_files"));
  const std::string digest = fields.Text("manifest");
  ASSAY_TRY(fields.status());
  ASSAY_TRY(CheckState(*side, path));
  side->evidence = Join(folder, side->role);
  // The manifest before what it lists: a folder that lacks it says so in its own words.
  ASSAY_TRY(EvidenceFolder::Open(side->evidence));
  ASSAY_ASSIGN_OR_RETURN(const std::string found, DigestOfManifest(side->evidence));
  if (found == digest) return {};
  return Fail(
      ErrorCode::kFormat, folder,
      fmt::format("\"{}\" is not the evidence that the job of \"{}\" recorded: its manifest "
                  "has digest {}, but {} says {}.",
                  side->evidence, folder, found, kJobName, digest));
}

std::vector<std::string> ReadTexts(const ordered_json* list, const char* name,
                                   JsonMembers* members) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const ordered_json& item : *list) {
    if (item.is_string()) {
      texts.push_back(item.get<std::string>());
    } else {
      members->Refuse(fmt::format("\"{}\" holds something that is no text", name));
    }
  }
  return texts;
}

void ReadJob(JsonMembers* members, MatrixJob* job) {
  job->id = members->Text("job");
  job->model = members->Text("model");
  job->backend = members->Text("backend");
  job->depth = members->Count("depth");
  job->model_file = members->Text("model_file");
  const ordered_json* variables = members->Object("variables");
  if (variables == nullptr) return;
  for (const auto& [name, value] : variables->items()) {
    if (value.is_string()) {
      job->variables[name] = value.get<std::string>();
    } else {
      members->Refuse("\"variables\" holds a value that is no text");
    }
  }
}

// What the job is must be what its id says, and its evidence must be of it.
Status CheckJob(const JobFacts& facts, const std::string& path) {
  const auto contradicts = [&path](const std::string& what) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" contradicts itself: {}.", path, what));
  };
  const MatrixJob& job = facts.job;
  if (std::ranges::count(facts.matrix, job.id) != 1) {
    return contradicts(
        fmt::format("it is of job \"{}\", which its own matrix does not hold", job.id));
  }
  if (const std::string id = IdOf(job); id != job.id) {
    return contradicts(fmt::format(
        "it is of job \"{}\", but its model, backend and depth make \"{}\"", job.id, id));
  }
  for (const ProofSide* side : {&facts.proof.base, &facts.proof.here}) {
    ASSAY_ASSIGN_OR_RETURN(const EvidenceFolder folder, EvidenceFolder::Open(side->evidence));
    const std::vector<int64_t>& depths = folder.manifest().depths;
    if (depths == std::vector{job.depth}) continue;
    return contradicts(fmt::format("\"{}\" holds {} {}, and the job is of depth {}", side->evidence,
                                   NounFor(depths.size(), "depth"), fmt::join(depths, ", "),
                                   job.depth));
  }
  return {};
}

void ReadRules(JsonMembers* members, Proof* proof) {
  const std::vector<std::string> required = ReadTexts(members->List("require"), "require", members);
  proof->require_kernels = std::ranges::count(required, "kernels") > 0;
  proof->require_trace = std::ranges::count(required, "trace") > 0;
  proof->require_ids = std::ranges::count(required, "ids") > 0;
  for (const std::string& word : ReadTexts(members->List("allow"), "allow", members)) {
    const auto kind = ChangeKindNamed(word);
    if (kind) {
      proof->allow.push_back(*kind);
    } else {
      members->Refuse(fmt::format("\"allow\" names the kind \"{}\", which there is not", word));
    }
  }
}

}  // namespace

Status CheckJobFolder(const std::string& folder) {
  std::error_code failure;
  const fs::path path = FolderTarget(folder);
  if (!fs::exists(fs::symlink_status(path, failure))) {
    // Those that are missing are made; said early, since a job takes long.
    fs::path above = fs::absolute(path, failure).parent_path();
    while (!fs::exists(above, failure) && above.has_relative_path()) above = above.parent_path();
    if (fs::is_directory(above, failure) && ::access(above.c_str(), W_OK | X_OK) == 0) return {};
    return Fail(ErrorCode::kIo, folder,
                fmt::format("The folder \"{}\" cannot be made: \"{}\" is no folder that this user "
                            "may write to.",
                            folder, above.string()));
  }
  if (fs::is_directory(path, failure) && fs::is_empty(path, failure)) return {};
  return Fail(ErrorCode::kInvalidArgument, folder,
              fmt::format("\"{}\" is there already and was left as it is; a job needs a folder of "
                          "its own: remove it, or name another one.",
                          folder));
}

Status WriteJobFolder(const std::string& folder, const JobFacts& facts) {
  ASSAY_TRY(CheckJobFolder(folder));
  std::error_code failure;
  const fs::path path = FolderTarget(folder);
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  ASSAY_ASSIGN_OR_RETURN(std::string made, MakeWorkFolder(path.string()));
  const WorkFolder work(std::move(made));
  ordered_json json;
  json["format"] = kFormat;
  json["tool_version"] = facts.tool_version;
  json["plan"] = facts.plan_digest;
  json["job"] = facts.job.id;
  json["model"] = facts.job.model;
  json["backend"] = facts.job.backend;
  json["depth"] = facts.job.depth;
  json["model_file"] = facts.job.model_file;
  json["variables"] = ordered_json::object();
  for (const auto& [name, value] : facts.job.variables) json["variables"][name] = value;
  json["require"] = RequiredParts(facts.proof);
  json["allow"] = ordered_json::array();
  for (const ChangeKind kind : facts.proof.allow) json["allow"].push_back(ChangeKindName(kind));
  for (const ProofSide* side : {&facts.proof.base, &facts.proof.here}) {
    const std::string copy = Join(work.path(), side->role);
    fs::copy(side->evidence, copy, fs::copy_options::recursive, failure);
    if (failure) {
      return Fail(ErrorCode::kIo, copy,
                  fmt::format("Cannot copy \"{}\" to \"{}\": {}.", side->evidence, copy,
                              failure.message()));
    }
    // Another run may have put other evidence there while it was copied.
    ASSAY_TRY(EvidenceFolder::Open(copy));
    ASSAY_ASSIGN_OR_RETURN(const std::string digest, DigestOfManifest(copy));
    json[side->role] = SideJson(*side, digest);
  }
  json["matrix"] = facts.matrix;
  json["complete"] = true;
  ASSAY_TRY(WriteFile(Join(work.path(), kJobName),
                      json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"));
  TakeOverMode(path.string(), work.path());
  if (::rename(work.path().c_str(), path.c_str()) == 0) return {};
  const int error_number = errno;
  ASSAY_TRY(CheckJobFolder(folder));
  return Fail(ErrorCode::kIo, folder,
              fmt::format("Cannot move the finished job to \"{}\": {}.", folder,
                          std::system_category().message(error_number)));
}

Result<JobFacts> OpenJobFolder(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Fail(ErrorCode::kNotFound, folder, fmt::format("\"{}\" is not a folder.", folder));
  }
  const std::string path = Join(folder, kJobName);
  if (!fs::exists(path, ignored)) {
    return Fail(ErrorCode::kNotFound, folder,
                fmt::format("The folder \"{}\" has no {}: its job did not finish, or it is no "
                            "folder of a job. Run it again.",
                            folder, kJobName));
  }
  ASSAY_ASSIGN_OR_RETURN(const ordered_json json, ReadJson(path, kMaxJobBytes));
  JsonMembers members(json, path);
  const int64_t format = members.Count("format");
  ASSAY_TRY(members.status());
  if (format != kFormat) {
    return Fail(
        ErrorCode::kUnsupported, path,
        fmt::format("\"{}\" has format {}; this program reads format {}.", path, format, kFormat));
  }
  JobFacts facts;
  facts.tool_version = members.Text("tool_version");
  ReadJob(&members, &facts.job);
  facts.plan_digest = members.Text("plan");
  facts.matrix = ReadTexts(members.List("matrix"), "matrix", &members);
  ReadRules(&members, &facts.proof);
  members.CheckComplete();
  ASSAY_TRY(members.status());
  facts.proof.base.role = "base";
  facts.proof.here.role = "here";
  ASSAY_TRY(ReadSide(json, path, folder, &facts.proof.base));
  ASSAY_TRY(ReadSide(json, path, folder, &facts.proof.here));
  ASSAY_TRY(CheckJob(facts, path));
  return facts;
}

}  // namespace assay::prove
