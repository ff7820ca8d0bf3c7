#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "assay/prove.h"

#include "base/file.h"
#include "prove/placeholders.h"
#include "prove/proof_steps.h"
#include "prove/toml_reader.h"

namespace assay::prove {
namespace {

constexpr std::array<std::string_view, kChangeKindCount> kChangeKindNames = {"numbering",
                                                                             "barriers-fewer",
                                                                             "barriers-more",
                                                                             "barriers-moved",
                                                                             "order",
                                                                             "dispatches-added",
                                                                             "dispatches-removed",
                                                                             "constants",
                                                                             "bindings",
                                                                             "kernels-added",
                                                                             "kernels-removed",
                                                                             "kernels-changed",
                                                                             "host",
                                                                             "meta"};

constexpr std::string_view kNothingToRecord =
    "there is nothing to record: [record] needs \"commands\".";
constexpr int64_t kLongestLimit = 7 * 24 * 3600;

void ReadVerdict(const toml::table& table, TomlReader* reader, Config* config) {
  const std::vector<std::string> keys = {"require", "allow"};
  reader->CheckKeys(table, "[verdict]", keys);
  const std::vector<std::string> parts = {"kernels", "trace", "ids"};
  std::vector<std::string> required = parts;
  reader->Texts(
      table, "require", [&](const std::string& word) { return CheckWord(word, "require", parts); },
      &required);
  if (required.empty()) reader->Refuse(*table.get("require"), "\"require\" must name a part.");
  const auto requires_part = [&](const char* part) {
    return std::ranges::count(required, part) > 0;
  };
  config->require_kernels = requires_part("kernels");
  config->require_trace = requires_part("trace");
  config->require_ids = requires_part("ids");
  const std::vector<std::string> kinds(kChangeKindNames.begin(), kChangeKindNames.end());
  std::vector<std::string> allowed;
  reader->Texts(
      table, "allow", [&](const std::string& word) { return CheckWord(word, "allow", kinds); },
      &allowed);
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (std::ranges::count(allowed, kinds[i]) > 0) {
      config->allow.push_back(static_cast<ChangeKind>(i));
    }
  }
}

}  // namespace

std::string_view ChangeKindName(ChangeKind kind) {
  return kChangeKindNames[static_cast<size_t>(kind)];
}

std::optional<ChangeKind> ChangeKindNamed(std::string_view name) {
  const auto found = std::ranges::find(kChangeKindNames, name);
  if (found == kChangeKindNames.end()) return std::nullopt;
  return static_cast<ChangeKind>(found - kChangeKindNames.begin());
}

Result<Config> ReadConfig(const std::string& path, std::span<const std::string> more) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseConfig(text, path, more);
}

Result<Config> ParseConfig(std::string_view text, const std::string& path,
                           std::span<const std::string> more) {
  TomlReader reader(path);
  const std::optional<toml::table> document = reader.Parse(text);
  if (!document) return Fail(reader.status().error());
  const std::vector<std::string> tables = {"build", "record", "verdict"};
  reader.CheckKeys(*document, "the file", tables);
  Config config;
  config.path = path;
  if (const toml::table* build = reader.Table(*document, "build")) {
    const std::vector<std::string> keys = {"commands", "key", "time_limit_s"};
    reader.CheckKeys(*build, "[build]", keys);
    reader.Texts(
        *build, "commands",
        [](const std::string& command) { return CheckPlaceholders(command, kBuildPlaceholders); },
        &config.build_commands);
    reader.Number(*build, "time_limit_s", 1, kLongestLimit, &config.build_limit_s);
    reader.Text(*build, "key", &config.key_command);
  }
  if (const toml::table* record = reader.Table(*document, "record")) {
    const std::vector<std::string> keys = {"commands", "depths", "model", "time_limit_s",
                                           "variables"};
    reader.CheckKeys(*record, "[record]", keys);
    if (const toml::table* variables = reader.Table(*record, "variables")) {
      reader.Variables(*variables, "", &config.variables);
    }
    std::vector<std::string_view> known(kRecordPlaceholders.begin(), kRecordPlaceholders.end());
    known.insert(known.end(), more.begin(), more.end());
    for (const auto& [name, value] : config.variables) known.push_back(name);
    reader.Texts(
        *record, "commands",
        [&known](const std::string& command) { return CheckPlaceholders(command, known); },
        &config.record_commands);
    reader.Numbers(*record, "depths", INT32_MAX, &config.depths);
    if (config.depths.empty()) {
      reader.Refuse(*record->get("depths"), "\"depths\" must name at least one depth.");
    }
    reader.Text(*record, "model", &config.model);
    reader.Number(*record, "time_limit_s", 1, kLongestLimit, &config.record_limit_s);
    if (config.record_commands.empty()) {
      const toml::node* commands = record->get("commands");
      reader.Refuse(commands == nullptr ? *record : *commands, kNothingToRecord);
    }
  }
  if (const toml::table* verdict = reader.Table(*document, "verdict")) {
    ReadVerdict(*verdict, &reader, &config);
  }
  ASSAY_TRY(reader.status());
  if (config.record_commands.empty()) reader.RefuseFile(kNothingToRecord);
  ASSAY_TRY(reader.status());
  if (!config.model.empty()) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path folder = fs::absolute(path, ignored).parent_path();
    config.model = (folder / config.model).lexically_normal().string();
  }
  return config;
}

std::string_view ConfigTemplate() {
  return R"(# What `assay prove` builds, records and compares (docs/prove.md).
# Commands run in a shell, in the root of the checked out tree. Each of these stands for a path or a
# value, quoted for the shell:
#   {source}  the checked out tree          {build}   the folder to build in, kept between runs
#   {out}     the folder to record into     {depth}   one depth; the command runs once for each
#   {depths}  all depths, "0,600"           {model}   the model file

[build]
# Run one after another; what they print goes to a log file each.
commands = [
  "cmake -S {source} -B {build} -DCMAKE_BUILD_TYPE=Release",
  "cmake --build {build} --parallel",
]
time_limit_s = 3600  # Of each command.
# What this prints is a part of the key under which builds are kept; the default is the versions of
# the compilers and their flags in the environment. Runs in the root of the working tree.
# key = "c++ --version; cmake --version"

[record]
# They leave in {out} either a folder of evidence, as `assay trace` does, or loose files:
#   depth-N.trace (or .zst)  one for each depth
#   depth-N.ids              the ids generated there, separated by white space; may be missing
#   kernels.scan             as `assay scan -o` writes it; may be missing
commands = [
  "{build}/assay trace -q -o {out} --depth {depths}",
]
depths = [0, 600]
# model = "models/model.gguf"  # Relative to this file.
time_limit_s = 600
# Names of your own for the commands; those of a matrix take their place (`assay prove --matrix`).
# [record.variables]
# backend = "cpu"

[verdict]
# The parts that must be equal: "kernels", "trace", "ids".
require = ["kernels", "trace", "ids"]
# Kinds of change that may be there all the same: "numbering", "barriers-fewer", "barriers-more",
# "barriers-moved", "order", "dispatches-added", "dispatches-removed", "constants", "bindings",
# "kernels-added", "kernels-removed", "kernels-changed", "host", "meta".
allow = []
)";
}

}  // namespace assay::prove
