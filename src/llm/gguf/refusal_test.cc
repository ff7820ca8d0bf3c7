// gguf::File: each refusal of a malformed header, by its code, its byte offset and its words.
#include <array>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"

#include "support/gguf_writer.h"
#include "support/tiny_model.h"

namespace assay::gguf {
namespace {

using ::assay::testing::GgufWriter;
using ::assay::testing::PutF32;
using ::assay::testing::PutString;
using ::assay::testing::PutU16;
using ::assay::testing::PutU32;
using ::assay::testing::PutU64;
using ::assay::testing::PutU8;
using ::testing::HasSubstr;

constexpr size_t kFixedHeaderBytes = 24;  // Magic, version and the two counts.

Result<std::shared_ptr<const File>> Parse(const std::string& bytes, const Limits& limits = {}) {
  return File::FromMemory(std::as_bytes(std::span(bytes)), "m.gguf", limits);
}

void ExpectRefused(const std::string& bytes, ErrorCode code, uint64_t offset,
                   const std::string& words, const Limits& limits = {}) {
  const auto file = Parse(bytes, limits);
  ASSERT_FALSE(file.has_value()) << "expected: " << words;
  EXPECT_EQ(file.error().code(), code) << file.error().ToString();
  EXPECT_EQ(file.error().subject(), "m.gguf");
  EXPECT_THAT(file.error().message(),
              HasSubstr("Byte " + std::to_string(offset) + " of \"m.gguf\""));
  EXPECT_THAT(file.error().message(), HasSubstr(words));
}

// Where the name of the only key or tensor of a header begins, and what follows that name.
uint64_t AfterName(std::string_view name) { return kFixedHeaderBytes + 8 + name.size(); }

std::string OneKey(uint32_t type, const std::string& payload) {
  GgufWriter writer;
  writer.AddRaw("k", type, payload);
  return writer.Header();
}

std::string ArrayPayload(uint32_t item_type, uint64_t count, const std::string& items) {
  std::string payload;
  PutU32(&payload, item_type);
  PutU64(&payload, count);
  return payload + items;
}

std::string OneTensor(uint32_t type, const std::vector<uint64_t>& dims, uint64_t offset = 0) {
  GgufWriter writer;
  writer.AddTensorAt("t", type, dims, offset);
  return writer.Header();
}

TEST(GgufRefusal, EmptyFile) { ExpectRefused("", ErrorCode::kFormat, 0, "The file is empty"); }

TEST(GgufRefusal, WrongMagic) {
  ExpectRefused("GGML\3\0\0\0", ErrorCode::kFormat, 0, "begins with \"GGML\", not with \"GGUF\"");
  ExpectRefused("\x1b[2J....", ErrorCode::kFormat, 0, "begins with \"\\x1b[2J\"");
}

TEST(GgufRefusal, LfsPointerIsNamed) {
  ExpectRefused("version https://git-lfs.github.com/spec/v1\n", ErrorCode::kFormat, 0,
                "Git LFS pointer");
}

TEST(GgufRefusal, OtherVersions) {
  for (const uint32_t version : {0U, 1U, 4U, 0xffffffffU}) {
    ExpectRefused(GgufWriter(version).Header(), ErrorCode::kUnsupported, 4,
                  "GGUF version " + std::to_string(version) + " is not read, only 2 and 3");
  }
  for (const uint32_t version : {2U, 3U}) {
    const auto file = Parse(GgufWriter(version).Header());
    ASSERT_TRUE(file.has_value()) << file.error().ToString();
    EXPECT_EQ((*file)->version(), version);
  }
}

TEST(GgufRefusal, BigEndian) {
  for (const uint32_t version : {0x02000000U, 0x03000000U}) {
    ExpectRefused(GgufWriter(version).Header(), ErrorCode::kUnsupported, 4, "big-endian");
  }
}

TEST(GgufRefusal, TensorCountWithoutBytes) {
  GgufWriter writer;
  writer.OverrideTensorCount(1);
  ExpectRefused(writer.Header(), ErrorCode::kFormat, 8, "counts 1 tensors of at least 33 bytes");
}

TEST(GgufRefusal, KeyCountWithoutBytes) {
  GgufWriter writer;
  writer.OverrideKeyCount(1);
  ExpectRefused(writer.Header(), ErrorCode::kFormat, 16,
                "counts 1 metadata keys of at least 14 bytes each, but only 0 bytes follow");
}

TEST(GgufRefusal, CountsOverTheirLimits) {
  GgufWriter tensors;
  tensors.OverrideTensorCount(std::numeric_limits<uint64_t>::max());
  ExpectRefused(tensors.Header(), ErrorCode::kFormat, 8,
                "counts 18446744073709551615 tensors, more than the 1048576 allowed");
  GgufWriter keys;
  keys.OverrideKeyCount(uint64_t{1} << 63);
  ExpectRefused(keys.Header(), ErrorCode::kFormat, 16,
                "counts 9223372036854775808 metadata keys, more than the 1048576 allowed");
  GgufWriter two;
  two.AddU32("a", 1);
  two.AddU32("b", 1);
  EXPECT_TRUE(Parse(two.Header(), {.max_keys = 2}).has_value());
  ExpectRefused(two.Header(), ErrorCode::kFormat, 16, "more than the 1 allowed", {.max_keys = 1});
}

TEST(GgufRefusal, KeyNames) {
  GgufWriter empty;
  empty.AddU32("", 1);
  empty.AddU32("b", 1);
  ExpectRefused(empty.Header(), ErrorCode::kFormat, kFixedHeaderBytes,
                "The name of metadata key 1 is empty");
  GgufWriter longest;
  longest.AddU32(std::string(65535, 'k'), 1);
  EXPECT_TRUE(Parse(longest.Header()).has_value());
  GgufWriter longer;
  longer.AddU32(std::string(65536, 'k'), 1);
  ExpectRefused(longer.Header(), ErrorCode::kFormat, kFixedHeaderBytes,
                "has a length of 65536 bytes, more than the 65535 allowed");
}

TEST(GgufRefusal, DuplicateKey) {
  GgufWriter writer;
  writer.AddU32("k", 1);
  writer.AddU32("other", 1);
  const size_t second = writer.Header().size();
  writer.AddBool("k", true);
  ExpectRefused(writer.Header(), ErrorCode::kFormat, second,
                "key \"k\" stands twice (numbers 1 and 3)");
}

TEST(GgufRefusal, ValueTypeUnknown) {
  ExpectRefused(OneKey(13, "12345678"), ErrorCode::kFormat, AfterName("k"),
                "metadata key \"k\" has type 13; the types are 0 to 12");
}

TEST(GgufRefusal, ValueCutShort) {
  GgufWriter writer;
  writer.AddU32("k", 1);
  const std::string whole = writer.Header();
  ExpectRefused(whole.substr(0, whole.size() - 1), ErrorCode::kFormat, AfterName("k") + 4,
                "needs 4 bytes, but the file has only 3 more");
}

TEST(GgufRefusal, BoolOtherThanZeroOrOne) {
  ExpectRefused(OneKey(7, "\2"), ErrorCode::kFormat, AfterName("k") + 4, "truth value of 2");
}

TEST(GgufRefusal, StringLongerThanTheFile) {
  std::string payload;
  PutU64(&payload, 6);
  ExpectRefused(OneKey(8, payload + "hello"), ErrorCode::kFormat, AfterName("k") + 12,
                "needs 6 bytes, but the file has only 5 more");
}

TEST(GgufRefusal, StringOverItsLimit) {
  std::string payload;
  PutU64(&payload, std::numeric_limits<uint64_t>::max());
  ExpectRefused(OneKey(8, payload), ErrorCode::kFormat, AfterName("k") + 4,
                "length of 18446744073709551615 bytes, more than the 16777216 allowed");
  GgufWriter writer;
  writer.AddString("k", "hello");
  EXPECT_TRUE(Parse(writer.Header(), {.max_string_bytes = 5}).has_value());
  ExpectRefused(writer.Header(), ErrorCode::kFormat, AfterName("k") + 4,
                "length of 5 bytes, more than the 4 allowed", {.max_string_bytes = 4});
}

TEST(GgufRefusal, NoMemoryIsTakenForAStringThatIsNotThere) {
  std::string payload;
  PutU64(&payload, uint64_t{1} << 62);
  ExpectRefused(OneKey(8, payload), ErrorCode::kFormat, AfterName("k") + 12,
                "needs 4611686018427387904 bytes, but the file has only 0 more",
                {.max_string_bytes = std::numeric_limits<uint64_t>::max()});
}

TEST(GgufRefusal, NoMemoryIsTakenForAnArrayThatIsNotThere) {
  const Limits unlimited = {.max_array_items = std::numeric_limits<uint64_t>::max(),
                            .max_header_bytes = std::numeric_limits<uint64_t>::max()};
  ExpectRefused(OneKey(9, ArrayPayload(0, uint64_t{1} << 58, "")), ErrorCode::kFormat,
                AfterName("k") + 8, "has 288230376151711744 items of at least 1 bytes each",
                unlimited);
  // 2^61 items of 8 bytes are 0 bytes once 64 bits overflow.
  ExpectRefused(OneKey(9, ArrayPayload(10, uint64_t{1} << 61, "")), ErrorCode::kFormat,
                AfterName("k") + 8, "has 2305843009213693952 items of at least 8 bytes each",
                unlimited);
}

TEST(GgufRefusal, ArrayLongerThanTheFile) {
  ExpectRefused(OneKey(9, ArrayPayload(0, 6, "12345")), ErrorCode::kFormat, AfterName("k") + 8,
                "has 6 items of at least 1 bytes each, but only 5 bytes follow");
  // Each string takes at least its length's eight bytes.
  ExpectRefused(OneKey(9, ArrayPayload(8, 1 << 24, "")), ErrorCode::kFormat, AfterName("k") + 8,
                "has 16777216 items of at least 8 bytes each, but only 0 bytes follow");
}

TEST(GgufRefusal, ArrayOverItsLimit) {
  ExpectRefused(OneKey(9, ArrayPayload(0, std::numeric_limits<uint64_t>::max(), "")),
                ErrorCode::kFormat, AfterName("k") + 8,
                "has 18446744073709551615 items, more than the 16777216 allowed");
  const std::string three = OneKey(9, ArrayPayload(0, 3, "abc"));
  EXPECT_TRUE(Parse(three, {.max_array_items = 3}).has_value());
  ExpectRefused(three, ErrorCode::kFormat, AfterName("k") + 8, "more than the 2 allowed",
                {.max_array_items = 2});
}

TEST(GgufRefusal, ArrayItemType) {
  ExpectRefused(OneKey(9, ArrayPayload(13, 0, "")), ErrorCode::kFormat, AfterName("k") + 4,
                "has type 13");
  ExpectRefused(OneKey(9, ArrayPayload(9, 1, ArrayPayload(0, 1, "x"))), ErrorCode::kUnsupported,
                AfterName("k") + 4, "array of arrays");
}

TEST(GgufRefusal, HeaderOverItsLimitInTheFile) {
  GgufWriter writer;
  writer.AddString("k", std::string(1000, 'x'));
  ExpectRefused(writer.Header(), ErrorCode::kFormat, AfterName("k") + 12,
                "of the 500 bytes that a header may take (max_header_bytes)",
                {.max_header_bytes = 500});
}

TEST(GgufRefusal, HeaderOverItsLimitInMemory) {
  const std::string items(100, 'x');
  const std::string bytes = OneKey(9, ArrayPayload(0, 100, items));
  EXPECT_TRUE(Parse(bytes, {.max_header_bytes = 5000}).has_value());
  ExpectRefused(bytes, ErrorCode::kFormat, AfterName("k") + 8, "bytes of memory",
                {.max_header_bytes = 3000});
}

TEST(GgufRefusal, Alignment) {
  for (const uint32_t bad : {0U, 4U, 24U, 33U, 0xffffffffU}) {
    GgufWriter writer;
    writer.AddU32("general.alignment", bad);
    ExpectRefused(writer.Header(), ErrorCode::kFormat, AfterName("general.alignment") + 4,
                  "The alignment (general.alignment) is " + std::to_string(bad) +
                      "; it must be a power of two and at least 8");
  }
  GgufWriter text;
  text.AddString("general.alignment", "32");
  ExpectRefused(text.Header(), ErrorCode::kFormat, AfterName("general.alignment") + 4,
                "no unsigned integer");
}

TEST(GgufRefusal, AlignmentPastTheEndOfTheFile) {
  std::string payload;
  PutU64(&payload, uint64_t{1} << 63);
  GgufWriter writer;
  writer.AddRaw("general.alignment", 10, payload);
  const auto file = Parse(writer.Header());
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  EXPECT_EQ((*file)->data_offset(), uint64_t{1} << 63);
  writer.AddTensorAt("t", 0, {1}, 0);
  ExpectRefused(writer.Header(), ErrorCode::kFormat, writer.Header().size() - 8,
                "the file has only 0 bytes of data");
}

TEST(GgufRefusal, TensorNames) {
  GgufWriter empty;
  empty.AddTensorAt("", 0, {8}, 0);
  empty.AddTensorAt("b", 0, {8}, 0);
  ExpectRefused(empty.Header() + std::string(32, '\0'), ErrorCode::kFormat, kFixedHeaderBytes,
                "The name of tensor 1 is empty");
  GgufWriter twice;
  twice.AddTensor("t", 0, {1}, "1234");
  const size_t second = twice.Header().size();
  twice.AddTensor("t", 0, {1}, "1234");
  ExpectRefused(twice.Build(), ErrorCode::kFormat, second,
                "Tensor \"t\" stands twice (numbers 1 and 2)");
}

TEST(GgufRefusal, ControlCharactersInNamesAreEscaped) {
  GgufWriter writer;
  writer.AddTensorAt("\x1b[31m\"" + std::string(100, 'n'), 0, {0}, 0);
  const auto file = Parse(writer.Header());
  ASSERT_FALSE(file.has_value());
  EXPECT_THAT(file.error().message(),
              HasSubstr("Tensor \"\\x1b[31m\\\"" + std::string(58, 'n') + "...\""));
}

TEST(GgufRefusal, DimensionCount) {
  ExpectRefused(OneTensor(0, {}) + std::string(8, '\0'), ErrorCode::kFormat, AfterName("t"),
                "has 0 dimensions; 1 to 4 are allowed");
  ExpectRefused(OneTensor(0, {1, 1, 1, 1, 1}), ErrorCode::kFormat, AfterName("t"),
                "has 5 dimensions; 1 to 4 are allowed");
}

TEST(GgufRefusal, DimensionOfZero) {
  ExpectRefused(OneTensor(0, {32, 0}), ErrorCode::kFormat, AfterName("t") + 12,
                "has a dimension 1 of 0");
}

TEST(GgufRefusal, DimensionProductOverflows) {
  const uint64_t half = uint64_t{1} << 32;
  ExpectRefused(OneTensor(0, {half, half}), ErrorCode::kFormat, AfterName("t") + 12,
                "[4294967296, 4294967296], whose product passes");
  // A product of 2^64 + 2^33 would be small again.
  ExpectRefused(OneTensor(0, {half, half + 2}), ErrorCode::kFormat, AfterName("t") + 12,
                "whose product passes the largest allowed, 9223372036854775807");
}

TEST(GgufRefusal, SizeInBytesOverflows) {
  ExpectRefused(OneTensor(0, {uint64_t{1} << 62}), ErrorCode::kFormat, AfterName("t") + 12,
                "whose size in bytes passes 64 bits");
}

TEST(GgufRefusal, TypeUnsupportedIsNamed) {
  ExpectRefused(OneTensor(3, {32}), ErrorCode::kUnsupported, AfterName("t") + 12,
                "Tensor \"t\" has type 3 (Q4_1); the types read are");
  ExpectRefused(OneTensor(10, {256}), ErrorCode::kUnsupported, AfterName("t") + 12, "(Q2_K)");
  ExpectRefused(OneTensor(39, {32}), ErrorCode::kUnsupported, AfterName("t") + 12, "(MXFP4)");
  for (const uint32_t unknown : {4U, 31U, 43U, 0xffffffffU}) {
    ExpectRefused(OneTensor(unknown, {32}), ErrorCode::kUnsupported, AfterName("t") + 12,
                  "has type " + std::to_string(unknown) + " (unknown)");
  }
}

TEST(GgufRefusal, BlocksMustDivideTheFirstDimension) {
  ExpectRefused(OneTensor(8, {48, 2}), ErrorCode::kFormat, AfterName("t") + 20,
                "first dimension of 48, which is no multiple of the 32 values in a block of Q8_0");
  ExpectRefused(OneTensor(12, {128, 2}), ErrorCode::kFormat, AfterName("t") + 20,
                "no multiple of the 256 values in a block of Q4_K");
}

TEST(GgufRefusal, OffsetNotAligned) {
  ExpectRefused(OneTensor(0, {1}, 16) + std::string(64, '\0'), ErrorCode::kFormat,
                AfterName("t") + 16, "offset 16, which is no multiple of the alignment (32)");
}

TEST(GgufRefusal, TensorPastTheEnd) {
  GgufWriter writer;
  writer.AddTensor("t", 0, {8}, std::string(32, 'x'));
  const std::string whole = writer.Build();
  EXPECT_TRUE(Parse(whole).has_value());
  ExpectRefused(whole.substr(0, whole.size() - 1), ErrorCode::kFormat, AfterName("t") + 16,
                "takes 32 bytes from byte 0 of the data on, but the file has only 31 bytes");
  // The offset and the size add up to less than the file once 64 bits overflow.
  ExpectRefused(OneTensor(0, {8}, 0 - uint64_t{32}) + std::string(64, '\0'), ErrorCode::kFormat,
                AfterName("t") + 16, "from byte 18446744073709551584 of the data on");
}

TEST(GgufRefusal, TensorsThatOverlap) {
  GgufWriter writer;
  writer.AddTensorAt("high", 0, {9}, 32);
  const size_t second = writer.Header().size();
  writer.AddTensorAt("low", 0, {9}, 0);
  // "low" takes 36 bytes and so the first four of "high", whose offset stands in the first entry.
  ExpectRefused(writer.Header() + std::string(128, '\0'), ErrorCode::kFormat, second - 8,
                "inside tensor \"low\"");
  GgufWriter touching;
  touching.AddTensorAt("high", 0, {8}, 32);
  touching.AddTensorAt("low", 0, {8}, 0);
  EXPECT_TRUE(Parse(touching.Header() + std::string(128, '\0')).has_value());
  GgufWriter same;
  same.AddTensorAt("a", 0, {8}, 0);
  same.AddTensorAt("b", 0, {8}, 0);
  EXPECT_FALSE(Parse(same.Header() + std::string(128, '\0')).has_value());
}

// Every kind of value and several tensors, small enough to be changed byte by byte.
std::string SmallModel() {
  GgufWriter writer;
  writer.AddString("general.architecture", "qwen3");
  writer.AddU32("general.alignment", 8);
  writer.SetAlignment(8);
  writer.AddF32("f", 0.5F);
  writer.AddBool("b", true);
  writer.AddStrings("strings", std::array<std::string, 2>{"x", "yz"});
  writer.AddI32s("ints", std::array{1, -2});
  writer.AddTensor("a", testing::kF32, {2, 2}, std::array{1.0F, 2.0F, 3.0F, 4.0F});
  writer.AddTensor("q", testing::kQ8_0, {32}, std::vector<float>(32, 1.0F));
  return writer.Build();
}

// Touches everything that a caller would.
void Use(const File& file) {
  size_t used = 0;
  for (const auto& [key, value] : file.metadata()) {
    ASSERT_EQ(file.FindKey(key), &value);
    used += file.GetUint(key).has_value() ? 1U : 0U;
  }
  for (const Tensor& tensor : file.tensors()) {
    ASSERT_EQ(file.FindTensor(tensor.name), &tensor);
    ASSERT_LE(tensor.size_bytes, file.size_bytes());
    ASSERT_LE(tensor.offset, file.size_bytes() - tensor.size_bytes);
    std::vector<std::byte> copy(tensor.size_bytes);
    ASSERT_TRUE(file.ReadTensor(tensor, copy).has_value());
    ASSERT_TRUE(std::ranges::equal(copy, file.TensorBytes(tensor)));
    used += copy.size();
  }
  ASSERT_LT(used, file.size_bytes() + file.metadata().size() + 1);
}

TEST(GgufRefusal, CutAtEveryByte) {
  const std::string whole = SmallModel();
  ASSERT_TRUE(Parse(whole).has_value());
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that a read past the end is seen by the address sanitizer.
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const auto file = File::FromMemory(std::as_bytes(std::span(exact)), "cut");
    EXPECT_FALSE(file.has_value()) << "cut at byte " << size;
  }
}

TEST(GgufRefusal, EveryByteChanged) {
  const std::string whole = SmallModel();
  size_t accepted = 0;
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto file = Parse(changed);
      if (!file) {
        ++refused;
        EXPECT_FALSE(file.error().message().empty());
        continue;
      }
      ++accepted;
      Use(**file);
    }
  }
  // Most changes of lengths, types and offsets show; those of values and of data cannot.
  EXPECT_GT(refused, accepted);
}

TEST(GgufRefusal, EveryLengthFieldExtreme) {
  const std::string whole = SmallModel();
  const std::array<uint64_t, 8> extremes = {0,
                                            1,
                                            0x7fffffff,
                                            0xffffffff,
                                            uint64_t{1} << 32,
                                            (uint64_t{1} << 63) - 1,
                                            uint64_t{1} << 63,
                                            std::numeric_limits<uint64_t>::max()};
  for (size_t at = 0; at + 8 <= whole.size(); ++at) {
    for (const uint64_t extreme : extremes) {
      std::string field;
      PutU64(&field, extreme);
      std::string changed = whole;
      changed.replace(at, 8, field);
      const auto file = Parse(changed);
      if (file) Use(**file);
    }
  }
}

}  // namespace
}  // namespace assay::gguf
