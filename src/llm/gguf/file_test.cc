// gguf::File: what it reads, from disk and from memory.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "assay/llm.h"

#include "llm/gguf/byte_source.h"
#include "support/gguf_writer.h"
#include "support/tiny_model.h"

namespace assay::gguf {
namespace {

using ::assay::testing::GgufWriter;
using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file of its own for each test, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view contents) {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "gguf_file_test_XXXXXX";
};

std::string TwoTensors() {
  GgufWriter writer;
  writer.AddString("general.architecture", "qwen3");
  writer.AddTensor("a", assay::testing::kF32, {3}, std::array{1.0F, 2.0F, 3.0F});
  writer.AddTensor("b", assay::testing::kF16, {2, 2}, std::array{1.0F, 2.0F, 3.0F, 4.0F});
  return writer.Build();
}

TEST(GgufFile, G1_ReadsTensorsInFileOrderWithPlacesAndSizes) {
  const std::string bytes = TwoTensors();
  const auto file = File::FromMemory(Bytes(bytes), "two");
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  EXPECT_EQ((*file)->name(), "two");
  EXPECT_EQ((*file)->version(), 3U);
  EXPECT_EQ((*file)->alignment(), 32U);
  EXPECT_EQ((*file)->size_bytes(), bytes.size());
  EXPECT_EQ((*file)->data_offset() % 32, 0U);
  ASSERT_EQ((*file)->tensors().size(), 2U);
  const Tensor& a = (*file)->tensors()[0];
  const Tensor& b = (*file)->tensors()[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, TensorType::kF32);
  EXPECT_EQ(a.dims, std::vector<uint64_t>{3});
  EXPECT_EQ(a.offset, (*file)->data_offset());
  EXPECT_EQ(a.size_bytes, 12U);
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.dims, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(b.offset, (*file)->data_offset() + 32);
  EXPECT_EQ(b.size_bytes, 8U);
  EXPECT_EQ((*file)->FindTensor("b"), &b);
  EXPECT_EQ((*file)->FindTensor("c"), nullptr);
  float value = 0;
  std::memcpy(&value, (*file)->TensorBytes(a).data() + 8, 4);
  EXPECT_EQ(value, 3.0F);
}

TEST(GgufFile, G1_ReadsTheShippedModel) {
  const auto file = File::Open(ASSAY_SOURCE_DIR "/models/tiny-tales-12m-Q8_0.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  EXPECT_EQ((*file)->GetString("general.architecture").value(), "qwen3moe");
  EXPECT_EQ((*file)->GetUint("qwen3moe.block_count").value(), 6U);
  EXPECT_EQ((*file)->GetDouble("qwen3moe.rope.freq_base").value(), 10000.0);
  uint64_t values = 0;
  for (const Tensor& tensor : (*file)->tensors()) {
    uint64_t product = 1;
    for (const uint64_t dim : tensor.dims) product *= dim;
    values += product;
  }
  EXPECT_EQ(values, 12730368U);
  ASSERT_NE((*file)->FindTensor("token_embd.weight"), nullptr);
  EXPECT_EQ((*file)->FindTensor("token_embd.weight")->dims, (std::vector<uint64_t>{256, 4096}));
}

}  // namespace
}  // namespace assay::gguf
