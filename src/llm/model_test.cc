#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/kernels.h"
#include "assay/llm.h"

#include "support/agreement.h"
#include "support/engine.h"
#include "support/tiny_model.h"

namespace assay::llm {
namespace {

using ::testing::HasSubstr;

std::string Dense() { return testing::MakeTinyModel({}).Build(); }

// `bytes` with the 4-byte value of `key` replaced.
std::string WithValue(std::string bytes, const std::string& key, uint32_t value) {
  const size_t found = bytes.find(key);
  EXPECT_NE(found, std::string::npos) << key;
  std::memcpy(bytes.data() + found + key.size() + 4, &value, 4);
  return bytes;
}

void ExpectRefused(const std::string& bytes, ErrorCode code,
                   const std::vector<std::string>& parts) {
  const auto device = testing::MakeCpuDevice(2);
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  const auto model = Model::Load(device.get(), *file, {.loaders = 2});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), code) << model.error().ToString();
  for (const std::string& part : parts) EXPECT_THAT(model.error().ToString(), HasSubstr(part));
  EXPECT_EQ(device->live_buffers(), 0U);
  EXPECT_EQ(device->live_bytes(), 0U);
}

TEST(Model, LoadTellsItsProgressToTheEnd) {
  const std::string bytes = Dense();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
  const auto device = testing::MakeCpuDevice(2);
  std::mutex mutex;
  uint64_t most = 0, all = 0;
  const auto model = Model::Load(device.get(), file,
                                 {.loaders = 2, .progress = [&](uint64_t done, uint64_t total) {
                                    const std::scoped_lock lock(mutex);
                                    most = std::max(most, done);
                                    all = total;
                                  }});
  ASSERT_TRUE(model.has_value()) << model.error().ToString();
  EXPECT_EQ(most, (*model)->weight_bytes());
  EXPECT_EQ(all, (*model)->weight_bytes());
}

TEST(Model, LoadEndsWhenItIsAskedTo) {
  const std::string bytes = Dense();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
  const auto device = testing::MakeCpuDevice(2);
  std::atomic<int> asked{0};
  const auto model =
      Model::Load(device.get(), file, {.loaders = 1, .cancelled = [&] { return ++asked == 3; }});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(device->live_buffers(), 0U);
}

TEST(Model, NamesAMissingTensor) {
  ExpectRefused(WithValue(Dense(), "qwen3.block_count", 3), ErrorCode::kNotFound,
                {"\"blk.2.attn_norm.weight\"", "missing", "test.gguf"});
}

TEST(Model, RefusesATensorThatTheModelDoesNotUse) {
  testing::GgufWriter writer = testing::MakeTinyModel({});
  writer.AddTensor("blk.0.attn_q.bias", testing::kF32, {64}, std::vector<float>(64));
  ExpectRefused(writer.Build(), ErrorCode::kUnsupported, {"\"blk.0.attn_q.bias\"", "qwen3"});
}

TEST(Model, RefusesATensorOfAnotherShapeWithBothShapes) {
  ExpectRefused(WithValue(Dense(), "qwen3.feed_forward_length", 95), ErrorCode::kFormat,
                {"\"blk.0.ffn_gate.weight\"", "64 x 96", "64 x 95"});
}

TEST(Model, RefusesTypesWithoutAKernelAndNamesTensorAndType) {
  testing::TinyModelOptions options;
  options.hidden = 256;
  options.feed_forward = 256;
  const std::string bytes = testing::MakeTinyModel(options).Build();
  for (const auto& [type, name] :
       std::vector<std::pair<uint32_t, std::string>>{{12, "Q4_K"}, {13, "Q5_K"}, {14, "Q6_K"}}) {
    ExpectRefused(testing::WithType(bytes, "blk.1.ffn_down.weight", 2, type),
                  ErrorCode::kUnsupported, {"\"blk.1.ffn_down.weight\"", name, "Q8_0"});
  }
}

TEST(Model, RefusesNormsThatAreNotF32) {
  ExpectRefused(testing::WithType(Dense(), "blk.0.attn_norm.weight", 1, testing::kF16),
                ErrorCode::kUnsupported, {"\"blk.0.attn_norm.weight\"", "F16"});
}

TEST(Model, CountsTheBytesOfItsWeights) {
  const testing::Engine engine(Dense());
  uint64_t bytes = 0;
  for (const gguf::Tensor& tensor : engine.file().tensors()) bytes += tensor.size_bytes;
  EXPECT_EQ(engine.model().weight_bytes(), bytes);
}

TEST(Model, GivesEverythingBack) {
  const auto device = testing::MakeCpuDevice(2);
  const std::string bytes = Dense();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
  for (const bool mmap : {false, true}) {
    {
      const auto model = Model::Load(device.get(), file, {.mmap = mmap});
      ASSERT_TRUE(model.has_value()) << model.error().ToString();
      EXPECT_EQ(device->live_buffers(), file->tensors().size());
    }
    EXPECT_EQ(device->live_buffers(), 0U);
  }
}

}  // namespace
}  // namespace assay::llm
