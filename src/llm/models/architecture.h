// What tells one architecture from another: the keys and tensors of its feed-forward blocks and how
// they are encoded. The rest of the forward pass is shared (models/transformer.h).
//
// Adding one: models/<name>.{h,cc} with an Architecture, and its row in models.cc.
#ifndef ASSAY_LLM_MODELS_ARCHITECTURE_H_
#define ASSAY_LLM_MODELS_ARCHITECTURE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/kernels.h"
#include "assay/llm.h"

namespace assay::llm {

class ConfigReader;
class LayerEncoder;

// The weights of one layer. What an architecture does not use stays empty.
struct LayerWeights {
  gpu::BufferView attn_norm;  // hidden
  kernels::Matrix q;          // heads * head_dim x hidden
  kernels::Matrix k;          // kv_heads * head_dim x hidden
  kernels::Matrix v;          // kv_heads * head_dim x hidden
  gpu::BufferView q_norm;     // head_dim
  gpu::BufferView k_norm;     // head_dim
  kernels::Matrix o;          // hidden x heads * head_dim
  gpu::BufferView ffn_norm;   // hidden
  kernels::Matrix router;     // experts x hidden
  kernels::Matrix gate;       // [experts *] feed_forward x hidden
  kernels::Matrix up;         // [experts *] feed_forward x hidden
  kernels::Matrix down;       // [experts *] hidden x feed_forward
};

struct Weights {
  kernels::Matrix embedding;  // vocabulary x hidden
  std::vector<LayerWeights> layers;
  gpu::BufferView output_norm;  // hidden
  kernels::Matrix output;       // vocabulary x hidden; the embedding itself when tied
};

// One tensor that a model needs: where it goes and the shape it must have. Exactly one of `matrix`
// and `vector` is set.
struct TensorSlot {
  std::string name;
  std::vector<uint64_t> dims;         // ggml's order: the contiguous one first.
  kernels::Matrix* matrix = nullptr;  // Any type with a kernel; dims[1..] make up its rows.
  gpu::BufferView* vector = nullptr;  // F32.
};

struct Architecture {
  // The value of `general.architecture`.
  std::string_view name;
  // Reads the keys of the feed-forward blocks into `config`, whose shared part is filled.
  Status (*read_config)(const ConfigReader& reader, Config& config);
  // Appends the tensors of the feed-forward block of the layer that `prefix` ("blk.3.") names.
  void (*plan_feed_forward)(const Config& config, const std::string& prefix, LayerWeights& layer,
                            std::vector<TensorSlot>& slots);
  // Encodes the feed-forward block: from the normalised rows to the sum with the residual stream.
  Status (*encode_feed_forward)(LayerEncoder& encoder, const LayerWeights& layer);
};

// The table of models.cc.
std::span<const Architecture* const> Architectures();
// Null when the name is unknown.
const Architecture* FindArchitecture(std::string_view name);
// "qwen3, qwen3moe", for messages.
std::string ArchitectureNames();

}  // namespace assay::llm

#endif  // ASSAY_LLM_MODELS_ARCHITECTURE_H_
