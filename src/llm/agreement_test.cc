// G4: the shipped model against what llama.cpp says of it (tests/data/README.md).
//
// The ids of two correct engines part at near ties, so each prompt is judged at its first differing
// id: a near tie when our logits of the two ids lie within what the weight type's rounding can
// move, else diverged, which is a defect. What follows the first difference belongs to other texts,
// so every step is fed the reference's own ids.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "assay/llm.h"

#include "support/engine.h"
#include "tests/conformance/executing_backends.h"

namespace assay::llm {
namespace {

constexpr size_t kVocabulary = 4096;
constexpr size_t kPrompts = 9;
constexpr std::array<int, 5> kLogitSteps = {0, 1, 2, 15, 63};
constexpr size_t kFloatsOfAType = kPrompts * kLogitSteps.size() * kVocabulary;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What must hold of one weight type.
struct Limits {
  std::string type;
  double tie;               // A margin of our logits below it is a near tie.
  double rms;               // Of the logits' differences, over all stored steps.
  double kl;                // Mean Kullback-Leibler divergence of the two distributions.
  double best_share;        // Of the stored steps, those with the same argmax.
  size_t steps = SIZE_MAX;  // Of each prompt, at most.
};

void PrintTo(const Limits& limits, std::ostream* out) { *out << limits.type; }

struct Verdicts {
  int identical = 0;
  int near_tie = 0;
  int diverged = 0;
};

struct Agreement {
  Verdicts f32_cache, f16_cache;
  double rms = 0, kl = 0, best_share = 0;
};

double Divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  const auto log_sum = [](std::span<const float> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float value : x) sum += std::exp(value - top);
    return top + std::log(sum);
  };
  const double p_sum = log_sum(p_logits);
  const double q_sum = log_sum(q_logits);
  double divergence = 0;
  for (size_t i = 0; i < p_logits.size(); ++i) {
    const double p = p_logits[i] - p_sum;
    divergence += std::exp(p) * (p - (q_logits[i] - q_sum));
  }
  return divergence;
}

size_t ArgMax(std::span<const float> x) {
  return static_cast<size_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

// Adds up the logits' differences at the stored steps.
class LogitComparison {
 public:
  void Add(std::span<const float> got, std::span<const float> want) {
    for (size_t i = 0; i < got.size(); ++i) {
      squares_ += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    }
    divergence_ += Divergence(want, got);
    same_best_ += ArgMax(got) == ArgMax(want) ? 1 : 0;
    ++count_;
  }
  void Finish(Agreement* agreement) const {
    const auto count = static_cast<double>(count_);
    agreement->rms = std::sqrt(squares_ / count / kVocabulary);
    agreement->kl = divergence_ / count;
    agreement->best_share = same_best_ / count;
  }

 private:
  double squares_ = 0, divergence_ = 0, same_best_ = 0;
  size_t count_ = 0;
};

// One of the reference's two runs of a prompt.
struct ReferenceRun {
  KvType kv;
  std::vector<TokenId> prompt;
  std::vector<TokenId> ids;
  std::vector<TokenId> other_ids;  // With the other cache type.
  std::span<const float> logits;   // At the stored steps; empty for the float16 cache.
};

// True when the reference, with the other cache, came the same way and takes `id` at `step`.
bool OtherRunTakes(const ReferenceRun& run, size_t step, TokenId id) {
  const auto begin = run.ids.begin();
  const auto end = begin + static_cast<ptrdiff_t>(step);
  return std::equal(begin, end, run.other_ids.begin()) && run.other_ids[step] == id;
}

void Follow(const testing::Engine& engine, const ReferenceRun& run, const Limits& limits,
            LogitComparison* comparison, Verdicts* verdicts) {
  const auto decoder = engine.NewDecoder({.kv = run.kv});
  ASSERT_TRUE(decoder->Feed(run.prompt).has_value());
  size_t stored = 0;
  bool parted = false;
  for (size_t step = 0; step < std::min(run.ids.size(), limits.steps); ++step) {
    const auto logits = decoder->Logits().value();
    if (!run.logits.empty() && stored < kLogitSteps.size() &&
        kLogitSteps[stored] == static_cast<int>(step)) {
      comparison->Add(logits, run.logits.subspan(stored * kVocabulary, kVocabulary));
      ++stored;
    }
    const TokenId best = decoder->Greedy().value();
    const TokenId reference = run.ids[step];
    if (best != reference && !parted) {
      parted = true;
      const double margin =
          double{logits[static_cast<size_t>(best)]} - logits[static_cast<size_t>(reference)];
      const bool near = margin <= limits.tie || OtherRunTakes(run, step, best);
      ++(near ? verdicts->near_tie : verdicts->diverged);
      EXPECT_TRUE(near) << "at step " << step << " this engine takes " << best << ", the reference "
                        << reference << ", with a margin of " << margin;
    }
    ASSERT_TRUE(decoder->Feed({&reference, 1}).has_value());
  }
  if (!parted) ++verdicts->identical;
}

Agreement Measure(const testing::Engine& engine, const nlohmann::json& prompts,
                  std::span<const float> logits, const Limits& limits) {
  Agreement agreement;
  LogitComparison comparison;
  for (size_t i = 0; i < kPrompts; ++i) {
    SCOPED_TRACE("prompt " + std::to_string(i));
    const auto ids = [&](const char* key) { return prompts[i][key].get<std::vector<TokenId>>(); };
    Follow(engine,
           {.kv = KvType::kF32,
            .prompt = ids("prompt_ids"),
            .ids = ids("greedy_kv_f32"),
            .other_ids = ids("greedy_kv_f16"),
            .logits = logits.subspan(i * kLogitSteps.size() * kVocabulary,
                                     kLogitSteps.size() * kVocabulary)},
           limits, &comparison, &agreement.f32_cache);
    Follow(engine,
           {.kv = KvType::kF16,
            .prompt = ids("prompt_ids"),
            .ids = ids("greedy_kv_f16"),
            .other_ids = ids("greedy_kv_f32"),
            .logits = {}},
           limits, &comparison, &agreement.f16_cache);
  }
  comparison.Finish(&agreement);
  return agreement;
}

void Check(const testing::Engine& engine, const nlohmann::json& prompts,
           std::span<const float> logits, const Limits& limits) {
  const Agreement agreement = Measure(engine, prompts, logits, limits);
  const auto show = [](const Verdicts& verdicts) {
    return std::to_string(verdicts.identical) + " identical, " + std::to_string(verdicts.near_tie) +
           " near ties, " + std::to_string(verdicts.diverged) + " diverged";
  };
  std::cout << limits.type << ": f32 cache " << show(agreement.f32_cache) << "; f16 cache "
            << show(agreement.f16_cache) << "; logits rms " << agreement.rms << ", KL "
            << agreement.kl << ", same argmax " << agreement.best_share << "\n";
  EXPECT_EQ(agreement.f32_cache.diverged + agreement.f16_cache.diverged, 0);
  EXPECT_LT(agreement.rms, limits.rms);
  EXPECT_LT(agreement.kl, limits.kl);
  EXPECT_GE(agreement.best_share, limits.best_share);
}

std::vector<float> Floats(std::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// llama.cpp's own Q8_0 logits lie 0.09 from exact arithmetic on the same weights (rms), F16's
// 0.003; a margin of two logits moves by the rounding of both engines.
constexpr double kRoundingInTies = 5;

class ShippedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, G4_AgreesWithLlamaCpp) {
  const std::string root = ASSAY_SOURCE_DIR;
  const auto all = nlohmann::json::parse(ReadAll(root + "/tests/data/llama_greedy.json"));
  const std::vector<float> logits = Floats(ReadAll(root + "/tests/data/llama_logits_q8_0.f32"));
  ASSERT_EQ(logits.size(), kFloatsOfAType);
  auto device = gpu::Device::Create(gpu::MakeBackend(GetParam()).value()).value();
  // A CPU that plays a GPU takes its time.
  const bool slow = GetParam() == "vulkan";
  const testing::Engine engine(ReadAll(root + "/models/tiny-tales-12m-Q8_0.gguf"),
                               std::move(device));
  Check(engine, all["types"]["Q8_0"], logits,
        {.type = "Q8_0",
         .tie = 0.09 * kRoundingInTies,
         .rms = 0.15,
         .kl = 0.01,
         .best_share = 0.9,
         .steps = slow ? 8 : SIZE_MAX});
}
INSTANTIATE_TEST_SUITE_P(Backends, ShippedModel, ::testing::ValuesIn(gpu::testing::PlainBackends()),
                         gpu::testing::BackendTestName);

// The other types' files are not in the repository. ASSAY_MODELS_DIR names a folder with them,
// their ids (llama_greedy.json) and logits (llama_logits.f32); without it these tests do not exist.
std::string OtherModels() {
  const char* folder = std::getenv("ASSAY_MODELS_DIR");
  return folder == nullptr ? "" : folder;
}

std::vector<Limits> OtherTypes() {
  if (OtherModels().empty()) return {};
  return {
      {.type = "F16", .tie = 0.003 * kRoundingInTies, .rms = 0.01, .kl = 1e-4, .best_share = 1},
      // llama.cpp rounds the activations to BF16 as well.
      {.type = "BF16", .tie = 0.05 * kRoundingInTies, .rms = 0.08, .kl = 1e-3, .best_share = 1},
      {.type = "Q4_0", .tie = 0.09 * kRoundingInTies, .rms = 0.2, .kl = 0.02, .best_share = 0.9}};
}

class OtherTypesAgreement : public ::testing::TestWithParam<Limits> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OtherTypesAgreement);

TEST_P(OtherTypesAgreement, G4_AgreesWithLlamaCpp) {
  const auto all = nlohmann::ordered_json::parse(ReadAll(OtherModels() + "/llama_greedy.json"));
  const std::vector<float> logits = Floats(ReadAll(OtherModels() + "/llama_logits.f32"));
  ASSERT_EQ(logits.size(), all["types"].size() * kFloatsOfAType);
  size_t index = 0;
  for (const auto& [type, prompts] : all["types"].items()) {
    if (type == GetParam().type) {
      auto file = gguf::File::Open(OtherModels() + "/tiny-tales-12m-" + type + ".gguf");
      ASSERT_TRUE(file.has_value()) << file.error().ToString();
      Check(testing::Engine(*file), nlohmann::json(prompts),
            std::span(logits).subspan(index * kFloatsOfAType, kFloatsOfAType), GetParam());
    }
    ++index;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OtherTypesAgreement, ::testing::ValuesIn(OtherTypes()),
                         [](const auto& test) { return test.param.type; });

std::vector<std::string> KQuants() {
  if (OtherModels().empty()) return {};
  return {"Q6_K", "Q5_K_M", "Q4_K_M"};
}

class KQuantFiles : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KQuantFiles);

TEST_P(KQuantFiles, AreRefused) {
  const auto file = gguf::File::Open(OtherModels() + "/tiny-tales-12m-" + GetParam() + ".gguf");
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  const auto device = testing::MakeCpuDevice(1);
  const auto model = Model::Load(device.get(), *file);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), ErrorCode::kUnsupported) << model.error().ToString();
}

INSTANTIATE_TEST_SUITE_P(Types, KQuantFiles, ::testing::ValuesIn(KQuants()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace assay::llm
