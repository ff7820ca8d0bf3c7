#include "bench/sample_trace.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace assay::bench {
namespace {

constexpr uint64_t kLayers = 28;
constexpr uint64_t kWeightsALayer = 7;
constexpr uint64_t kActivations = 8;
constexpr uint64_t kDispatchesALayer = 12;
constexpr uint64_t kKernels = 10;
// Dispatches, half as many barriers, and begin, commit and wait.
constexpr uint64_t kLinesAToken = kLayers * kDispatchesALayer * 3 / 2 + 3;
constexpr uint64_t kWeightBytes = 4 << 20;
constexpr uint64_t kCacheRowBytes = 2048;

// Keys of the buffers; they do not show in the trace.
uint64_t WeightKey(uint64_t layer, uint64_t weight) { return 1000 + layer * 100 + weight; }
uint64_t CacheKey(uint64_t layer) { return 1000 + layer * 100 + 99; }
uint64_t ActivationKey(uint64_t i) { return 1 + i; }

class Program {
 public:
  Program(trace::TraceWriter* writer, uint64_t lines, SampleVariant variant)
      : writer_(*writer), tokens_(std::max<uint64_t>(lines / kLinesAToken, 2)), variant_(variant) {}

  Status Write() {
    MakeBuffers();
    for (uint64_t i = 0; i < kKernels; ++i) {
      const std::string name = fmt::format("kernel_{}", i);
      writer_.KernelMade(i, {.name = name, .digest = "5c1f", .workgroup = {64, 1, 1}, .spec = {}});
    }
    for (uint64_t token = 0; token < tokens_; ++token) WriteToken(token);
    return writer_.Close();
  }

 private:
  struct Made {
    uint64_t key;
    uint64_t size;
    BufferKind kind;
    std::string label;
  };

  void MakeBuffers() {
    std::vector<Made> buffers;
    for (uint64_t layer = 0; layer < kLayers; ++layer) {
      for (uint64_t weight = 0; weight < kWeightsALayer; ++weight) {
        buffers.push_back({WeightKey(layer, weight), kWeightBytes, BufferKind::kWeight,
                           fmt::format("blk.{}.weight.{}", layer, weight)});
      }
      buffers.push_back({CacheKey(layer), kCacheRowBytes * tokens_, BufferKind::kKv,
                         fmt::format("kv.{}", layer)});
    }
    for (uint64_t i = 0; i < kActivations; ++i) {
      buffers.push_back({ActivationKey(i), 4096, BufferKind::kActivation, ""});
    }
    if (variant_ == SampleVariant::kRenumbered) std::ranges::reverse(buffers);
    if (variant_ == SampleVariant::kInsertedBuffer) {
      writer_.BufferMade(0, {.size_bytes = 1, .kind = BufferKind::kOther, .label = "new"});
    }
    for (const Made& buffer : buffers) {
      writer_.BufferMade(
          buffer.key,
          {.size_bytes = buffer.size, .kind = buffer.kind, .label = buffer.label, .digest = {}});
    }
  }

  void WriteToken(uint64_t token) {
    auto commands = writer_.BeginCommandBuffer();
    for (uint64_t i = 0; i < kLayers * kDispatchesALayer; ++i) {
      const uint64_t layer = i / kDispatchesALayer, op = i % kDispatchesALayer;
      const bool middle = token == tokens_ / 2 && i == kDispatchesALayer * 5;
      const bool changed = (variant_ == SampleVariant::kChanged && middle) ||
                           (variant_ == SampleVariant::kManyChanges && (token * 7 + i) % 100 == 0);
      if (variant_ == SampleVariant::kInserted && middle) {
        Dispatch(commands.get(), token, layer, 3, 7);
        commands->Barrier();
      }
      Dispatch(commands.get(), token, layer, op, changed ? 1 : 0);
      if (op % 2 == 1) commands->Barrier();
    }
    writer_.Commit(*commands);
    writer_.Wait();
  }

  // The position stands in the constants of every third dispatch, as it does in a decode.
  static void Dispatch(trace::TraceWriter::CommandBuffer* commands, uint64_t token, uint64_t layer,
                       uint64_t op, uint32_t extra) {
    std::array<uint32_t, 4> constants = {4096, op % 3 == 0 ? static_cast<uint32_t>(token) : 0, 0,
                                         extra};
    std::array<std::byte, sizeof constants> args;
    std::memcpy(args.data(), constants.data(), args.size());
    const std::array<trace::DispatchRecord::Binding, 4> bindings = {{
        {WeightKey(layer, op % kWeightsALayer), {0, kWeightBytes}, Access::kRead},
        {ActivationKey(op % kActivations), {0, 4096}, Access::kRead},
        {ActivationKey((op + 1) % kActivations), {0, 4096}, Access::kWrite},
        {CacheKey(layer), {0, (token + 1) * kCacheRowBytes}, Access::kRead},
    }};
    commands->Dispatch({.kernel_key = op % kKernels,
                        .grid = {64, 1, 1},
                        .args = args,
                        .bindings = std::span(bindings).first(op % 3 == 0 ? 4 : 3)});
  }

  trace::TraceWriter& writer_;
  const uint64_t tokens_;
  const SampleVariant variant_;
};

}  // namespace

std::optional<SampleVariant> ParseSampleVariant(std::string_view word) {
  constexpr std::array<std::string_view, 6> kWords = {"plain",   "renumbered",      "inserted",
                                                      "changed", "inserted-buffer", "many-changes"};
  const auto found = std::ranges::find(kWords, word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<SampleVariant>(found - kWords.begin());
}

Status WriteSample(trace::TraceWriter* writer, uint64_t lines, SampleVariant variant) {
  return Program(writer, lines, variant).Write();
}

}  // namespace assay::bench
