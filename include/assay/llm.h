// Llm: GGUF files, the tokenizer, and decoding with Qwen3 and Qwen3-MoE models on a gpu::Device.
//
//   auto file = gguf::File::Open("model.gguf").value();
//   auto model = Model::Load(device, file, {.loaders = 4}).value();
//   auto decoder = Decoder::Create(model.get(), {.context = 1024}).value();
//   ASSAY_TRY(decoder->Feed(ids)); TokenId next = decoder->Greedy().value();
#ifndef ASSAY_LLM_H_
#define ASSAY_LLM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/gpu_graph.h"

namespace assay::gguf {

// ggml's numbers for the tensor types that the reader knows (G1).
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};
std::string_view TensorTypeName(TensorType type);

class ByteSource;
struct Value;
// Arrays hold one type; nested arrays are refused.
using Array = std::vector<Value>;
struct Value : std::variant<uint64_t, int64_t, double, bool, std::string, Array> {
  using variant::variant;
};

struct Tensor {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<uint64_t> dims;  // ggml's order: dims[0] is the contiguous one.
  uint64_t offset = 0;         // From the start of the file.
  uint64_t size_bytes = 0;
};

// Caps on what a hostile file may ask for; every refusal names the cap.
struct Limits {
  uint64_t max_tensors = 1 << 20;
  uint64_t max_keys = 1 << 20;
  uint64_t max_string_bytes = 1 << 24;
  uint64_t max_array_items = 1 << 24;
  uint64_t max_header_bytes = uint64_t{1} << 30;  // In the file, and of its values in memory.
};

// A parsed file, mapped or borrowed from memory. Immutable, thread-safe.
class File final {
 public:
  // Errors: kNotFound, kIo, kFormat (with the byte offset), kUnsupported (version, tensor type).
  static Result<std::shared_ptr<const File>> Open(const std::string& path,
                                                  const Limits& limits = {});
  // `bytes` must outlive the file; `name` is used in messages.
  static Result<std::shared_ptr<const File>> FromMemory(std::span<const std::byte> bytes,
                                                        std::string name,
                                                        const Limits& limits = {});
  ~File();

  const std::string& name() const;
  uint32_t version() const;
  uint64_t size_bytes() const;
  uint64_t data_offset() const;
  uint64_t alignment() const;
  // In file order.
  const std::vector<std::pair<std::string, Value>>& metadata() const;
  const std::vector<Tensor>& tensors() const;
  const Tensor* FindTensor(std::string_view name) const;
  const Value* FindKey(std::string_view key) const;

  // Typed look-ups. Errors: kNotFound, or kFormat when the key has another type or is out of T's
  // range.
  Result<std::string> GetString(std::string_view key) const;
  Result<uint64_t> GetUint(std::string_view key) const;
  Result<double> GetDouble(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;

  // The bytes of one of this file's own tensors in the mapping. A file on disk that another process
  // cuts short ends the program (SIGBUS) at the first touch of what is gone.
  std::span<const std::byte> TensorBytes(const Tensor& tensor) const;
  // Copies the bytes from `offset` of the tensor on into `out`, all of which must lie in it, by
  // read calls where the file came from a path: the mapping is not touched.
  Status ReadTensor(const Tensor& tensor, std::span<std::byte> out, uint64_t offset = 0) const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  static Result<std::shared_ptr<const File>> FromSource(std::unique_ptr<ByteSource> source,
                                                        const Limits& limits);
  std::unique_ptr<State> state_;
};

}  // namespace assay::gguf

namespace assay::llm {

using TokenId = int32_t;

// Byte-level BPE (`gpt2` model, `qwen2` pre-tokenizer; G2). Immutable, thread-safe.
class Tokenizer final {
 public:
  // Errors: kNotFound or kFormat for a missing or broken vocabulary, kUnsupported for another model
  // or pre-tokenizer.
  static Result<std::shared_ptr<const Tokenizer>> FromGguf(const gguf::File& file);
  ~Tokenizer();

  // Any bytes. With `parse_special`, texts of control tokens become those tokens.
  Result<std::vector<TokenId>> Encode(std::string_view text, bool parse_special = false) const;
  // The bytes of `ids`, control tokens left out unless `special`. Error kInvalidArgument for an id
  // outside the vocabulary.
  Result<std::string> Decode(std::span<const TokenId> ids, bool special = false) const;
  size_t vocabulary_size() const;
  // Generation stops on these.
  bool IsEndOfText(TokenId id) const;
  // The id to put before a prompt, where the file asks for one; Encode does not.
  std::optional<TokenId> begin_of_text() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What a model file says of its shape.
struct Config {
  std::string architecture;  // "qwen3" or "qwen3moe".
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t feed_forward = 0;  // Of the dense layers; of one expert for qwen3moe.
  uint32_t experts = 0;       // 0: dense.
  uint32_t experts_used = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  float rms_eps = 1e-6F;
  float rope_base = 10000.0F;
  bool tied_output = false;
};
// Errors: kUnsupported for another architecture (with the known ones), kFormat for values that make
// no model.
Result<Config> ReadConfig(const gguf::File& file);

struct LoadOptions {
  int loaders = 0;    // Threads that read weights; 0: one for each core.
  bool mmap = false;  // Use the mapped file as weights instead of reading it into memory of the
                      // program's own; without effect on a device that cannot reach the host's
                      // memory or wants weights in another layout.
  // Both are called by the loaders' threads, several at a time, after every few megabytes, and must
  // not throw. The first is told how many bytes are done of how many (a load that is recorded
  // digests each byte besides reading it); the second ends the load with kCancelled when it says
  // true.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  std::function<bool()> cancelled = {};
};

// Weights on a device. Immutable after loading; borrows the device, which must outlive it.
class Model final {
 public:
  // Errors: kNotFound for a missing tensor, kFormat for a wrong shape, kUnsupported for a type no
  // kernel takes; the tensor is named. On failure nothing stays allocated.
  static Result<std::unique_ptr<Model>> Load(gpu::Device* device,
                                             std::shared_ptr<const gguf::File> file,
                                             const LoadOptions& options = {});
  ~Model();
  const Config& config() const;
  uint64_t weight_bytes() const;

  struct State;
  const State& state() const { return *state_; }

 private:
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class KvType : uint8_t { kF32, kF16 };

struct DecoderOptions {
  uint32_t context = 0;          // Positions of the cache; 0: the model's.
  uint32_t prefill_chunk = 256;  // Prompt tokens that go through the model together: 1 to 65536.
  KvType kv = KvType::kF16;
  gpu::BarrierMode barriers = gpu::BarrierMode::kManual;
  uint64_t drop_barrier = 0;  // gpu::SessionOptions', in every pass through the model.
  // gpu::SessionOptions'. Unset: 64 on a device that overlaps_encoding, 0 elsewhere and with a
  // dropped barrier, whose number counts through the pass. One Wait ends a pass all the same.
  std::optional<uint32_t> commit_every = {};
  // Passes of 16 tokens or more multiply by the device's matrix units: kernels::OpsOptions, whose
  // error a device without them gives. Decoding token by token keeps its bits; a prompt's depend on
  // how it is cut into passes.
  bool cooperative_matrix = false;
  // Runs each pass through a plan that fuses and reorders its dispatches (docs/graph.md), made once
  // for each number of tokens; the bits are the same without.
  bool graph = true;
};

// DecoderOptions::commit_every as a decoder on that device takes it.
uint32_t CommitEvery(const DecoderOptions& options, const gpu::DeviceInfo& device);

// One sequence: its cache, its position and its session. One thread. Borrows the model.
class Decoder final {
 public:
  static Result<std::unique_ptr<Decoder>> Create(const Model* model,
                                                 const DecoderOptions& options = {});
  ~Decoder();

  // Feeds `ids` and leaves the logits of the last one. Errors: kInvalidArgument for an id outside
  // the vocabulary or no ids, or when position + ids passes the context (with both numbers); the
  // state is then as before.
  Status Feed(std::span<const TokenId> ids);
  // The logits after the last id fed, vocabulary floats; valid until the next Feed. Error kFormat
  // when each of them is NaN, naming the layer that the first NaN comes from.
  Result<std::span<const float>> Logits();
  // The largest one's id, taken on the device. Cheaper than Logits, with the same error.
  Result<TokenId> Greedy();
  uint32_t position() const;
  uint32_t context() const;
  // Back to position 0.
  void Reset();
  const gpu::Counters& counters() const;
  // What the plan of a pass over one token made of it; null before the first one, or without plans.
  const gpu::PlanReport* token_plan() const;

 private:
  struct State;
  explicit Decoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Sampling from logits, the same choices for the same seed and logits on every machine. Filters run
// in this order: top-k, top-p, min-p, temperature. Equal logits rank by the lower id; a NaN is
// never chosen (id 0 where all are).
struct SamplerOptions {
  float temperature = 0.0F;  // 0: greedy.
  uint32_t top_k = 0;        // 0: all.
  float top_p = 1.0F;
  float min_p = 0.0F;
  uint64_t seed = 0;
};

class Sampler final {
 public:
  // Error kInvalidArgument with the limits of the value that breaks them.
  static Result<Sampler> Create(const SamplerOptions& options);
  TokenId Sample(std::span<const float> logits);
  const SamplerOptions& options() const { return options_; }

 private:
  explicit Sampler(const SamplerOptions& options);
  SamplerOptions options_;
  uint64_t state_[4];  // xoshiro256++.
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_H_
