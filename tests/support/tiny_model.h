// Tiny models: qwen3 and qwen3moe GGUF files with seeded random weights and a small vocabulary.
#ifndef ASSAY_TESTS_SUPPORT_TINY_MODEL_H_
#define ASSAY_TESTS_SUPPORT_TINY_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/gguf_writer.h"

namespace assay::testing {

// Byte-level BPE with the 256 bytes first, then one token a merge, then the control tokens
// <|endoftext|>, <|im_start|> and <|im_end|> (the end-of-sequence token).
struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  // 1: normal, 3: control.
  std::vector<std::string> merges;
  uint32_t end_of_text = 0;
  uint32_t end_of_sequence = 0;
};
TinyVocabulary MakeTinyVocabulary();

// The 256 bytes and a token for every pair of bytes, ranked in an order that the seed gives: where
// a text is split into pieces shows in nearly every id. The same control tokens follow.
TinyVocabulary MakePairVocabulary(uint64_t seed);

// The tokenizer.ggml.* keys.
void AddVocabulary(const TinyVocabulary& vocabulary, GgufWriter* writer);

struct TinyModelOptions {
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t feed_forward = 96;  // Of one expert when there are experts.
  uint32_t experts = 0;        // 0: architecture qwen3, else qwen3moe.
  uint32_t experts_used = 0;
  uint32_t context = 128;
  float rope_base = 10000.0F;
  float rms_eps = 1e-6F;
  bool tied_output = false;
  GgmlType weights = kF32;  // Of the matrices; norms and router are F32.
  uint64_t seed = 1;
  std::string nan_tensor;  // One of the norms' names: each of its values is NaN.
};

// The values of one of the model's tensors, before they are stored as its type: they depend on the
// seed, the name and the count alone.
std::vector<float> TinyWeights(uint64_t seed, std::string_view name, size_t count);

// A writer that holds the whole model; Build() gives the file.
GgufWriter MakeTinyModel(const TinyModelOptions& options);

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_TINY_MODEL_H_
