// Kinds 24 to 28: the engine's own tests of equal bits, on the engine and on the engine with one
// faulty kernel planted.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/gpu.h"
#include "assay/llm.h"

#include "gpu/backend.h"
#include "support/engine.h"
#include "support/tiny_model.h"
#include "tests/faults/corpus.h"
#include "tests/faults/faulty_kernels.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

using llm::TokenId;
using testing::Engine;

// An engine of float weights whose kernels are its own, or have `fault` (may be null) among them.
std::unique_ptr<Engine> MakeEngine(const Fault* fault, int threads) {
  testing::TinyModelOptions model;
  model.layers = 2;
  model.hidden = 32;
  model.heads = 2;
  model.kv_heads = 1;
  model.head_dim = 16;
  model.feed_forward = 32;
  model.context = 300;
  auto backend = gpu::MakeBackend("cpu", {.threads = threads}).value();
  if (fault != nullptr) {
    backend = std::make_unique<PlantedKernel>(std::move(backend), fault->kernel, &fault->code);
  }
  return std::make_unique<Engine>(testing::MakeTinyModel(model).Build(),
                                  gpu::Device::Create(std::move(backend)).value());
}

std::vector<float> LogitsAfter(const Engine& engine, std::span<const TokenId> ids, uint32_t chunk) {
  // Without plans, which would fuse the kernel with the fault into another.
  const auto decoder =
      engine.NewDecoder({.prefill_chunk = chunk, .kv = llm::KvType::kF32, .graph = false});
  return testing::LogitsOf(*decoder, ids, 0);
}

// --- Chunks of a prompt (G6)

// One engine, made at first use, and the prompt's logits in chunks of several sizes.
class ChunkTest {
 public:
  ChunkTest(const Fault* fault, size_t prompt, std::vector<uint32_t> chunks, size_t warm_prefix)
      : fault_(fault), prompt_(prompt), chunks_(std::move(chunks)), warm_prefix_(warm_prefix) {}

  // "chunks 9 16, warm prefix": those whose bits are not those of token by token.
  std::string Differing() {
    if (engine_ == nullptr) {
      engine_ = MakeEngine(fault_, 1);
      ids_ = testing::SomeIds(prompt_, engine_->model().config().vocabulary);
      one_by_one_ = LogitsAfter(*engine_, ids_, 1);
    }
    std::string differing;
    for (const uint32_t chunk : chunks_) {
      if (LogitsAfter(*engine_, ids_, chunk) != one_by_one_) differing += fmt::format(" {}", chunk);
    }
    if (!differing.empty()) differing = "chunks" + differing;
    if (warm_prefix_ > 0 && AfterWarmPrefix() != one_by_one_) differing += ", warm prefix";
    return differing;
  }

 private:
  std::vector<float> AfterWarmPrefix() const {
    const auto decoder = engine_->NewDecoder({.kv = llm::KvType::kF32, .graph = false});
    const auto all = std::span(ids_);
    if (const Status fed = decoder->Feed(all.first(warm_prefix_)); !fed) return {};
    return testing::LogitsOf(*decoder, all.subspan(warm_prefix_), 0);
  }

  const Fault* fault_;
  size_t prompt_;
  std::vector<uint32_t> chunks_;
  size_t warm_prefix_;
  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> ids_;
  std::vector<float> one_by_one_;
};

Twin ChunkTwin(int kind, std::string_view name, const Fault* fault, size_t prompt,
               const std::vector<uint32_t>& chunks, std::string finding, size_t warm_prefix = 0) {
  const auto racy = std::make_shared<ChunkTest>(fault, prompt, chunks, warm_prefix);
  const auto clean = std::make_shared<ChunkTest>(nullptr, prompt, chunks, warm_prefix);
  return MakeTwin(
      kind, Catcher::kBits, name,
      [racy, clean](bool faulty) { return (faulty ? racy : clean)->Differing(); },
      std::move(finding));
}

// A short prompt is right, a long one is not.
Twin SkippedTilesTwin() {
  const std::vector<uint32_t> chunks = {20, 33, 64};
  const auto make = [&](const Fault* fault) -> Run {
    const auto brief = std::make_shared<ChunkTest>(fault, 30, chunks, 0);
    const auto lengthy = std::make_shared<ChunkTest>(fault, 70, chunks, 0);
    return [brief, lengthy](int) {
      const std::string of_short = brief->Differing();
      return of_short.empty() ? lengthy->Differing() : "short prompt: " + of_short;
    };
  };
  return {.kind = 26,
          .catcher = Catcher::kBits,
          .name = "tiles of a long prompt skipped by half of their columns",
          .racy = make(&kSkipsTilesByHalf),
          .clean = make(nullptr),
          .finding = "chunks 20 33 64"};
}

// --- Threads (G5)

class ThreadTest {
 public:
  explicit ThreadTest(bool faulty) : faulty_(faulty) {}

  // "threads 2 3 8": those whose bits are not those of one thread.
  std::string Differing() {
    constexpr int kThreads[] = {1, 2, 3, 8};
    if (engines_.empty()) {
      for (const int threads : kThreads) {
        engines_.push_back(MakeEngine(faulty_ ? &SplitByThreads(threads) : nullptr, threads));
      }
    }
    const auto ids = testing::SomeIds(6, engines_[0]->model().config().vocabulary);
    std::vector<float> first;
    std::string differing;
    for (size_t i = 0; i < engines_.size(); ++i) {
      const std::vector<float> logits = LogitsAfter(*engines_[i], ids, 6);
      if (i == 0) first = logits;
      if (logits != first) differing += fmt::format(" {}", kThreads[i]);
    }
    return differing.empty() ? "" : "threads" + differing;
  }

 private:
  bool faulty_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

Twin ThreadTwin() {
  const auto racy = std::make_shared<ThreadTest>(true);
  const auto clean = std::make_shared<ThreadTest>(false);
  return MakeTwin(
      27, Catcher::kBits, "a sum in as many parts as there are threads",
      [racy, clean](bool faulty) { return (faulty ? racy : clean)->Differing(); }, "threads 2 3 8");
}

}  // namespace

std::vector<Twin> BitsTwins() {
  return {
      ChunkTwin(24, "an engine that appends one row of many to the cache", &kAppendsOneRow, 12,
                {4, 12}, "chunks 4 12"),
      ChunkTwin(25, "another order of sums above 8 rows", &kOtherOrderAboveEightRows, 20,
                {4, 8, 9, 20}, "chunks 9 20"),
      SkippedTilesTwin(),
      ThreadTwin(),
      ChunkTwin(28, "the chunk and what lies before it summed apart", &kMergesPrefixAndChunk, 260,
                {255, 256, 257}, "chunks 255 256 257, warm prefix", 100),
  };
}

}  // namespace assay::faults
