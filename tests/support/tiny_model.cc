#include "support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace assay::testing {
namespace {

void AppendUtf8(uint32_t code_point, std::string* text) {
  // Code points below 0x800 are all that byte-level names need.
  if (code_point < 0x80) {
    text->push_back(static_cast<char>(code_point));
  } else {
    text->push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    text->push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  }
}

// The name of each byte in a byte-level vocabulary: itself where it is a printable Latin-1
// character other than the space and the soft hyphen, else a code point from 256 on.
std::vector<std::string> ByteNames() {
  std::vector<std::string> names(256);
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte >= 0xA1 && byte != 0xAD);
    AppendUtf8(printable ? byte : next, &names[byte]);
    if (!printable) ++next;
  }
  return names;
}

uint64_t SplitMix(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

void AddControlTokens(TinyVocabulary* vocabulary) {
  vocabulary->types.assign(vocabulary->tokens.size(), 1);
  for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    vocabulary->tokens.emplace_back(control);
    vocabulary->types.push_back(3);
  }
  vocabulary->end_of_sequence = static_cast<uint32_t>(vocabulary->tokens.size() - 1);
  vocabulary->end_of_text = vocabulary->end_of_sequence - 2;
}

class ModelBuilder final {
 public:
  explicit ModelBuilder(const TinyModelOptions& options) : options_(options) {}

  GgufWriter Build() {
    const TinyVocabulary vocabulary = MakeTinyVocabulary();
    vocabulary_ = vocabulary.tokens.size();
    AddMetadata();
    AddVocabulary(vocabulary, &writer_);
    AddMatrix("token_embd.weight", {options_.hidden, vocabulary_});
    for (uint32_t layer = 0; layer < options_.layers; ++layer) AddLayer(layer);
    AddVector("output_norm.weight", {options_.hidden});
    if (!options_.tied_output) AddMatrix("output.weight", {options_.hidden, vocabulary_});
    return std::move(writer_);
  }

 private:
  void AddMetadata() {
    const std::string arch = options_.experts > 0 ? "qwen3moe" : "qwen3";
    writer_.AddString("general.architecture", arch);
    writer_.AddString("general.name", "tiny");
    writer_.AddU32(arch + ".block_count", options_.layers);
    writer_.AddU32(arch + ".context_length", options_.context);
    writer_.AddU32(arch + ".embedding_length", options_.hidden);
    writer_.AddU32(arch + ".feed_forward_length", options_.feed_forward);
    writer_.AddU32(arch + ".attention.head_count", options_.heads);
    writer_.AddU32(arch + ".attention.head_count_kv", options_.kv_heads);
    writer_.AddU32(arch + ".attention.key_length", options_.head_dim);
    writer_.AddU32(arch + ".attention.value_length", options_.head_dim);
    writer_.AddF32(arch + ".attention.layer_norm_rms_epsilon", options_.rms_eps);
    writer_.AddF32(arch + ".rope.freq_base", options_.rope_base);
    if (options_.experts == 0) return;
    writer_.AddU32(arch + ".expert_count", options_.experts);
    writer_.AddU32(arch + ".expert_used_count", options_.experts_used);
    writer_.AddU32(arch + ".expert_feed_forward_length", options_.feed_forward);
  }

  void AddLayer(uint32_t layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const uint64_t hidden = options_.hidden;
    const uint64_t q = uint64_t{options_.heads} * options_.head_dim;
    const uint64_t kv = uint64_t{options_.kv_heads} * options_.head_dim;
    const uint64_t ff = options_.feed_forward;
    AddVector(prefix + "attn_norm.weight", {hidden});
    AddMatrix(prefix + "attn_q.weight", {hidden, q});
    AddMatrix(prefix + "attn_k.weight", {hidden, kv});
    AddMatrix(prefix + "attn_v.weight", {hidden, kv});
    AddMatrix(prefix + "attn_output.weight", {q, hidden});
    AddVector(prefix + "attn_q_norm.weight", {options_.head_dim});
    AddVector(prefix + "attn_k_norm.weight", {options_.head_dim});
    AddVector(prefix + "ffn_norm.weight", {hidden});
    if (options_.experts == 0) {
      AddMatrix(prefix + "ffn_gate.weight", {hidden, ff});
      AddMatrix(prefix + "ffn_up.weight", {hidden, ff});
      AddMatrix(prefix + "ffn_down.weight", {ff, hidden});
      return;
    }
    const uint64_t experts = options_.experts;
    AddVector(prefix + "ffn_gate_inp.weight", {hidden, experts});
    AddMatrix(prefix + "ffn_gate_exps.weight", {hidden, ff, experts});
    AddMatrix(prefix + "ffn_up_exps.weight", {hidden, ff, experts});
    AddMatrix(prefix + "ffn_down_exps.weight", {ff, hidden, experts});
  }

  void AddVector(const std::string& name, const std::vector<uint64_t>& dims) {
    Add(name, dims, kF32);
  }
  void AddMatrix(const std::string& name, const std::vector<uint64_t>& dims) {
    Add(name, dims, options_.weights);
  }
  void Add(const std::string& name, const std::vector<uint64_t>& dims, GgmlType type) {
    size_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    std::vector<float> values = TinyWeights(options_.seed, name, count);
    if (name == options_.nan_tensor) std::ranges::fill(values, std::nanf(""));
    writer_.AddTensor(name, type, dims, values);
  }

  const TinyModelOptions& options_;
  GgufWriter writer_;
  uint64_t vocabulary_ = 0;
};

}  // namespace

TinyVocabulary MakeTinyVocabulary() {
  TinyVocabulary vocabulary;
  const std::vector<std::string> bytes = ByteNames();
  vocabulary.tokens = bytes;
  std::set<std::string> known(bytes.begin(), bytes.end());
  const auto merge = [&](const std::string& left, const std::string& right) {
    if (!known.insert(left + right).second) return;
    vocabulary.merges.push_back(left + " " + right);
    vocabulary.tokens.push_back(left + right);
  };
  const std::string& space = bytes[' '];
  const std::string& newline = bytes['\n'];
  const std::string letters = "etaoinshrdlu";
  for (const char letter : letters) merge(space, std::string(1, letter));
  for (const std::string pair :
       {"th", "he", "in", "er", "an", "re", "on", "at", "ll", "ss", "aa"}) {
    merge(pair.substr(0, 1), pair.substr(1));
  }
  merge("th", "e");
  merge(space + "t", "he");
  merge("aa", "aa");
  merge(space, space);
  merge(space + space, space + space);
  merge(newline, newline);
  merge("1", "2");
  // The two bytes of U+00E9, and the first two of the common U+4E00 block.
  merge(bytes[0xC3], bytes[0xA9]);
  merge(bytes[0xE4], bytes[0xB8]);
  AddControlTokens(&vocabulary);
  return vocabulary;
}

TinyVocabulary MakePairVocabulary(uint64_t seed) {
  TinyVocabulary vocabulary;
  const std::vector<std::string> bytes = ByteNames();
  vocabulary.tokens = bytes;
  std::vector<uint32_t> pairs(65536);
  for (uint32_t i = 0; i < pairs.size(); ++i) pairs[i] = i;
  uint64_t state = seed;
  for (size_t i = pairs.size() - 1; i > 0; --i)
    std::swap(pairs[i], pairs[SplitMix(&state) % (i + 1)]);
  for (const uint32_t pair : pairs) {
    const std::string& left = bytes[pair >> 8];
    const std::string& right = bytes[pair & 0xFF];
    vocabulary.merges.push_back(left + " " + right);
    vocabulary.tokens.push_back(left + right);
  }
  AddControlTokens(&vocabulary);
  return vocabulary;
}

void AddVocabulary(const TinyVocabulary& vocabulary, GgufWriter* writer) {
  writer->AddString("tokenizer.ggml.model", "gpt2");
  writer->AddString("tokenizer.ggml.pre", "qwen2");
  writer->AddStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer->AddI32s("tokenizer.ggml.token_type", vocabulary.types);
  writer->AddStrings("tokenizer.ggml.merges", vocabulary.merges);
  writer->AddU32("tokenizer.ggml.eos_token_id", vocabulary.end_of_sequence);
  writer->AddU32("tokenizer.ggml.bos_token_id", vocabulary.end_of_text);
  writer->AddU32("tokenizer.ggml.padding_token_id", vocabulary.end_of_text);
  writer->AddBool("tokenizer.ggml.add_bos_token", false);
}

std::vector<float> TinyWeights(uint64_t seed, std::string_view name, size_t count) {
  uint64_t state = seed;
  for (const char c : name) {
    state ^= static_cast<unsigned char>(c);
    SplitMix(&state);
  }
  const bool norm = name.find("norm") != std::string_view::npos;
  const bool router = name.find("gate_inp") != std::string_view::npos;
  const float spread = norm ? 0.2F : router ? 0.5F : 0.2F;
  std::vector<float> values(count);
  for (float& value : values) {
    const auto unit = static_cast<float>(SplitMix(&state) >> 40) * 0x1p-23F - 1.0F;
    value = (norm ? 1.0F : 0.0F) + spread * unit;
  }
  return values;
}

GgufWriter MakeTinyModel(const TinyModelOptions& options) { return ModelBuilder(options).Build(); }

}  // namespace assay::testing
