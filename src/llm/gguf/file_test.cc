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

TEST(GgufFile, G1_ReadsEveryKindOfValue) {
  GgufWriter writer;
  writer.AddRaw("u8", 0, "\xff");
  writer.AddRaw("i8", 1, "\xff");
  writer.AddRaw("u16", 2, "\xfe\xff");
  writer.AddRaw("i16", 3, "\xfe\xff");
  writer.AddU32("u32", 0xfffffffeU);
  writer.AddRaw("i32", 5, "\xfe\xff\xff\xff");
  writer.AddF32("f32", -0.5F);
  writer.AddBool("yes", true);
  writer.AddBool("no", false);
  writer.AddString("text", std::string("a\0b", 3));
  writer.AddI32s("array", std::array{1, -1});
  writer.AddStrings("none", {});
  writer.AddRaw("u64", 10, "\xff\xff\xff\xff\xff\xff\xff\xff");
  writer.AddRaw("i64", 11, "\xff\xff\xff\xff\xff\xff\xff\xff");
  std::string quarter;
  assay::testing::PutF64(&quarter, 0.25);
  writer.AddRaw("f64", 12, quarter);
  const std::string bytes = writer.Build();
  const auto file = File::FromMemory(Bytes(bytes), "values");
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  const auto expect = [&](std::string_view key, const Value& value) {
    ASSERT_NE((*file)->FindKey(key), nullptr) << key;
    EXPECT_TRUE(*(*file)->FindKey(key) == value) << key;
  };
  expect("u8", Value(uint64_t{255}));
  expect("i8", Value(int64_t{-1}));
  expect("u16", Value(uint64_t{0xfffe}));
  expect("i16", Value(int64_t{-2}));
  expect("u32", Value(uint64_t{0xfffffffe}));
  expect("i32", Value(int64_t{-2}));
  expect("f32", Value(-0.5));
  expect("yes", Value(true));
  expect("no", Value(false));
  expect("text", Value(std::string("a\0b", 3)));
  expect("array", Value(Array{Value(int64_t{1}), Value(int64_t{-1})}));
  expect("none", Value(Array{}));
  expect("u64", Value(~uint64_t{0}));
  expect("i64", Value(int64_t{-1}));
  expect("f64", Value(0.25));
  EXPECT_EQ((*file)->metadata().front().first, "u8");
  EXPECT_EQ((*file)->metadata().back().first, "f64");
}

TEST(GgufFile, TypedLookUpsNameTheKeyAndBothTypes) {
  GgufWriter writer;
  writer.AddU32("n", 7);
  writer.AddRaw("signed", 5, std::string("\x07\0\0\0", 4));
  writer.AddRaw("negative", 5, "\xff\xff\xff\xff");
  writer.AddF32("f", 1.5F);
  writer.AddBool("b", true);
  writer.AddString("s", "text");
  const std::string bytes = writer.Build();
  const auto file = File::FromMemory(Bytes(bytes), "keys").value();
  EXPECT_EQ(file->GetUint("n").value(), 7U);
  EXPECT_EQ(file->GetUint("signed").value(), 7U);
  EXPECT_EQ(file->GetDouble("f").value(), 1.5);
  EXPECT_EQ(file->GetBool("b").value(), true);
  EXPECT_EQ(file->GetString("s").value(), "text");
  const auto expect = [](const Error& error, ErrorCode code, const char* words) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.message(), HasSubstr(words));
  };
  expect(file->GetUint("missing").error(), ErrorCode::kNotFound,
         "\"keys\" has no metadata key \"missing\"");
  expect(file->GetUint("negative").error(), ErrorCode::kFormat, "is -1; it must not be below 0");
  expect(file->GetUint("f").error(), ErrorCode::kFormat,
         "\"f\" of \"keys\" is a floating-point number, not an unsigned integer");
  expect(file->GetDouble("n").error(), ErrorCode::kFormat, "is an integer, not a floating-point");
  expect(file->GetBool("s").error(), ErrorCode::kFormat, "is a string, not a truth value");
  expect(file->GetString("b").error(), ErrorCode::kFormat, "is a truth value, not a string");
}

TEST(GgufFile, G1_BlockSizesOfEveryType) {
  struct Case {
    TensorType type;
    const char* name;
    uint64_t bytes_for_256;
  };
  for (const Case& c :
       {Case{TensorType::kF32, "F32", 1024}, Case{TensorType::kF16, "F16", 512},
        Case{TensorType::kBF16, "BF16", 512}, Case{TensorType::kQ8_0, "Q8_0", 272},
        Case{TensorType::kQ4_0, "Q4_0", 144}, Case{TensorType::kQ4_K, "Q4_K", 144},
        Case{TensorType::kQ5_K, "Q5_K", 176}, Case{TensorType::kQ6_K, "Q6_K", 210}}) {
    GgufWriter writer;
    writer.AddTensorAt("t", static_cast<uint32_t>(c.type), {256, 3}, 0);
    const std::string bytes = writer.Header() + std::string(4096, '\0');
    const auto file = File::FromMemory(Bytes(bytes), c.name);
    ASSERT_TRUE(file.has_value()) << file.error().ToString();
    EXPECT_EQ((*file)->tensors()[0].size_bytes, 3 * c.bytes_for_256) << c.name;
    EXPECT_EQ(TensorTypeName((*file)->tensors()[0].type), c.name);
  }
}

TEST(GgufFile, AlignmentOfTheFileIsUsed) {
  GgufWriter writer;
  writer.AddU32("general.alignment", 256);
  writer.SetAlignment(256);
  writer.AddTensor("t", 0, {1}, "abcd");
  const std::string bytes = writer.Build();
  const auto file = File::FromMemory(Bytes(bytes), "aligned").value();
  EXPECT_EQ(file->alignment(), 256U);
  EXPECT_EQ(file->data_offset(), 256U);
  EXPECT_EQ(file->TensorBytes(file->tensors()[0])[0], std::byte{'a'});
}

TEST(GgufFile, HeaderLargerThanTheReadAheadIsRead) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 40000; ++i) tokens.push_back("token" + std::to_string(i));
  GgufWriter writer;
  writer.AddStrings("tokens", tokens);
  writer.AddString("long", std::string(600000, 'x'));
  writer.AddU32("after", 42);
  const TemporaryFile on_disk(writer.Build());
  const auto file = File::Open(on_disk.path());
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  const auto& read = std::get<Array>(*(*file)->FindKey("tokens"));
  ASSERT_EQ(read.size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_EQ(std::get<std::string>(read[i]), tokens[i]);
  }
  EXPECT_EQ((*file)->GetString("long").value(), std::string(600000, 'x'));
  EXPECT_EQ((*file)->GetUint("after").value(), 42U);
}

TEST(GgufFile, OpenNamesWhatIsWrongWithThePath) {
  const auto missing = File::Open("/nonexistent/model.gguf");
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().subject(), "/nonexistent/model.gguf");
  const auto directory = File::Open(::testing::TempDir());
  EXPECT_EQ(directory.error().code(), ErrorCode::kIo);
  EXPECT_THAT(directory.error().message(), HasSubstr("is a directory"));
  const auto device = File::Open("/dev/null");
  EXPECT_EQ(device.error().code(), ErrorCode::kIo);
  EXPECT_THAT(device.error().message(), HasSubstr("is a device, not a regular file"));
  const TemporaryFile empty("");
  EXPECT_EQ(File::Open(empty.path()).error().code(), ErrorCode::kFormat);
}

TEST(GgufFile, ReadTensorCopiesFromDiskAndFromMemory) {
  const std::string bytes = TwoTensors();
  const TemporaryFile on_disk(bytes);
  for (const auto& file :
       {File::Open(on_disk.path()).value(), File::FromMemory(Bytes(bytes), "two").value()}) {
    for (const Tensor& tensor : file->tensors()) {
      std::vector<std::byte> copy(tensor.size_bytes);
      ASSERT_TRUE(file->ReadTensor(tensor, copy).has_value());
      EXPECT_TRUE(std::ranges::equal(copy, file->TensorBytes(tensor)));
    }
    std::vector<std::byte> part(8);
    ASSERT_TRUE(file->ReadTensor(file->tensors()[0], part, 4).has_value());
    EXPECT_TRUE(std::ranges::equal(part, file->TensorBytes(file->tensors()[0]).subspan(4)));
    const Status status = file->ReadTensor(file->tensors()[0], part, 5);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().message(),
                HasSubstr("has 12 bytes; 8 from byte 5 on are not in it"));
  }
}

TEST(GgufFile, ReadTensorTellsAFileCutShortSinceItWasOpened) {
  const TemporaryFile on_disk(TwoTensors());
  const auto file = File::Open(on_disk.path()).value();
  const Tensor& b = file->tensors()[1];
  ASSERT_EQ(::truncate(on_disk.path().c_str(), static_cast<off_t>(b.offset + 3)), 0);
  std::vector<std::byte> copy(b.size_bytes);
  const Status status = file->ReadTensor(b, copy);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
  EXPECT_THAT(status.error().message(), HasSubstr("ends at byte " + std::to_string(b.offset + 3)));
  EXPECT_THAT(status.error().message(), HasSubstr("has been cut short since"));
  EXPECT_THAT(status.error().ToString(), HasSubstr("while reading tensor \"b\""));
}

// Every second call is interrupted; the others give at most three bytes.
ssize_t SlowPread(int fd, void* data, size_t size, off_t offset) {
  thread_local int calls = 0;
  if (++calls % 2 == 1) {
    errno = EINTR;
    return -1;
  }
  return ::pread(fd, data, std::min<size_t>(size, 3), offset);
}

ssize_t FailingPread(int, void*, size_t, off_t) {
  errno = EIO;
  return -1;
}

TEST(GgufByteSource, InterruptedAndShortReadsAreCarriedOn) {
  const std::string text = "0123456789abcdef";
  const TemporaryFile on_disk(text);
  const auto source = ByteSource::Open(on_disk.path(), SlowPread).value();
  std::string copy(14, '\0');
  ASSERT_TRUE(source->ReadAt(1, std::as_writable_bytes(std::span(copy))).has_value());
  EXPECT_EQ(copy, text.substr(1, 14));
}

TEST(GgufByteSource, ReadErrorsNameTheByte) {
  const TemporaryFile on_disk("0123456789");
  const auto source = ByteSource::Open(on_disk.path(), FailingPread).value();
  std::array<std::byte, 4> copy;
  const Status failed = source->ReadAt(5, copy);
  EXPECT_EQ(failed.error().code(), ErrorCode::kIo);
  EXPECT_THAT(failed.error().message(), HasSubstr("at byte 5: Input/output error"));
  EXPECT_EQ(source->ReadAt(7, copy).error().code(), ErrorCode::kIo);
  EXPECT_EQ(source->ReadAt(~uint64_t{0}, copy).error().code(), ErrorCode::kIo);
}

TEST(GgufWriter, RoundsHalvesAndBlocksAsTheFormatsDefineThem) {
  using assay::testing::EncodeTensor;
  const auto half = [](float value) {
    const std::string bytes = EncodeTensor(assay::testing::kF16, std::array{value});
    return static_cast<unsigned>(static_cast<unsigned char>(bytes[0])) |
           static_cast<unsigned>(static_cast<unsigned char>(bytes[1])) << 8;
  };
  EXPECT_EQ(half(1.0F), 0x3c00U);
  EXPECT_EQ(half(-2.5F), 0xc100U);
  EXPECT_EQ(half(65504.0F), 0x7bffU);
  EXPECT_EQ(half(65520.0F), 0x7c00U);
  EXPECT_EQ(half(0x1p-24F), 0x0001U);
  EXPECT_EQ(half(0x1p-14F), 0x0400U);
  EXPECT_EQ(half(1.0F + 0x1p-11F), 0x3c00U);      // A tie, to even.
  EXPECT_EQ(half(1.0F + 3 * 0x1p-11F), 0x3c02U);  // A tie, to even.
  EXPECT_EQ(half(2.0F - 0x1p-12F), 0x4000U);      // Carries into the exponent.
  std::vector<float> ramp(32);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i) - 16.0F;
  const std::string q4 = EncodeTensor(assay::testing::kQ4_0, ramp);
  ASSERT_EQ(q4.size(), 18U);
  EXPECT_EQ(q4[1], '\x40');          // Scale 2: -16 / -8.
  EXPECT_EQ(q4[2] & 0xf, 0);         // -16 is the lowest code.
  EXPECT_EQ((q4[2] >> 4) & 0xf, 8);  // 0 is code 8.
  const std::string q8 = EncodeTensor(assay::testing::kQ8_0, ramp);
  ASSERT_EQ(q8.size(), 34U);
  EXPECT_EQ(q8[2], -127);
  EXPECT_EQ(q8[18], 0);
}

TEST(GgufFile, TinyModelsOfBothArchitecturesAreWhole) {
  for (const uint32_t experts : {0U, 4U}) {
    assay::testing::TinyModelOptions options;
    options.experts = experts;
    options.experts_used = experts / 2;
    options.weights = assay::testing::kQ8_0;
    const std::string bytes = assay::testing::MakeTinyModel(options).Build();
    const auto file = File::FromMemory(Bytes(bytes), "tiny");
    ASSERT_TRUE(file.has_value()) << file.error().ToString();
    EXPECT_EQ((*file)->GetString("general.architecture").value(),
              experts == 0 ? "qwen3" : "qwen3moe");
    EXPECT_EQ((*file)->tensors().size(), experts == 0 ? 2 * 11 + 3U : 2 * 12 + 3U);
  }
}

}  // namespace
}  // namespace assay::gguf
