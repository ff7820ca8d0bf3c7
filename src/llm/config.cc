#include "llm/config.h"

#include <algorithm>

#include <fmt/format.h>

#include "llm/gguf/quoted.h"
#include "llm/models/architecture.h"

namespace assay::llm {
namespace {

// Each limit is far above any public model of these architectures and low enough that rows, columns
// and bytes computed from two of them fit in 32 and 64 bits.
constexpr uint32_t kMaxLayers = 1024;
constexpr uint32_t kMaxHidden = 1 << 17;
constexpr uint32_t kMaxHeads = 1024;
constexpr uint32_t kMaxHeadDim = 1024;
constexpr uint32_t kMaxContext = 1 << 24;
constexpr uint32_t kMaxVocabulary = 1 << 24;

tl::unexpected<Error> Refuse(const gguf::File& file, std::string message) {
  return Fail(ErrorCode::kFormat, file.name(), std::move(message));
}

// The vocabulary is the embedding's row count; whatever else in the file counts tokens must agree.
Result<uint32_t> ReadVocabulary(const ConfigReader& reader) {
  const gguf::File& file = reader.file();
  const gguf::Tensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) {
    return Fail(
        ErrorCode::kNotFound, "token_embd.weight",
        fmt::format("The tensor \"token_embd.weight\" is missing from \"{}\".", file.name()));
  }
  const uint64_t rows = embedding->dims.size() == 2 ? embedding->dims[1] : 0;
  if (rows < 1 || rows > kMaxVocabulary) {
    return Refuse(file, fmt::format("The tensor \"token_embd.weight\" of \"{}\" has {} dimensions "
                                    "and {} rows; it must have 2 and between 1 and {}.",
                                    file.name(), embedding->dims.size(), rows, kMaxVocabulary));
  }
  if (reader.Has("vocab_size")) {
    ASSAY_ASSIGN_OR_RETURN(const uint32_t stated, reader.Count("vocab_size", 1, kMaxVocabulary));
    if (stated != rows) {
      return Refuse(file, fmt::format("The key \"{}\" of \"{}\" is {}, but the tensor "
                                      "\"token_embd.weight\" has {} rows.",
                                      reader.Key("vocab_size"), file.name(), stated, rows));
    }
  }
  if (const gguf::Value* tokens = file.FindKey("tokenizer.ggml.tokens"); tokens != nullptr) {
    const auto* list = std::get_if<gguf::Array>(tokens);
    const uint64_t count = list != nullptr ? list->size() : 0;
    if (count != rows) {
      return Refuse(file,
                    fmt::format("The key \"tokenizer.ggml.tokens\" of \"{}\" lists {} tokens, "
                                "but the tensor \"token_embd.weight\" has {} rows.",
                                file.name(), count, rows));
    }
  }
  return static_cast<uint32_t>(rows);
}

Status ReadAttention(const ConfigReader& reader, Config& config) {
  const gguf::File& file = reader.file();
  ASSAY_ASSIGN_OR_RETURN(config.heads, reader.Count("attention.head_count", 1, kMaxHeads));
  ASSAY_ASSIGN_OR_RETURN(config.kv_heads,
                         reader.CountOr("attention.head_count_kv", 1, config.heads, config.heads));
  if (config.heads % config.kv_heads != 0) {
    return Refuse(file, fmt::format("The key \"{}\" of \"{}\" is {}, which is not a multiple of "
                                    "\"{}\" ({}).",
                                    reader.Key("attention.head_count"), file.name(), config.heads,
                                    reader.Key("attention.head_count_kv"), config.kv_heads));
  }
  ASSAY_ASSIGN_OR_RETURN(config.head_dim,
                         reader.CountOr("attention.key_length", 2, kMaxHeadDim,
                                        std::max(2U, config.hidden / config.heads)));
  if (config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim) {
    return Refuse(file, fmt::format("The key \"{}\" of \"{}\" is {}; it must be even and at most "
                                    "{}.",
                                    reader.Key("attention.key_length"), file.name(),
                                    config.head_dim, kMaxHeadDim));
  }
  ASSAY_ASSIGN_OR_RETURN(const uint32_t value_length,
                         reader.CountOr("attention.value_length", 1, kMaxHeadDim, config.head_dim));
  if (value_length != config.head_dim) {
    return Fail(ErrorCode::kUnsupported, file.name(),
                fmt::format("The keys \"{}\" ({}) and \"{}\" ({}) of \"{}\" differ; only equal "
                            "lengths are supported.",
                            reader.Key("attention.key_length"), config.head_dim,
                            reader.Key("attention.value_length"), value_length, file.name()));
  }
  ASSAY_ASSIGN_OR_RETURN(config.rms_eps,
                         reader.Number("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  ASSAY_ASSIGN_OR_RETURN(config.rope_base, reader.NumberOr("rope.freq_base", 1.0, 1e12, 10000.0));
  if (const gguf::Value* scaling = file.FindKey(reader.Key("rope.scaling.type"));
      scaling != nullptr) {
    const auto* kind = std::get_if<std::string>(scaling);
    if (kind == nullptr || *kind != "none") {
      return Fail(ErrorCode::kUnsupported, file.name(),
                  fmt::format("The key \"{}\" of \"{}\" asks for {}; only \"none\" is supported.",
                              reader.Key("rope.scaling.type"), file.name(),
                              kind != nullptr ? gguf::Quoted(*kind) : "a value that is no text"));
    }
  }
  return {};
}

}  // namespace

std::string ConfigReader::Key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_, name);
}

bool ConfigReader::Has(std::string_view name) const { return file_.FindKey(Key(name)) != nullptr; }

Result<uint32_t> ConfigReader::Count(std::string_view name, uint32_t min, uint32_t max) const {
  const std::string key = Key(name);
  ASSAY_ASSIGN_OR_RETURN(const uint64_t value, file_.GetUint(key));
  if (value < min || value > max) {
    return Refuse(file_, fmt::format("The key \"{}\" of \"{}\" is {}; it must be between {} and "
                                     "{}.",
                                     key, file_.name(), value, min, max));
  }
  return static_cast<uint32_t>(value);
}

Result<uint32_t> ConfigReader::CountOr(std::string_view name, uint32_t min, uint32_t max,
                                       uint32_t fallback) const {
  if (!Has(name)) return fallback;
  return Count(name, min, max);
}

Result<float> ConfigReader::Number(std::string_view name, double min, double max) const {
  const std::string key = Key(name);
  ASSAY_ASSIGN_OR_RETURN(const double value, file_.GetDouble(key));
  // Written so that a NaN is refused too.
  if (!(value >= min && value <= max)) {
    return Refuse(file_, fmt::format("The key \"{}\" of \"{}\" is {}; it must be between {} and "
                                     "{}.",
                                     key, file_.name(), value, min, max));
  }
  return static_cast<float>(value);
}

Result<float> ConfigReader::NumberOr(std::string_view name, double min, double max,
                                     double fallback) const {
  if (!Has(name)) return static_cast<float>(fallback);
  return Number(name, min, max);
}

Result<Config> ReadConfig(const gguf::File& file) {
  Config config;
  ASSAY_ASSIGN_OR_RETURN(config.architecture, file.GetString("general.architecture"));
  const Architecture* architecture = FindArchitecture(config.architecture);
  if (architecture == nullptr) {
    return Fail(ErrorCode::kUnsupported, file.name(),
                fmt::format("\"{}\" holds a model of the architecture {}; the known ones are {}.",
                            file.name(), gguf::Quoted(config.architecture), ArchitectureNames()));
  }
  const ConfigReader reader(file, config.architecture);
  ASSAY_ASSIGN_OR_RETURN(config.layers, reader.Count("block_count", 1, kMaxLayers));
  ASSAY_ASSIGN_OR_RETURN(config.hidden, reader.Count("embedding_length", 1, kMaxHidden));
  ASSAY_ASSIGN_OR_RETURN(config.context, reader.Count("context_length", 1, kMaxContext));
  ASSAY_TRY(ReadAttention(reader, config));
  ASSAY_TRY(architecture->read_config(reader, config));
  ASSAY_ASSIGN_OR_RETURN(config.vocabulary, ReadVocabulary(reader));
  config.tied_output = file.FindTensor("output.weight") == nullptr;
  return config;
}

}  // namespace assay::llm
