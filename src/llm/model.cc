// Loading: which tensors a model needs, and reading them in parallel in the file's order.
#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "assay/llm.h"

#include "base/hash.h"
#include "llm/gguf/quoted.h"
#include "llm/memory_need.h"
#include "llm/model_state.h"

namespace assay::llm {
namespace {

using kernels::DType;

std::optional<DType> DTypeOf(gguf::TensorType type) {
  switch (type) {
    case gguf::TensorType::kF32:
      return DType::kF32;
    case gguf::TensorType::kF16:
      return DType::kF16;
    case gguf::TensorType::kBF16:
      return DType::kBF16;
    case gguf::TensorType::kQ8_0:
      return DType::kQ8_0;
    case gguf::TensorType::kQ4_0:
      return DType::kQ4_0;
    case gguf::TensorType::kQ4_K:
    case gguf::TensorType::kQ5_K:
    case gguf::TensorType::kQ6_K:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string JoinDims(const std::vector<uint64_t>& dims) {
  return fmt::format("{}", fmt::join(dims, " x "));
}

// Every tensor that `config` needs, with where it goes in `weights`.
std::vector<TensorSlot> PlanTensors(const Architecture& architecture, const Config& config,
                                    Weights& weights) {
  const uint64_t hidden = config.hidden;
  const uint64_t q_dim = uint64_t{config.heads} * config.head_dim;
  const uint64_t kv_dim = uint64_t{config.kv_heads} * config.head_dim;
  const uint64_t vocabulary = config.vocabulary;
  std::vector<TensorSlot> slots;
  const auto matrix = [&](std::string name, std::vector<uint64_t> dims, kernels::Matrix& to) {
    slots.push_back({std::move(name), std::move(dims), &to, nullptr});
  };
  const auto vector = [&](std::string name, uint64_t size, gpu::BufferView& to) {
    slots.push_back({std::move(name), {size}, nullptr, &to});
  };
  matrix("token_embd.weight", {hidden, vocabulary}, weights.embedding);
  weights.layers.resize(config.layers);
  for (uint32_t i = 0; i < config.layers; ++i) {
    const std::string prefix = fmt::format("blk.{}.", i);
    LayerWeights& layer = weights.layers[i];
    vector(prefix + "attn_norm.weight", hidden, layer.attn_norm);
    matrix(prefix + "attn_q.weight", {hidden, q_dim}, layer.q);
    matrix(prefix + "attn_k.weight", {hidden, kv_dim}, layer.k);
    matrix(prefix + "attn_v.weight", {hidden, kv_dim}, layer.v);
    vector(prefix + "attn_q_norm.weight", config.head_dim, layer.q_norm);
    vector(prefix + "attn_k_norm.weight", config.head_dim, layer.k_norm);
    matrix(prefix + "attn_output.weight", {q_dim, hidden}, layer.o);
    vector(prefix + "ffn_norm.weight", hidden, layer.ffn_norm);
    architecture.plan_feed_forward(config, prefix, layer, slots);
  }
  vector("output_norm.weight", hidden, weights.output_norm);
  if (!config.tied_output) matrix("output.weight", {hidden, vocabulary}, weights.output);
  return slots;
}

// A planned tensor with its place in the file.
struct Job {
  const gguf::Tensor* tensor;
  const TensorSlot* slot;
  DType type;
  gpu::Buffer buffer;  // Filled by the job.
};

Status CheckTensor(const gguf::File& file, const gguf::Tensor& tensor, const TensorSlot& slot,
                   const kernels::Ops& ops) {
  // A file may leave out trailing dimensions of 1, or write them.
  const auto trimmed = [](std::vector<uint64_t> dims) {
    while (dims.size() > 1 && dims.back() == 1) dims.pop_back();
    return dims;
  };
  if (trimmed(tensor.dims) != trimmed(slot.dims)) {
    return Fail(ErrorCode::kFormat, tensor.name,
                fmt::format("The tensor \"{}\" of \"{}\" is {}; this model needs {}.", tensor.name,
                            file.name(), JoinDims(tensor.dims), JoinDims(slot.dims)));
  }
  const std::optional<DType> type = DTypeOf(tensor.type);
  if (slot.vector != nullptr && type != DType::kF32) {
    return Fail(ErrorCode::kUnsupported, tensor.name,
                fmt::format("The tensor \"{}\" of \"{}\" has the type {}; norms are read as F32 "
                            "only.",
                            tensor.name, file.name(), gguf::TensorTypeName(tensor.type)));
  }
  if (!type || !ops.SupportsWeights(*type)) {
    return Fail(ErrorCode::kUnsupported, tensor.name,
                fmt::format("The tensor \"{}\" of \"{}\" has the type {}, which no kernel takes; "
                            "use a file of the type F32, F16, BF16, Q8_0 or Q4_0.",
                            tensor.name, file.name(), gguf::TensorTypeName(tensor.type)));
  }
  // Whole blocks in every row, which the kernels rely on.
  ASSAY_TRY_WHILE(kernels::RowBytes(*type, tensor.dims[0]),
                  fmt::format("checking tensor \"{}\" of \"{}\"", tensor.name, file.name()));
  return {};
}

// The planned tensors in the file's order. Errors: a missing, unknown, misshapen or unsupported
// tensor.
Result<std::vector<Job>> PlanJobs(const gguf::File& file, const std::string& architecture,
                                  const std::vector<TensorSlot>& slots, const kernels::Ops& ops) {
  std::unordered_map<std::string_view, const TensorSlot*> open;
  for (const TensorSlot& slot : slots) open.emplace(slot.name, &slot);
  std::vector<Job> jobs;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const auto found = open.find(tensor.name);
    if (found == open.end()) {
      // Left out it would change what the model computes, silently.
      return Fail(ErrorCode::kUnsupported, tensor.name,
                  fmt::format("The tensor {} of \"{}\" is not part of a {} model as this program "
                              "knows it.",
                              gguf::Quoted(tensor.name), file.name(), architecture));
    }
    ASSAY_TRY(CheckTensor(file, tensor, *found->second, ops));
    jobs.push_back({&tensor, found->second, *DTypeOf(tensor.type), {}});
    open.erase(found);
  }
  for (const TensorSlot& slot : slots) {
    if (open.count(slot.name) != 0) {
      return Fail(ErrorCode::kNotFound, slot.name,
                  fmt::format("The tensor \"{}\" is missing from \"{}\".", slot.name, file.name()));
    }
  }
  return jobs;
}

// What the loaders have done, for whoever watches. Thread-safe.
class LoadMeter {
 public:
  LoadMeter(const LoadOptions& options, uint64_t total) : options_(options), total_(total) {}

  // Calls `step(offset, size)` for one piece of `size_bytes` after the other, and counts them. Each
  // piece but the last is a multiple of `unit_bytes`.
  template <typename Step>
  Status InPieces(uint64_t size_bytes, const Step& step, uint64_t unit_bytes = 1) {
    // Read in some ten milliseconds from a slow disk.
    constexpr uint64_t kWantedBytes = uint64_t{4} << 20;
    const uint64_t piece_bytes = std::max<uint64_t>(1, kWantedBytes / unit_bytes) * unit_bytes;
    for (uint64_t offset = 0; offset < size_bytes; offset += piece_bytes) {
      if (options_.cancelled && options_.cancelled()) {
        return Fail(ErrorCode::kCancelled, "", "The load was stopped.");
      }
      const uint64_t size = std::min(piece_bytes, size_bytes - offset);
      ASSAY_TRY(step(static_cast<size_t>(offset), static_cast<size_t>(size)));
      const uint64_t done = done_.fetch_add(size, std::memory_order_relaxed) + size;
      if (options_.progress) options_.progress(done, total_);
    }
    return {};
  }

 private:
  const LoadOptions& options_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
};

// How the bytes of a tensor reach its buffer.
struct Filling {
  bool mmap = false;
  bool packed = false;  // By kernels::PackWeights, a row at a time.
};

uint64_t ColsOf(const Job& job) { return job.tensor->dims[0]; }
uint64_t RowsOf(const Job& job) {
  uint64_t rows = 1;
  for (size_t i = 1; i < job.tensor->dims.size(); ++i) rows *= job.tensor->dims[i];
  return rows;
}

// Through memory of the loader's own, some whole rows at a time.
Status FillInPieces(gpu::Device& device, const gguf::File& file, const Filling& filling,
                    const Job& job, LoadMeter& meter) {
  const uint64_t row_bytes = job.tensor->size_bytes / RowsOf(job);
  std::vector<std::byte> piece;
  return meter.InPieces(
      job.tensor->size_bytes,
      [&](size_t offset, size_t size) -> Status {
        piece.resize(size);
        ASSAY_TRY(file.ReadTensor(*job.tensor, piece, offset));
        if (filling.packed) {
          kernels::PackWeights(job.type, size / row_bytes, ColsOf(job), piece);
        }
        ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView part, job.buffer.View(offset, size));
        return device.Write(part, piece);
      },
      row_bytes);
}

// Makes the buffer of one tensor and fills it.
Status RunJob(gpu::Device& device, const gguf::File& file, const Filling& filling, Job& job,
              LoadMeter& meter) {
  gpu::BufferDesc desc{.size_bytes = job.tensor->size_bytes,
                       .kind = BufferKind::kWeight,
                       .label = job.tensor->name,
                       .digest = {}};
  const std::span<const std::byte> bytes = file.TensorBytes(*job.tensor);
  // Only a trace shows the digest. It is taken from the mapping, whose pages the read below then
  // finds in the page cache: the disk is read once.
  if (device.load_observer() != nullptr) {
    Hasher hasher;
    ASSAY_TRY(meter.InPieces(bytes.size(), [&](size_t offset, size_t size) -> Status {
      hasher.Update(bytes.subspan(offset, size));
      return {};
    }));
    desc.digest = hasher.HexDigest();
  }
  if (filling.mmap) {
    ASSAY_ASSIGN_OR_RETURN(job.buffer, device.ImportHostMemory(desc, bytes));
    return {};
  }
  ASSAY_ASSIGN_OR_RETURN(job.buffer, device.CreateBuffer(desc));
  if (!device.info().host_visible || filling.packed) {
    return FillInPieces(device, file, filling, job, meter);
  }
  ASSAY_ASSIGN_OR_RETURN(const gpu::HostMapping target,
                         device.Map(job.buffer.All(), Access::kWrite));
  return meter.InPieces(bytes.size(), [&](size_t offset, size_t size) {
    return file.ReadTensor(*job.tensor, target.bytes().subspan(offset, size), offset);
  });
}

// Puts the filled buffers where the plan says.
void Place(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const gpu::BufferView view = job.buffer.All();
    if (job.slot->vector != nullptr) {
      *job.slot->vector = view;
      continue;
    }
    *job.slot->matrix = {.view = view,
                         .type = job.type,
                         .rows = static_cast<uint32_t>(RowsOf(job)),
                         .cols = static_cast<uint32_t>(ColsOf(job))};
  }
}

}  // namespace

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;
const Config& Model::config() const { return state_->config; }
uint64_t Model::weight_bytes() const { return state_->weight_bytes; }

Result<std::unique_ptr<Model>> Model::Load(gpu::Device* device,
                                           std::shared_ptr<const gguf::File> file,
                                           const LoadOptions& options) {
  auto state = std::make_unique<State>();
  state->device = device;
  ASSAY_ASSIGN_OR_RETURN(state->config, ReadConfig(*file));
  state->architecture = FindArchitecture(state->config.architecture);
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<kernels::Ops> ops, kernels::Ops::Create(device));
  const std::vector<TensorSlot> slots =
      PlanTensors(*state->architecture, state->config, state->weights);
  ASSAY_ASSIGN_OR_RETURN(std::vector<Job> jobs,
                         PlanJobs(*file, state->config.architecture, slots, *ops));

  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int loaders = options.loaders > 0 ? options.loaders : cores;
  uint64_t weight_bytes = 0;
  for (const Job& job : jobs) weight_bytes += job.tensor->size_bytes;
  // Mapped weights are the file's own bytes, which some devices cannot reach or want in another
  // order.
  const bool packs =
      std::ranges::any_of(jobs, [&](const Job& job) { return ops->PacksWeights(job.type); });
  const bool mmap = options.mmap && device->info().host_visible && !packs;
  const uint64_t passes = (device->load_observer() != nullptr ? 1 : 0) + (mmap ? 0 : 1);
  LoadMeter meter(options, passes * weight_bytes);
  const MemoryNeed need(*device, fmt::format("The weights of \"{}\"", file->name()), weight_bytes);
  // Mapped weights are no memory of the program's own.
  if (!mmap) ASSAY_TRY(need.Check());
  const auto run_job = [&](size_t number) -> Status {
    Job& job = jobs[number];
    ASSAY_TRY_WHILE(
        RunJob(*device, *file, {.mmap = mmap, .packed = ops->PacksWeights(job.type)}, job, meter),
        fmt::format("reading tensor \"{}\"", job.tensor->name));
    return {};
  };
  if (Status loaded = InOrder(jobs.size(), loaders, device->load_observer(), run_job); !loaded) {
    return Fail(
        need.Explain(std::move(loaded).error().While(fmt::format("loading \"{}\"", file->name()))));
  }
  Place(jobs);
  if (state->config.tied_output) state->weights.output = state->weights.embedding;
  state->weight_bytes = weight_bytes;
  if (mmap) state->mapping = std::move(file);
  return std::unique_ptr<Model>(new Model(std::move(state)));
}

}  // namespace assay::llm
