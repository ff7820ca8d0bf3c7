#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/prove_matrix.h"

#include "base/file.h"
#include "base/nearest.h"
#include "prove/placeholders.h"
#include "prove/toml_reader.h"

namespace assay::prove {
namespace {

constexpr size_t kMostJobs = 100'000;
constexpr size_t kLongestName = 64;
constexpr std::string_view kBackend = "backend";

// One value of an axis.
struct Row {
  std::string name;
  std::string file = {};
  std::map<std::string, std::string> variables = {};
  const toml::table* table = nullptr;  // What the file says of it, if anything.
};

// A word that can be a part of an id and of a file's name.
bool IsRowName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_';
         });
}

// The rows that [matrix] names, sorted, with what the table of the axis says of each.
std::vector<Row> ReadAxis(const toml::table& document, const toml::table& matrix,
                          std::string_view axis, TomlReader* reader) {
  std::vector<std::string> names;
  reader->Texts(
      matrix, axis,
      [&](const std::string& name) {
        if (!IsRowName(name)) {
          return fmt::format(
              "\"{}\" cannot be a part of the id of a job: 1 to {} letters, digits, '-' and '_', "
              "the first no '-'.",
              name, kLongestName);
        }
        const bool twice = std::ranges::count(names, name) > 0;
        return twice ? fmt::format("\"{}\" names \"{}\" twice.", axis, name) : std::string();
      },
      &names);
  // None is not the same as no axis.
  if (names.empty() && matrix.contains(axis)) {
    reader->Refuse(*matrix.get(axis), fmt::format("\"{}\" must name at least one.", axis));
  }
  std::ranges::sort(names);
  std::vector<Row> rows;
  for (const std::string& name : names) rows.push_back({.name = name});
  const toml::table* tables = reader->Table(document, axis);
  if (tables == nullptr) return rows;
  reader->CheckKeys(*tables, fmt::format("\"{}\" of [matrix]", axis), names);
  for (Row& row : rows) {
    const toml::table* found = reader->Table(*tables, row.name);
    if (found == nullptr) continue;
    row.table = found;
    // Only a model has a file.
    const std::string_view file = axis == "models" ? "file" : "";
    if (!file.empty()) reader->Text(*found, file, &row.file);
    reader->Variables(*found, file, &row.variables);
    if (row.variables.contains(std::string(kBackend))) {
      reader->Refuse(*found->get(kBackend), "{backend} is the name of the backend already.");
    }
  }
  return rows;
}

MatrixJob JobOf(const Row* model, const Row* backend, int64_t depth) {
  MatrixJob job;
  job.depth = depth;
  if (model != nullptr) {
    job.model = model->name;
    job.model_file = model->file;
    job.variables = model->variables;
  }
  if (backend != nullptr) {
    job.backend = backend->name;
    job.variables.insert(backend->variables.begin(), backend->variables.end());
    job.variables[std::string(kBackend)] = backend->name;
  }
  job.id = IdOf(job);
  return job;
}

// A model and a backend may not both say what a name stands for.
void CheckApart(const std::vector<Row>& models, const std::vector<Row>& backends,
                TomlReader* reader) {
  for (const Row& model : models) {
    for (const auto& [name, value] : model.variables) {
      for (const Row& backend : backends) {
        if (!backend.variables.contains(name)) continue;
        reader->Refuse(*backend.table->get(name),
                       fmt::format("both [models.{}] and [backends.{}] say what {{{}}} is.",
                                   model.name, backend.name, name));
      }
    }
  }
}

void AddLines(std::string_view axis, const std::vector<Row>& rows,
              std::map<std::string, uint64_t>* lines) {
  for (const Row& row : rows) {
    if (row.table == nullptr) continue;
    const std::string name = fmt::format("{}.{}", axis, row.name);
    (*lines)[name] = row.table->source().begin.line;
    for (const auto& [key, value] : *row.table) {
      (*lines)[fmt::format("{}.{}", name, key.str())] = key.source().begin.line;
    }
  }
}

// Whether every name that a record command holds has a value, for messages of CheckMatrix().
class MatrixCheck final {
 public:
  MatrixCheck(const Matrix& matrix, const Config& config)
      : matrix_(matrix), config_(config), names_(VariablesOf(matrix)) {}

  Status Values() const {
    for (const MatrixJob& job : matrix_.jobs) {
      for (const auto& [name, value] : job.variables) {
        // The name of a backend may be there for the ids alone, where other values tell it apart.
        if (Uses(name) || name == kBackend) continue;
        return Refuse(LineOf(job, name), fmt::format("{{{}}} has a value, but no record command of "
                                                     "\"{}\" uses it.",
                                                     name, config_.path));
      }
      if (!job.model_file.empty() && !Uses("model")) {
        return Refuse(LineOf(job, "file"),
                      fmt::format("[models.{}] names a file, but no record command of \"{}\" uses "
                                  "{{model}}.",
                                  job.model, config_.path));
      }
    }
    return {};
  }

  Status Job(const MatrixJob& job) const {
    for (const std::string& name : names_) {
      if (!Uses(name) || job.variables.contains(name) || config_.variables.contains(name)) continue;
      return Refuse(LineOf(job, ""),
                    fmt::format("job {} has no value for {{{}}}, which a record command uses; give "
                                "it one here, or one for all in [record.variables] of \"{}\".",
                                job.id, name, config_.path));
    }
    if (!Uses("model") || !job.model_file.empty() || !config_.model.empty()) return {};
    return Refuse(LineOf(job, ""),
                  fmt::format("job {} has no model, and a record command uses {{model}}; name "
                              "\"models\" of [matrix] with a \"file\" each, or one for all jobs "
                              "as \"model\" of [record] in \"{}\".",
                              job.id, config_.path));
  }

  // `line` 0: the matrix was not read from a file.
  Status Refuse(uint64_t line, const std::string& message) const {
    const std::string at = line == 0 ? std::string() : fmt::format(" line {}", line);
    return Fail(ErrorCode::kInvalidArgument, matrix_.path,
                fmt::format("\"{}\"{}: {}", matrix_.path, at, message));
  }
  // Of a key that a job's model or backend has; else of what there is of the job.
  uint64_t LineOf(const MatrixJob& job, std::string_view key) const {
    const std::string model = "models." + job.model;
    const std::string backend = "backends." + job.backend;
    for (const std::string& name :
         {fmt::format("{}.{}", model, key), fmt::format("{}.{}", backend, key), model, backend,
          std::string("matrix")}) {
      const auto found = matrix_.lines.find(name);
      if (found != matrix_.lines.end()) return found->second;
    }
    return 0;
  }

 private:
  bool Uses(std::string_view name) const {
    return std::ranges::any_of(config_.record_commands, [name](const std::string& command) {
      return HasPlaceholder(command, name);
    });
  }

  const Matrix& matrix_;
  const Config& config_;
  std::vector<std::string> names_;
};

// What a job's record commands come to, but for the paths that every machine has its own of.
std::string FilledCommands(const Config& config, const MatrixJob& job) {
  std::map<std::string, std::string, std::less<>> values(config.variables.begin(),
                                                         config.variables.end());
  for (const auto& [name, value] : job.variables) values[name] = value;
  values["depth"] = values["depths"] = fmt::format("{}", job.depth);
  values["model"] = job.model_file.empty() ? config.model : job.model_file;
  std::string text;
  for (const std::string& command : config.record_commands) {
    text += FillPlaceholders(command, values) + '\n';
  }
  return text;
}

}  // namespace

std::string IdOf(const MatrixJob& job) {
  std::string id;
  for (const std::string& word : {job.model, job.backend}) {
    if (!word.empty()) id += word + '.';
  }
  return id + fmt::format("depth-{}", job.depth);
}

Result<Matrix> ReadMatrix(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseMatrix(text, path);
}

Result<Matrix> ParseMatrix(std::string_view text, const std::string& path) {
  TomlReader reader(path);
  const std::optional<toml::table> document = reader.Parse(text);
  if (!document) return Fail(reader.status().error());
  const std::vector<std::string> tables = {"matrix", "models", "backends"};
  reader.CheckKeys(*document, "the file", tables);
  const toml::table* table = reader.Table(*document, "matrix");
  ASSAY_TRY(reader.status());
  if (table == nullptr) {
    reader.RefuseFile("there is no [matrix], which names the depths, and the models and backends.");
    return Fail(reader.status().error());
  }
  const std::vector<std::string> keys = {"models", "depths", "backends"};
  reader.CheckKeys(*table, "[matrix]", keys);
  const std::vector<Row> models = ReadAxis(*document, *table, "models", &reader);
  const std::vector<Row> backends = ReadAxis(*document, *table, "backends", &reader);
  std::vector<int64_t> depths;
  reader.Numbers(*table, "depths", INT32_MAX, &depths);
  if (depths.empty()) {
    const toml::node* named = table->get("depths");
    reader.Refuse(named == nullptr ? *table : *named,
                  "\"depths\" of [matrix] must name at least one depth.");
  }
  CheckApart(models, backends, &reader);
  const size_t count =
      std::max<size_t>(1, models.size()) * std::max<size_t>(1, backends.size()) * depths.size();
  if (count > kMostJobs) {
    reader.Refuse(*table, fmt::format("{} jobs are more than {}.", count, kMostJobs));
  }
  ASSAY_TRY(reader.status());
  Matrix matrix{.path = path, .jobs = {}};
  matrix.lines["matrix"] = table->source().begin.line;
  AddLines("models", models, &matrix.lines);
  AddLines("backends", backends, &matrix.lines);
  const auto rows_of = [](const std::vector<Row>& rows) {
    std::vector<const Row*> result;
    for (const Row& row : rows) result.push_back(&row);
    if (result.empty()) result.push_back(nullptr);
    return result;
  };
  for (const Row* model : rows_of(models)) {
    for (const Row* backend : rows_of(backends)) {
      for (const int64_t depth : depths) matrix.jobs.push_back(JobOf(model, backend, depth));
    }
  }
  return matrix;
}

std::vector<std::string> VariablesOf(const Matrix& matrix) {
  std::set<std::string> names;
  for (const MatrixJob& job : matrix.jobs) {
    for (const auto& [name, value] : job.variables) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Status CheckMatrix(const Matrix& matrix, const Config& config) {
  const MatrixCheck check(matrix, config);
  ASSAY_TRY(check.Values());
  std::map<std::string, std::string> ids;
  for (const MatrixJob& job : matrix.jobs) {
    ASSAY_TRY(check.Job(job));
    const auto [same, fresh] = ids.emplace(FilledCommands(config, job), job.id);
    if (fresh) continue;
    return check.Refuse(check.LineOf({}, ""),
                        fmt::format("jobs {} and {} would run the same record commands: nothing in "
                                    "those of \"{}\" tells them apart.",
                                    same->second, job.id, config.path));
  }
  return {};
}

Result<MatrixJob> FindJob(const Matrix& matrix, std::string_view id) {
  std::vector<std::string> ids;
  for (const MatrixJob& job : matrix.jobs) {
    if (job.id == id) return job;
    ids.push_back(job.id);
  }
  return Fail(ErrorCode::kNotFound, std::string(id),
              SuggestNearest(fmt::format("\"{}\" has no job \"{}\"", matrix.path, id), id, ids,
                             "\"\"", "without --job, it lists them"));
}

std::string FormatMatrixJson(const Matrix& matrix) {
  nlohmann::ordered_json json;
  json["jobs"] = nlohmann::ordered_json::array();
  for (const MatrixJob& job : matrix.jobs) {
    const auto or_null = [](const std::string& text) {
      return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
    };
    json["jobs"].push_back({{"id", job.id},
                            {"model", or_null(job.model)},
                            {"backend", or_null(job.backend)},
                            {"depth", job.depth},
                            {"model_file", or_null(job.model_file)},
                            {"variables", job.variables}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::prove
