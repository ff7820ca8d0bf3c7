#include "support/agreement.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "support/reference_model.h"

namespace assay::testing {

TinyModelOptions TinyShape(GgmlType weights, bool experts, bool tied, uint32_t layers) {
  TinyModelOptions options;
  options.weights = weights;
  options.tied_output = tied;
  options.layers = layers;
  if (experts) {
    options.experts = 5;
    options.experts_used = 2;
    options.feed_forward = 64;
  }
  return options;
}

TinyModelOptions WideShape(GgmlType weights, bool experts) {
  TinyModelOptions options = TinyShape(weights, experts, /*tied=*/experts, /*layers=*/2);
  options.hidden = 256;
  options.head_dim = 128;
  options.feed_forward = experts ? 192 : 768;
  if (experts) {
    options.experts = 16;
    options.experts_used = 4;
  }
  return options;
}

std::string WithType(std::string bytes, std::string_view name, size_t dims, uint32_t type) {
  const size_t found = bytes.find(name);
  EXPECT_NE(found, std::string::npos) << name;
  std::memcpy(bytes.data() + found + name.size() + 4 + 8 * dims, &type, 4);
  return bytes;
}

double RelativeError(std::span<const float> got, std::span<const double> want) {
  double mean = 0;
  for (const double value : want) mean += value / static_cast<double>(want.size());
  double squares = 0;
  double spread = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    squares += (got[i] - want[i]) * (got[i] - want[i]);
    spread += (want[i] - mean) * (want[i] - mean);
  }
  return std::sqrt(squares / spread);
}

void ExpectAgreesWithReference(const Engine& engine, size_t prompt, size_t count, double tolerance,
                               llm::KvType kv) {
  ReferenceModel reference(engine.file());
  const auto decoder = engine.NewDecoder({.kv = kv});
  const std::vector<llm::TokenId> ids = SomeIds(count, engine.model().config().vocabulary);
  std::vector<double> want;
  for (size_t i = 0; i < prompt; ++i) want = reference.Feed(ids[i]);
  ASSERT_TRUE(decoder->Feed(std::span(ids).first(prompt)).has_value());
  EXPECT_LT(RelativeError(decoder->Logits().value(), want), tolerance) << "after the prompt";
  for (size_t i = prompt; i < count; ++i) {
    want = reference.Feed(ids[i]);
    ASSERT_TRUE(decoder->Feed({&ids[i], 1}).has_value());
    EXPECT_LT(RelativeError(decoder->Logits().value(), want), tolerance) << "after id " << i;
  }
}

void ExpectSameBits(std::span<const float> got, std::span<const float> want) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size_bytes()), 0);
}

}  // namespace assay::testing
