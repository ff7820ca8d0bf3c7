#include "prove/evidence.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counted.h"
#include "base/file.h"
#include "base/hash.h"
#include "prove/json_file.h"
#include "prove/work_folder.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kFormat = 2;
constexpr int kOldestFormat = 1;
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kIdsName = "ids.json";
constexpr std::string_view kScanName = "kernels.scan";
// Far above what a recording writes; a larger file is not ours.
constexpr uint64_t kMaxManifestBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxIdsBytes = uint64_t{1} << 30;

std::string Join(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

std::string TraceName(int64_t depth, bool compressed) {
  return fmt::format("depth-{}.trace{}", depth, compressed ? ".zst" : "");
}

// True for the names that a recording gives to its files.
bool IsEvidenceName(std::string_view name) {
  if (name == kManifestName || name == kIdsName || name == kScanName) return true;
  if (name.ends_with(".zst")) name.remove_suffix(4);
  if (!name.starts_with("depth-") || !name.ends_with(".trace")) return false;
  name.remove_prefix(6);
  name.remove_suffix(6);
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

bool Lists(const EvidenceManifest& manifest, std::string_view name) {
  return std::ranges::count(manifest.files, name, &EvidenceFile::name) > 0;
}

Result<EvidenceFile> Describe(const std::string& folder, const std::string& name) {
  ASSAY_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(Join(folder, name)));
  return EvidenceFile{name, file.bytes().size(), HexDigest(file.bytes())};
}

std::string FormatIds(std::span<const IdSequence> sequences) {
  std::string text = fmt::format("{{\"format\":{},\"sequences\":[", kFormat);
  for (const IdSequence& sequence : sequences) {
    if (&sequence != &sequences.front()) text += ',';
    text += fmt::format("\n{{\"depth\":{},\"ids\":[{}]}}", sequence.depth,
                        fmt::join(sequence.ids, ","));
  }
  return text + "\n]}\n";
}

std::string FormatManifest(const EvidenceManifest& manifest) {
  ordered_json json;
  json["format"] = kFormat;
  json["tool_version"] = manifest.facts.tool_version;
  json["trace_version"] = manifest.facts.trace_version;
  json["scan_version"] = kScanVersion;
  json["command"] = manifest.facts.command;
  json["command_options"] = ordered_json::object();
  for (const auto& [name, value] : manifest.facts.command_options) {
    json["command_options"][name] = value;
  }
  json["model_digest"] = manifest.facts.model_digest;
  json["depths"] = manifest.depths;
  json["steps"] = manifest.facts.steps;
  json["files"] = ordered_json::array();
  for (const EvidenceFile& file : manifest.files) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}});
  }
  json["complete"] = true;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<int64_t> ReadFormat(JsonMembers& members, const std::string& path) {
  const int64_t format = members.Count("format");
  ASSAY_TRY(members.status());
  if (format >= kOldestFormat && format <= kFormat) return format;
  return Fail(ErrorCode::kUnsupported, path,
              fmt::format("\"{}\" has format {}; this program reads formats {} to {}.", path,
                          format, kOldestFormat, kFormat));
}

Result<EvidenceManifest> ReadManifest(const std::string& folder) {
  const std::string path = Join(folder, kManifestName);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return Fail(ErrorCode::kNotFound, folder,
                fmt::format("The folder \"{}\" has no {}: its recording did not finish, or it is "
                            "no evidence folder. Record it again.",
                            folder, kManifestName));
  }
  ASSAY_ASSIGN_OR_RETURN(const ordered_json json, ReadJson(path, kMaxManifestBytes));
  JsonMembers members(json, path);
  EvidenceManifest manifest;
  ASSAY_ASSIGN_OR_RETURN(manifest.format, ReadFormat(members, path));
  if (manifest.format > kOldestFormat) manifest.facts.command = members.Text("command");
  manifest.facts.tool_version = members.Text("tool_version");
  manifest.facts.trace_version =
      static_cast<int>(std::min<int64_t>(members.Count("trace_version"), INT32_MAX));
  if (const ordered_json* options = members.Object("command_options")) {
    for (const auto& [name, value] : options->items()) {
      if (!value.is_string())
        members.Refuse("\"command_options\" holds a value that is no text");
      else
        manifest.facts.command_options[name] = value.get<std::string>();
    }
  }
  manifest.facts.model_digest = members.Text("model_digest");
  if (const ordered_json* depths = members.List("depths")) {
    for (const ordered_json& depth : *depths) {
      const bool good = depth.is_number_integer() && depth >= 0 && depth <= INT64_MAX;
      const int64_t value = good ? depth.get<int64_t>() : -1;
      if (!good || (!manifest.depths.empty() && value <= manifest.depths.back())) {
        members.Refuse("\"depths\" is not a list of rising whole numbers");
      } else {
        manifest.depths.push_back(value);
      }
    }
  }
  manifest.facts.steps = members.Count("steps");
  if (const ordered_json* files = members.List("files")) {
    for (const ordered_json& item : *files) {
      JsonMembers file(item, path);
      manifest.files.push_back(
          {file.Text("name"), static_cast<uint64_t>(file.Count("bytes")), file.Text("digest")});
      ASSAY_TRY(file.status());
    }
  }
  members.CheckComplete();
  ASSAY_TRY(members.status());
  return manifest;
}

// The manifest must list exactly the files that belong to its depths, each once.
Status CheckFileNames(const std::string& folder, const EvidenceManifest& manifest) {
  const auto fault = [&folder](std::string what) {
    return Fail(ErrorCode::kFormat, folder,
                fmt::format("The manifest of \"{}\" {}.", folder, what));
  };
  std::set<std::string> names;
  for (const EvidenceFile& file : manifest.files) {
    if (!names.insert(file.name).second) return fault(fmt::format("lists \"{}\" twice", file.name));
  }
  if (names.erase(std::string(kIdsName)) == 0 &&
      (manifest.format == kOldestFormat || manifest.facts.steps != 0)) {
    return fault(fmt::format("lists no {}", kIdsName));
  }
  if (manifest.format > kOldestFormat) names.erase(std::string(kScanName));
  for (const int64_t depth : manifest.depths) {
    const size_t traces =
        names.erase(TraceName(depth, false)) + names.erase(TraceName(depth, true));
    if (traces != 1) return fault(fmt::format("lists {} traces of depth {}", traces, depth));
  }
  if (manifest.depths.empty()) return fault("lists no depth");
  if (!names.empty()) {
    return fault(fmt::format("lists \"{}\", which belongs to no depth", *names.begin()));
  }
  return {};
}

Status CheckContents(const std::string& folder, const EvidenceFile& listed) {
  ASSAY_ASSIGN_OR_RETURN(const EvidenceFile found, Describe(folder, listed.name));
  const std::string path = Join(folder, listed.name);
  if (found.bytes != listed.bytes) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" has {}, but the manifest says {}: it is not the file "
                            "that was recorded.",
                            path, Counted(found.bytes, "byte"), listed.bytes));
  }
  if (found.digest != listed.digest) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" has digest {}, but the manifest says {}: it is not the file "
                            "that was recorded.",
                            path, found.digest, listed.digest));
  }
  return {};
}

Result<std::vector<IdSequence>> ReadIds(const std::string& folder,
                                        const EvidenceManifest& manifest) {
  const std::string path = Join(folder, kIdsName);
  ASSAY_ASSIGN_OR_RETURN(const ordered_json json, ReadJson(path, kMaxIdsBytes));
  JsonMembers members(json, path);
  ASSAY_TRY(ReadFormat(members, path));
  std::vector<IdSequence> sequences;
  if (const ordered_json* list = members.List("sequences")) {
    for (const ordered_json& item : *list) {
      JsonMembers fields(item, path);
      IdSequence& sequence = sequences.emplace_back();
      sequence.depth = fields.Count("depth");
      if (const ordered_json* ids = fields.List("ids")) {
        for (const ordered_json& id : *ids) {
          const bool good = id.is_number_integer() && id >= 0 && id <= INT32_MAX;
          if (!good) fields.Refuse("\"ids\" holds something that is no token id");
          sequence.ids.push_back(good ? id.get<int32_t>() : 0);
        }
      }
      ASSAY_TRY(fields.status());
      if (std::cmp_not_equal(sequence.ids.size(), manifest.facts.steps)) {
        fields.Refuse(fmt::format("depth {} has {}, but the manifest says {}", sequence.depth,
                                  Counted(sequence.ids.size(), "id"),
                                  Counted(static_cast<uint64_t>(manifest.facts.steps), "step")));
      }
      if (sequence.ids.empty()) fields.Refuse(fmt::format("depth {} has no ids", sequence.depth));
      ASSAY_TRY(fields.status());
    }
  }
  if (!std::ranges::equal(sequences, manifest.depths, {}, &IdSequence::depth)) {
    members.Refuse("the depths are not those of the manifest");
  }
  ASSAY_TRY(members.status());
  return sequences;
}

}  // namespace

namespace {

// Refuses to take the place of anything but evidence.
Status CheckReplaceable(const std::string& folder, bool replace) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) return {};
  const auto refuse = [&folder](std::string_view why) {
    return Fail(ErrorCode::kInvalidArgument, folder,
                fmt::format("The folder \"{}\" {}.", folder, why));
  };
  if (!fs::is_directory(folder, failure)) {
    return Fail(ErrorCode::kInvalidArgument, folder,
                fmt::format("\"{}\" exists and is not a folder; name another one.", folder));
  }
  const bool empty = fs::is_empty(folder, failure);
  if (failure) return refuse(fmt::format("cannot be read: {}", failure.message()));
  if (empty) return {};
  if (!replace) {
    return refuse("is not empty; name another one, or give --force to replace evidence in it");
  }
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (IsEvidenceName(name)) continue;
    return refuse(fmt::format(
        "holds \"{}\", which is no part of evidence; nothing was replaced. Name another one",
        name));
  }
  const auto manifest = ReadManifest(folder);
  if (!manifest) {
    return refuse(fmt::format("is not evidence that could be replaced ({}); name another one",
                              manifest.error().message()));
  }
  return {};
}

}  // namespace

Result<EvidenceWriter> EvidenceWriter::Create(const std::string& folder, bool replace) {
  const std::string target = FolderTarget(folder);
  ASSAY_TRY(CheckReplaceable(target, replace));
  ASSAY_ASSIGN_OR_RETURN(std::string work, MakeWorkFolder(target));
  return EvidenceWriter(target, std::move(work), replace);
}

EvidenceWriter::EvidenceWriter(EvidenceWriter&& other) noexcept
    : folder_(std::move(other.folder_)),
      work_folder_(std::exchange(other.work_folder_, {})),
      replace_(other.replace_),
      traces_(std::move(other.traces_)) {}

EvidenceWriter::~EvidenceWriter() {
  if (work_folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(work_folder_, ignored);
}

std::string EvidenceWriter::TracePath(int64_t depth, bool compressed) {
  return Join(work_folder_, traces_[depth] = TraceName(depth, compressed));
}

std::string EvidenceWriter::FinalTracePath(int64_t depth) const {
  return Join(folder_, traces_.at(depth));
}

Status EvidenceWriter::MoveIntoPlace() {
  // Takes the place of nothing or of an empty folder.
  TakeOverMode(folder_, work_folder_);
  if (::rename(work_folder_.c_str(), folder_.c_str()) == 0) {
    work_folder_.clear();
    return {};
  }
  int error_number = errno;
  if (error_number == ENOTEMPTY || error_number == EEXIST) {
    ASSAY_TRY(CheckReplaceable(folder_, replace_));
    if (::renameat2(AT_FDCWD, work_folder_.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE) ==
        0) {
      // The older evidence now lies in the folder beside it, which the destructor removes.
      return {};
    }
    error_number = errno;
  }
  return Fail(
      ErrorCode::kIo, folder_,
      fmt::format("Cannot move the finished recording to \"{}\": {}. What stood there before "
                  "is unchanged.",
                  folder_, std::system_category().message(error_number)));
}

Status EvidenceWriter::Finish(const EvidenceFacts& facts, std::span<const IdSequence> sequences,
                              const std::optional<Scan>& scan) {
  EvidenceManifest manifest{.format = kFormat, .facts = facts, .depths = {}, .files = {}};
  for (const auto& [depth, name] : traces_) {
    manifest.depths.push_back(depth);
    ASSAY_ASSIGN_OR_RETURN(EvidenceFile file, Describe(work_folder_, name));
    manifest.files.push_back(std::move(file));
  }
  std::vector<IdSequence> sorted(sequences.begin(), sequences.end());
  std::ranges::sort(sorted, {}, &IdSequence::depth);
  if (!sorted.empty() && !std::ranges::equal(sorted, manifest.depths, {}, &IdSequence::depth)) {
    return Fail(ErrorCode::kInvalidArgument, folder_,
                fmt::format("The evidence of \"{}\" has {} of ids for {}; each depth needs one of "
                            "both.",
                            folder_, Counted(sorted.size(), "sequence"),
                            Counted(manifest.depths.size(), "trace")));
  }
  const auto add = [&](std::string_view name, const std::string& text) -> Status {
    ASSAY_TRY(WriteFile(Join(work_folder_, name), text));
    ASSAY_ASSIGN_OR_RETURN(EvidenceFile file, Describe(work_folder_, std::string(name)));
    manifest.files.push_back(std::move(file));
    return {};
  };
  if (!sorted.empty()) ASSAY_TRY(add(kIdsName, FormatIds(sorted)));
  if (scan) ASSAY_TRY(add(kScanName, FormatScan(*scan)));
  ASSAY_TRY(WriteFile(Join(work_folder_, kManifestName), FormatManifest(manifest)));
  return MoveIntoPlace();
}

Result<EvidenceFolder> EvidenceFolder::Open(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Fail(ErrorCode::kNotFound, folder, fmt::format("\"{}\" is not a folder.", folder));
  }
  ASSAY_ASSIGN_OR_RETURN(EvidenceManifest manifest, ReadManifest(folder));
  ASSAY_TRY(CheckFileNames(folder, manifest));
  for (const EvidenceFile& file : manifest.files) ASSAY_TRY(CheckContents(folder, file));
  EvidenceFolder evidence(folder, std::move(manifest));
  if (Lists(evidence.manifest_, kIdsName)) {
    ASSAY_ASSIGN_OR_RETURN(evidence.sequences_, ReadIds(folder, evidence.manifest_));
  }
  return evidence;
}

std::string EvidenceFolder::TracePath(int64_t depth) const {
  for (const bool compressed : {false, true}) {
    const std::string name = TraceName(depth, compressed);
    if (Lists(manifest_, name)) return Join(folder_, name);
  }
  return {};
}

std::string EvidenceFolder::ScanPath() const {
  return Lists(manifest_, kScanName) ? Join(folder_, kScanName) : std::string();
}

}  // namespace assay::prove
