// Speed of one operation on any backend, by many dispatches of it in one command buffer.
//
//   op_bench --backend vulkan --op matmul --type Q8_0 --rows 12288 --cols 4096 --set-mib 2048
//
// The operation runs on one set of operands after the other, each dispatch behind a barrier, so
// that the weights come from memory when the sets are larger than the caches; --barriers 0 lets
// them overlap. One line a run: the shape, microseconds a dispatch and GB/s of the bytes that must
// be read (of weights, or of the keys and values seen), each the best and the median of the rounds.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "assay/gpu.h"
#include "assay/kernels.h"

#include "gpu/backend.h"

namespace assay::kernels {
namespace {

struct Flags {
  std::map<std::string, std::string> values = {
      {"backend", "vulkan"}, {"device", ""},          {"op", "matmul"},    {"type", "Q8_0"},
      {"rows", "4096"},      {"cols", "4096"},        {"tokens", "1"},     {"experts", "128"},
      {"used", "8"},         {"heads", "32"},         {"kv-heads", "8"},   {"head-dim", "128"},
      {"position", "1024"},  {"set-mib", "512"},      {"repeat", "4"},     {"rounds", "7"},
      {"barriers", "1"},     {"kernels", "embedded"}, {"cooperative", "0"}};
  const std::string& Text(const std::string& name) const { return values.at(name); }
  uint32_t Number(const std::string& name) const {
    return static_cast<uint32_t>(std::strtoul(values.at(name).c_str(), nullptr, 10));
  }
};

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "op_bench: %s\n", result.error().ToString().c_str());
    std::exit(1);
  }
  return std::move(*result);
}
void Must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "op_bench: %s\n", status.error().ToString().c_str());
  std::exit(1);
}

DType TypeOf(const std::string& name) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    if (DTypeName(type) == name) return type;
  }
  std::fprintf(stderr, "op_bench: no type \"%s\"; use F32, F16, BF16, Q8_0 or Q4_0\n",
               name.c_str());
  std::exit(64);
}

// A dispatch on one set of operands, and the bytes that it must read.
struct Work {
  std::function<Status()> encode;
  uint64_t bytes = 0;
};

class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags) {
    gpu::BackendOptions options;
    options.vulkan.device = flags.Text("device");
    options.vulkan.kernels_from_source = flags.Text("kernels") == "source";
    device_ = Must(gpu::Device::Create(Must(gpu::MakeBackend(flags.Text("backend"), options))));
    ops_ =
        Must(Ops::Create(device_.get(), {.cooperative_matrix = flags.Number("cooperative") != 0}));
    session_ = Must(device_->CreateSession({.barriers = gpu::BarrierMode::kManual}));
  }

  void Run() {
    std::vector<Work> sets;
    const uint64_t wanted = uint64_t{flags_.Number("set-mib")} << 20;
    uint64_t total = 0;
    do {
      sets.push_back(Make());
      total += sets.back().bytes;
    } while (total < wanted && sets.size() < 4096);
    const uint32_t repeat = flags_.Number("repeat");
    std::vector<double> seconds;
    // The first round builds the kernels and touches the memory.
    for (uint32_t round = 0; round <= flags_.Number("rounds"); ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (uint32_t r = 0; r < repeat; ++r) {
        for (const Work& work : sets) {
          Must(work.encode());
          if (flags_.Number("barriers") != 0) Must(session_->Barrier());
        }
      }
      Must(session_->Commit());
      Must(session_->Wait());
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (round > 0) seconds.push_back(took.count() / static_cast<double>(repeat * sets.size()));
    }
    std::sort(seconds.begin(), seconds.end());
    const double bytes = static_cast<double>(sets[0].bytes);
    const double best = seconds.front();
    const double median = seconds[seconds.size() / 2];
    std::printf(
        "%-20s %-5s %6u x %-6u tokens %-4u sets %-5zu  us %9.2f (median %9.2f)  GB/s %8.1f "
        "(median %8.1f)\n",
        flags_.Text("op").c_str(), flags_.Text("type").c_str(), flags_.Number("rows"),
        flags_.Number("cols"), flags_.Number("tokens"), sets.size(), best * 1e6, median * 1e6,
        bytes / best * 1e-9, bytes / median * 1e-9);
  }

 private:
  gpu::BufferView Bytes(uint64_t size) {
    gpu::BufferDesc desc;
    desc.size_bytes = size;
    desc.label = "bench";
    const gpu::Buffer buffer = Must(device_->CreateBuffer(desc));
    // Bytes that are small, finite numbers in every format.
    if (pattern_.size() < size) {
      uint32_t state = 1;
      pattern_.resize(size);
      for (std::byte& byte : pattern_) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<std::byte>(state >> 27 & 31u);
      }
    }
    Must(device_->Write(buffer.All(), std::span(pattern_).first(size)));
    return buffer.All();
  }
  // Numbers from 1/2 to 1 of either sign, which f16 holds as well: zeros would cost less power.
  gpu::BufferView Floats(uint64_t count) {
    const gpu::BufferView view = Bytes(count * sizeof(float));
    if (floats_.size() < count) {
      uint32_t state = 1;
      floats_.resize(count);
      for (float& value : floats_) {
        state = state * 1664525 + 1013904223;
        value =
            std::bit_cast<float>(0x3F000000U | (state & 0x80000000U) | (state >> 8 & 0x7FFFFFU));
      }
    }
    Must(device_->Write(view, std::as_bytes(std::span(floats_).first(count))));
    return view;
  }
  Matrix F32(uint32_t rows, uint32_t cols) {
    return {Floats(uint64_t{rows} * cols), DType::kF32, rows, cols};
  }
  Activations Plain(uint32_t rows, uint32_t cols) {
    return {Floats(uint64_t{rows} * cols), ActivationFormat::kF32, rows, cols};
  }
  Activations Input(DType type, uint32_t rows, uint32_t cols) {
    const ActivationFormat format = ops_->InputFormat(type);
    if (format == ActivationFormat::kF32) return Plain(rows, cols);
    return {Bytes(ActivationBytes(format, rows, cols)), format, rows, cols};
  }
  Matrix Weights(DType type, uint32_t rows, uint32_t cols) {
    return {Bytes(Must(RowBytes(type, cols)) * rows), type, rows, cols};
  }
  // `used` different experts for each token.
  gpu::BufferView Ids(uint32_t tokens, uint32_t used, uint32_t experts) {
    std::vector<int32_t> ids(size_t{tokens} * used);
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<int32_t>((next_id_ + i * 7) % experts);
    }
    next_id_ += 1;
    const gpu::BufferView view = Bytes(ids.size() * sizeof(int32_t));
    Must(device_->Write(view, std::as_bytes(std::span(ids))));
    return view;
  }

  AttentionRoom Room(uint32_t tokens, uint32_t head_dim, uint32_t context) {
    const AttentionRoomBytes bytes = ops_->RoomForAttention(
        tokens, flags_.Number("heads"), flags_.Number("kv-heads"), head_dim, context);
    if (bytes.partials == 0) return {};
    const AttentionRoom room{Bytes(bytes.partials), Bytes(bytes.counters)};
    Must(device_->Write(room.counters, std::vector<std::byte>(bytes.counters)));
    return room;
  }

  Work Make() {
    const std::string& op = flags_.Text("op");
    const DType type = TypeOf(flags_.Text("type"));
    const uint32_t rows = flags_.Number("rows"), cols = flags_.Number("cols");
    const uint32_t tokens = flags_.Number("tokens");
    const uint32_t experts = flags_.Number("experts"), used = flags_.Number("used");
    const uint64_t matrix_bytes = Must(RowBytes(type, cols)) * rows;
    const uint64_t row_bytes = uint64_t{cols} * sizeof(float);
    Ops& o = *ops_;
    gpu::Session& s = *session_;
    if (op == "matmul" || op == "matmul_add") {
      const Matrix w = Weights(type, rows, cols), out = F32(tokens, rows);
      const Activations x = Input(type, tokens, cols);
      const gpu::BufferView residual = op == "matmul_add" ? out.view : gpu::BufferView{};
      return {[=, &o, &s] { return o.MatMul(s, w, x, out, residual); }, matrix_bytes};
    }
    if (op == "gate_up") {
      const Matrix gate = Weights(type, rows, cols), up = Weights(type, rows, cols);
      const Activations x = Input(type, tokens, cols), out = Plain(tokens, rows);
      return {[=, &o, &s] { return o.GateUp(s, gate, up, x, out); }, 2 * matrix_bytes};
    }
    if (op == "matmul_by_expert" || op == "gate_up_by_expert" || op == "down_by_expert_sum") {
      // One stack of experts for all sets, which differ in their ids.
      if (stack_.rows == 0) {
        stack_ = Weights(type, rows * experts, cols);
        stack_up_ = op == "gate_up_by_expert" ? Weights(type, rows * experts, cols) : stack_;
      }
      const Matrix w = stack_, up = stack_up_;
      const gpu::BufferView ids = Ids(tokens, used, experts);
      const uint64_t read = matrix_bytes * tokens * used;
      if (op == "matmul_by_expert") {
        const Activations x = Input(type, tokens, cols);
        const Matrix out = F32(tokens * used, rows);
        return {[=, &o, &s] { return o.MatMulByExpert(s, w, experts, ids, x, out); }, read};
      }
      if (op == "gate_up_by_expert") {
        const Activations x = Input(type, tokens, cols), out = Plain(tokens * used, rows);
        return {[=, &o, &s] { return o.GateUpByExpert(s, w, up, experts, ids, x, out); }, 2 * read};
      }
      const Activations x = Input(type, tokens * used, cols);
      const gpu::BufferView weights = F32(tokens, used).view;
      const Matrix out = F32(tokens, rows);
      return {
          [=, &o, &s] { return o.DownByExpertSum(s, w, experts, ids, x, weights, out, out.view); },
          read};
    }
    if (op == "attention") {
      const uint32_t head_dim = flags_.Number("head-dim"), position = flags_.Number("position");
      const uint32_t kv_cols = flags_.Number("kv-heads") * head_dim;
      const Matrix q = F32(tokens, flags_.Number("heads") * head_dim);
      const Matrix k = Weights(type, position + tokens, kv_cols);
      const Matrix v = Weights(type, position + tokens, kv_cols);
      const Activations out = Plain(tokens, q.cols);
      const AttentionRoom room = Room(tokens, head_dim, position + tokens);
      return {[=, &o, &s] { return o.Attention(s, q, k, v, head_dim, position, 0.1f, out, room); },
              2 * k.view.size_bytes()};
    }
    if (op == "head_norm_rope") {
      const uint32_t head_dim = flags_.Number("head-dim");
      const Matrix x = F32(tokens, flags_.Number("heads") * head_dim);
      const gpu::BufferView weight = F32(1, head_dim).view;
      const uint32_t position = flags_.Number("position");
      return {[=, &o, &s] { return o.HeadNormRope(s, x, head_dim, weight, 1e-6f, position, 1e6f); },
              x.view.size_bytes()};
    }
    const Matrix x = F32(tokens, cols);
    const Activations out = Plain(tokens, cols);
    if (op == "rms_norm") {
      const gpu::BufferView weight = F32(1, cols).view;
      return {[=, &o, &s] { return o.RmsNorm(s, x, weight, 1e-6f, out); }, tokens * row_bytes};
    }
    if (op == "silu_mul") {
      const Matrix up = F32(tokens, cols);
      return {[=, &o, &s] { return o.SiluMul(s, x, up, out); }, 2 * tokens * row_bytes};
    }
    if (op == "copy") {
      return {[=, &o, &s] { return o.Quantize(s, x, out); }, tokens * row_bytes};
    }
    if (op == "argmax") {
      const gpu::BufferView best = Bytes(uint64_t{tokens} * sizeof(int32_t));
      return {[=, &o, &s] { return o.ArgMax(s, x, best); }, tokens * row_bytes};
    }
    if (op == "route") {
      const gpu::BufferView ids = Bytes(uint64_t{tokens} * used * 4);
      const gpu::BufferView weights = Bytes(uint64_t{tokens} * used * 4);
      return {[=, &o, &s] { return o.Route(s, x, used, true, ids, weights); }, tokens * row_bytes};
    }
    std::fprintf(stderr,
                 "op_bench: no op \"%s\"; there are matmul, matmul_add, gate_up, matmul_by_expert, "
                 "gate_up_by_expert, down_by_expert_sum, attention, head_norm_rope, rms_norm, "
                 "silu_mul, copy, argmax and route\n",
                 op.c_str());
    std::exit(64);
  }

  const Flags& flags_;
  std::vector<std::byte> pattern_;
  std::vector<float> floats_;
  uint32_t next_id_ = 0;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<gpu::Session> session_;
  Matrix stack_, stack_up_;
};

}  // namespace
}  // namespace assay::kernels

int main(int argc, char** argv) {
  assay::kernels::Flags flags;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (!name.starts_with("--") || !flags.values.contains(name.substr(2)) || i + 1 == argc) {
      std::string known;
      for (const auto& [flag, value] : flags.values) known += " --" + flag + " [" + value + "]";
      std::fprintf(stderr, "op_bench: flags, each with a value:%s\n", known.c_str());
      return 64;
    }
    flags.values[name.substr(2)] = argv[i + 1];
  }
  assay::kernels::Bench(flags).Run();
  return 0;
}
