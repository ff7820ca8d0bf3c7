// Sampler: exact sequences, distributions, filters, and logits that are no numbers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"

#include "llm/exponential.h"

namespace assay::llm {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<TokenId> Draw(const SamplerOptions& options, const std::vector<float>& logits,
                          size_t count) {
  Sampler sampler = Sampler::Create(options).value();
  std::vector<TokenId> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(sampler.Sample(logits));
  return ids;
}

std::map<TokenId, double> Shares(const SamplerOptions& options, const std::vector<float>& logits) {
  constexpr size_t kDraws = 20000;
  std::map<TokenId, double> shares;
  for (const TokenId id : Draw(options, logits, kDraws)) shares[id] += 1.0 / kDraws;
  return shares;
}

std::vector<float> Ramp() {
  std::vector<float> logits(16);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7) * 0.5F;
  return logits;
}

TEST(Sampler, G4_TheSequenceOfASeedIsFixed) {
  EXPECT_THAT(Draw({.temperature = 1.0F, .seed = 1}, Ramp(), 16),
              ElementsAre(13, 12, 4, 12, 5, 11, 15, 9, 3, 4, 13, 6, 3, 6, 3, 4));
  EXPECT_THAT(Draw({.temperature = 0.7F, .top_k = 6, .top_p = 0.9F, .min_p = 0.05F, .seed = 42},
                   Ramp(), 16),
              ElementsAre(13, 6, 13, 13, 13, 12, 5, 12, 5, 13, 12, 13, 12, 4, 6, 12));
  EXPECT_THAT(Draw({.temperature = 1.3F, .top_p = 0.8F, .min_p = 0.1F, .seed = 7}, Ramp(), 16),
              ElementsAre(3, 5, 12, 6, 13, 6, 12, 6, 13, 4, 4, 5, 12, 4, 6, 4));
}

TEST(Sampler, G4_SeedsGiveTheirOwnSequences) {
  const auto first = Draw({.temperature = 1.0F, .seed = 1}, Ramp(), 64);
  EXPECT_EQ(Draw({.temperature = 1.0F, .seed = 1}, Ramp(), 64), first);
  EXPECT_NE(Draw({.temperature = 1.0F, .seed = 2}, Ramp(), 64), first);
}

TEST(Sampler, TemperatureZeroTakesTheLargestAndTheLowerIdOfTies) {
  EXPECT_THAT(Draw({}, {1.0F, 3.0F, 3.0F, 2.0F}, 3), Each(1));
  EXPECT_THAT(Draw({}, {-kInfinity, -5.0F}, 1), ElementsAre(1));
  EXPECT_THAT(Draw({}, {-0.0F, 0.0F}, 1), ElementsAre(0));
}

TEST(Sampler, NaNsAreNeverChosen) {
  EXPECT_THAT(Draw({}, {kNaN, 1.0F, kNaN, 2.0F}, 1), ElementsAre(3));
  EXPECT_THAT(Draw({.temperature = 5.0F}, {kNaN, 1.0F, kNaN, 1.0F}, 100),
              Each(::testing::AnyOf(1, 3)));
  EXPECT_THAT(Draw({}, {kNaN, kNaN}, 1), ElementsAre(0));
  EXPECT_THAT(Draw({.temperature = 1.0F}, {kNaN, kNaN}, 2), Each(0));
  EXPECT_THAT(Draw({.temperature = 1.0F}, {}, 1), ElementsAre(0));
}

TEST(Sampler, InfinitiesAreCertainAndImpossible) {
  EXPECT_THAT(Draw({.temperature = 1.0F}, {1.0F, kInfinity, 2.0F}, 50), Each(1));
  EXPECT_THAT(Draw({.temperature = 1.0F}, {-kInfinity, 1.0F, -kInfinity}, 50), Each(1));
  const auto shares = Shares({.temperature = 1.0F}, {kInfinity, 1.0F, kInfinity});
  EXPECT_NEAR(shares.at(0), 0.5, 0.02);
  EXPECT_NEAR(shares.at(2), 0.5, 0.02);
  // Nothing is known of any: each is as likely.
  EXPECT_EQ(Shares({.temperature = 1.0F}, {-kInfinity, -kInfinity}).size(), 2U);
}

// Four standard deviations of a share near 0.5 in 20000 draws are 0.014.
TEST(Sampler, SharesFollowTheProbabilities) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.15F),
                                     std::log(0.05F)};
  const auto shares = Shares({.temperature = 1.0F, .seed = 3}, logits);
  EXPECT_NEAR(shares.at(0), 0.5, 0.014);
  EXPECT_NEAR(shares.at(1), 0.3, 0.014);
  EXPECT_NEAR(shares.at(2), 0.15, 0.011);
  EXPECT_NEAR(shares.at(3), 0.05, 0.007);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<float> logits = {std::log(0.8F), std::log(0.2F)};
  // Probabilities to the power of 1 / temperature: 0.64 : 0.04 and 0.894 : 0.447.
  EXPECT_NEAR(Shares({.temperature = 0.5F}, logits).at(1), 0.0588, 0.007);
  EXPECT_NEAR(Shares({.temperature = 2.0F}, logits).at(1), 0.3333, 0.014);
  EXPECT_THAT(Draw({.temperature = 1e-30F}, logits, 100), Each(0));
}

TEST(Sampler, TopKKeepsTheBestAndTheLowerIdOfTies) {
  const std::vector<float> logits = {1.0F, 2.0F, 2.0F, 2.0F, 0.0F};
  const auto shares = Shares({.temperature = 1.0F, .top_k = 2}, logits);
  EXPECT_EQ(shares.size(), 2U);
  EXPECT_NEAR(shares.at(1), 0.5, 0.014);
  EXPECT_NEAR(shares.at(2), 0.5, 0.014);
  EXPECT_EQ(Shares({.temperature = 1.0F, .top_k = 5}, logits).size(), 5U);
  EXPECT_EQ(Shares({.temperature = 1.0F, .top_k = 1000}, logits).size(), 5U);
  EXPECT_THAT(Draw({.temperature = 9.0F, .top_k = 1}, logits, 50), Each(1));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = {std::log(0.25F), std::log(0.5F), std::log(0.125F),
                                     std::log(0.125F)};
  EXPECT_EQ(Shares({.temperature = 1.0F, .top_p = 0.4F}, logits).size(), 1U);
  EXPECT_EQ(Shares({.temperature = 1.0F, .top_p = 0.6F}, logits).size(), 2U);
  const auto three = Shares({.temperature = 1.0F, .top_p = 0.8F}, logits);
  EXPECT_EQ(three.size(), 3U);
  EXPECT_TRUE(three.contains(2)) << "the lower id of the two that tie";
  EXPECT_EQ(Shares({.temperature = 1.0F, .top_p = 1.0F}, logits).size(), 4U);
  // Before the temperature: a flat one does not let more in.
  EXPECT_EQ(Shares({.temperature = 50.0F, .top_p = 0.4F}, logits).size(), 1U);
  // After top-k, of what that left: 0.5 / 0.75 is 0.667 of it.
  EXPECT_EQ(Shares({.temperature = 1.0F, .top_k = 2, .top_p = 0.66F}, logits).size(), 1U);
}

TEST(Sampler, TopPOnALargeVocabularyKeepsWhatAPlainSortKeeps) {
  std::mt19937 generator(23);
  std::vector<float> logits(1000);
  for (float& logit : logits) logit = static_cast<float>(generator() % 1000) * 0.004F;
  std::vector<TokenId> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  const auto logit_of = [&](TokenId id) { return logits[static_cast<size_t>(id)]; };
  std::ranges::stable_sort(order, std::greater<>(), logit_of);
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  size_t kept = 0;
  for (double sum = 0.0; sum < 0.3 * total; ++kept) sum += std::exp(logit_of(order[kept]));
  ASSERT_GT(kept, 64U);  // More than are sorted at first.
  const std::set<TokenId> expected(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept));
  const auto ids = Draw({.temperature = 1000.0F, .top_p = 0.3F}, logits, 5000);
  const std::set<TokenId> drawn(ids.begin(), ids.end());
  EXPECT_EQ(drawn, expected);
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
  const std::vector<float> logits = {std::log(0.6F), std::log(0.3F), std::log(0.1F)};
  EXPECT_EQ(Shares({.temperature = 1.0F, .min_p = 0.1F}, logits).size(), 3U);
  EXPECT_EQ(Shares({.temperature = 1.0F, .min_p = 0.4F}, logits).size(), 2U);
  EXPECT_EQ(Shares({.temperature = 1.0F, .min_p = 0.6F}, logits).size(), 1U);
  EXPECT_EQ(Shares({.temperature = 50.0F, .min_p = 0.6F}, logits).size(), 1U);
  EXPECT_THAT(Draw({.temperature = 1.0F, .min_p = 1.0F}, {1.0F, 1.0F, 0.5F}, 50),
              Each(::testing::AnyOf(0, 1)));
}

TEST(Sampler, EachChoiceTakesOneNumberWhateverIsLeft) {
  Sampler mixed = Sampler::Create({.temperature = 1.0F, .seed = 9}).value();
  Sampler plain = Sampler::Create({.temperature = 1.0F, .seed = 9}).value();
  const std::vector<float> ramp = Ramp();
  for (int i = 0; i < 20; ++i) {
    mixed.Sample(std::vector<float>{kNaN});
    mixed.Sample(std::vector<float>{1.0F});
    plain.Sample(ramp);
    plain.Sample(ramp);
    ASSERT_EQ(mixed.Sample(ramp), plain.Sample(ramp));
  }
}

TEST(Sampler, OptionsOutsideTheirLimitsAreNamed) {
  const auto expect = [](const SamplerOptions& options, const char* words) {
    const auto sampler = Sampler::Create(options);
    ASSERT_FALSE(sampler.has_value()) << words;
    EXPECT_EQ(sampler.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(sampler.error().message(), HasSubstr(words));
  };
  expect({.temperature = -0.5F}, "The temperature is -0.5; it must be 0 (greedy) or a positive");
  expect({.temperature = kNaN}, "The temperature is nan");
  expect({.temperature = kInfinity}, "The temperature is inf");
  expect({.top_p = 0.0F}, "The top-p is 0; it must be above 0 and at most 1");
  expect({.top_p = 1.5F}, "The top-p is 1.5");
  expect({.top_p = kNaN}, "The top-p is nan");
  expect({.min_p = -0.1F}, "The min-p is -0.1; it must be 0 (off) to 1");
  expect({.min_p = 1.1F}, "The min-p is 1.1");
  expect({.min_p = kNaN}, "The min-p is nan");
}

TEST(Exponential, StaysCloseToTheLibrarys) {
  std::mt19937_64 generator(17);
  for (int i = 0; i < 200000; ++i) {
    const double x = -static_cast<double>(generator() >> 11) * 0x1p-53 * (i % 3 == 0 ? 1.0 : 700.0);
    const double expected = std::exp(x);
    ASSERT_LE(std::fabs(ExpOfNegative(x) - expected), 2e-15 * expected) << x;
  }
  EXPECT_EQ(ExpOfNegative(0.0), 1.0);
  EXPECT_EQ(ExpOfNegative(-700.5), 0.0);
  EXPECT_EQ(ExpOfNegative(-std::numeric_limits<double>::infinity()), 0.0);
}

// These inputs are ones where a correctly rounded exponential gives the same. The very bits, so
// that a compiler or a machine that rounds otherwise is seen.
TEST(Exponential, BitsAreFixed) {
  EXPECT_EQ(ExpOfNegative(-1.0), 0x1.78b56362cef38p-2);
  EXPECT_EQ(ExpOfNegative(-0.1), 0x1.cf46d99d52b3ap-1);
  EXPECT_EQ(ExpOfNegative(-20.25), 0x1.b93de1e27ca3bp-30);
  EXPECT_EQ(ExpOfNegative(-700.0), 0x1.14f2b0fb9307fp-1010);
}

}  // namespace
}  // namespace assay::llm
