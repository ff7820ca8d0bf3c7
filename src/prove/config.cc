#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "assay/prove.h"

#include "base/file.h"
#include "base/nearest.h"
#include "prove/placeholders.h"

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

constexpr int64_t kLongestLimit = 7 * 24 * 3600;

// Takes values out of tables; the first fault sticks.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  // The table `name` of the document; null when it is not there.
  const toml::table* Table(const toml::table& document, std::string_view name) {
    const toml::node* node = document.get(name);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) Refuse(*node, fmt::format("\"{}\" must be a table: [{}].", name, name));
    return node->as_table();
  }
  // Every key must be one of `known`.
  void CheckKeys(const toml::table& table, std::string_view where,
                 std::span<const std::string> known) {
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (std::ranges::count(known, name) > 0) continue;
      const std::string_view nearest = Nearest(name, known);
      RefuseAt(key.source().begin,
               fmt::format("There is no key \"{}\" in {}; {}.", name, where,
                           nearest.empty() ? fmt::format("the keys are {}", fmt::join(known, ", "))
                                           : fmt::format("did you mean \"{}\"?", nearest)));
    }
  }
  void Text(const toml::table& table, std::string_view name, std::string* out) {
    const toml::node* node = table.get(name);
    if (node == nullptr) return;
    if (const auto* value = node->as_string()) {
      *out = value->get();
    } else {
      Refuse(*node, fmt::format("\"{}\" must be a text in quotes.", name));
    }
  }
  void Number(const toml::table& table, std::string_view name, int64_t min, int64_t max,
              int64_t* out) {
    if (const toml::node* node = table.get(name)) CheckNumber(*node, name, min, max, out);
  }
  void Numbers(const toml::table& table, std::string_view name, int64_t max,
               std::vector<int64_t>* out) {
    const toml::node* node = table.get(name);
    if (node == nullptr) return;
    out->clear();
    for (const toml::node* item : Items(*node, name, "whole numbers")) {
      CheckNumber(*item, name, 0, max, &out->emplace_back());
      if (out->size() > 1 && out->back() <= out->end()[-2]) {
        Refuse(*item, fmt::format("\"{}\" must rise.", name));
      }
    }
  }
  // `check` returns what is wrong with an item, or nothing.
  template <typename Check>
  void Texts(const toml::table& table, std::string_view name, Check&& check,
             std::vector<std::string>* out) {
    const toml::node* node = table.get(name);
    if (node == nullptr) return;
    out->clear();
    for (const toml::node* item : Items(*node, name, "texts in quotes")) {
      const auto* value = item->as_string();
      if (value == nullptr) {
        Refuse(*item, fmt::format("\"{}\" must be a list of texts in quotes.", name));
        return;
      }
      const std::string fault = check(value->get());
      if (!fault.empty()) Refuse(*item, fault);
      out->push_back(value->get());
    }
  }

  void Refuse(const toml::node& node, std::string message) {
    RefuseAt(node.source().begin, std::move(message));
  }
  void RefuseAt(const toml::source_position& at, std::string message) {
    if (fault_) return;
    fault_ =
        Error(ErrorCode::kFormat, path_,
              fmt::format("\"{}\" line {}, column {}: {}", path_, at.line, at.column, message));
  }
  void RefuseFile(std::string_view message) {
    if (!fault_)
      fault_ = Error(ErrorCode::kFormat, path_, fmt::format("\"{}\": {}", path_, message));
  }
  Status status() const {
    if (fault_) return Fail(*fault_);
    return {};
  }

 private:
  std::vector<const toml::node*> Items(const toml::node& node, std::string_view name,
                                       std::string_view of) {
    std::vector<const toml::node*> items;
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& item : *array) items.push_back(&item);
    } else {
      Refuse(node, fmt::format("\"{}\" must be a list of {}.", name, of));
    }
    return items;
  }
  void CheckNumber(const toml::node& node, std::string_view name, int64_t min, int64_t max,
                   int64_t* out) {
    const auto* value = node.as_integer();
    if (value != nullptr && value->get() >= min && value->get() <= max) {
      *out = value->get();
      return;
    }
    Refuse(node, fmt::format("\"{}\" must hold whole numbers from {} to {}.", name, min, max));
  }

  std::string path_;
  std::optional<Error> fault_;
};

std::string CheckWord(const std::string& word, std::string_view name,
                      std::span<const std::string> known) {
  if (std::ranges::count(known, word) > 0) return {};
  const std::string_view nearest = Nearest(word, known);
  return fmt::format("\"{}\" is no value of \"{}\"; {}.", word, name,
                     nearest.empty() ? fmt::format("the values are {}", fmt::join(known, ", "))
                                     : fmt::format("did you mean \"{}\"?", nearest));
}

void ReadVerdict(const toml::table& table, Reader* reader, Config* config) {
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

Result<Config> ReadConfig(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseConfig(text, path);
}

Result<Config> ParseConfig(std::string_view text, const std::string& path) {
  Reader reader(path);
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    reader.RefuseAt(parsed.error().source().begin, std::string(parsed.error().description()) + ".");
    return Fail(reader.status().error());
  }
  const toml::table& document = parsed.table();
  const std::vector<std::string> tables = {"build", "record", "verdict"};
  reader.CheckKeys(document, "the file", tables);
  Config config;
  config.path = path;
  if (const toml::table* build = reader.Table(document, "build")) {
    const std::vector<std::string> keys = {"commands", "time_limit_s"};
    reader.CheckKeys(*build, "[build]", keys);
    reader.Texts(
        *build, "commands",
        [](const std::string& command) { return CheckPlaceholders(command, kBuildPlaceholders); },
        &config.build_commands);
    reader.Number(*build, "time_limit_s", 1, kLongestLimit, &config.build_limit_s);
  }
  if (const toml::table* record = reader.Table(document, "record")) {
    const std::vector<std::string> keys = {"commands", "depths", "model", "time_limit_s"};
    reader.CheckKeys(*record, "[record]", keys);
    reader.Texts(
        *record, "commands",
        [](const std::string& command) { return CheckPlaceholders(command, kRecordPlaceholders); },
        &config.record_commands);
    reader.Numbers(*record, "depths", INT32_MAX, &config.depths);
    reader.Text(*record, "model", &config.model);
    reader.Number(*record, "time_limit_s", 1, kLongestLimit, &config.record_limit_s);
  }
  if (const toml::table* verdict = reader.Table(document, "verdict")) {
    ReadVerdict(*verdict, &reader, &config);
  }
  ASSAY_TRY(reader.status());
  if (config.record_commands.empty()) {
    reader.RefuseFile("there is nothing to record: [record] needs \"commands\".");
  }
  if (config.depths.empty()) reader.RefuseFile("\"depths\" must name at least one depth.");
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
