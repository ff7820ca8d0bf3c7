// Kind 34: hostile model files. Each differs from a sound one by one number, name or byte.
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/llm.h"

#include "support/engine.h"
#include "support/gguf_writer.h"
#include "support/tiny_model.h"
#include "tests/faults/checking.h"
#include "tests/faults/corpus.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

using testing::GgufWriter;

// How far a file is taken: each step reads more of it.
enum class Depth : uint8_t { kHeader, kTokenizer, kConfig, kModel };

Status ReadFileTo(Depth depth, const std::string& bytes) {
  ASSAY_ASSIGN_OR_RETURN(const auto file,
                         gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "m.gguf"));
  if (depth == Depth::kTokenizer) {
    ASSAY_ASSIGN_OR_RETURN(const auto tokenizer, llm::Tokenizer::FromGguf(*file));
  }
  if (depth == Depth::kConfig) {
    ASSAY_ASSIGN_OR_RETURN(const auto config, llm::ReadConfig(*file));
  }
  if (depth == Depth::kModel) {
    const auto device = testing::MakeCpuDevice(1);
    ASSAY_ASSIGN_OR_RETURN(const auto model, llm::Model::Load(device.get(), file, {.loaders = 1}));
  }
  return {};
}

std::string TensorCount(bool hostile) {
  GgufWriter writer;
  writer.AddTensor("t", testing::kF32, {8}, std::vector<float>(8));
  if (hostile) writer.OverrideTensorCount(UINT64_MAX);
  return writer.Build();
}

// The product of the hostile dimensions is 8 once 64 bits have overflowed.
std::string Dimensions(bool hostile) {
  GgufWriter writer;
  constexpr uint64_t kHalf = uint64_t{1} << 32;
  writer.AddTensorAt("t", testing::kF32,
                     hostile ? std::vector<uint64_t>{kHalf, kHalf, 8} : std::vector<uint64_t>{8},
                     0);
  return writer.Header() + std::string(64, '\0');
}

// Offset and size add up to 0 once 64 bits have overflowed.
std::string Offset(bool hostile) {
  GgufWriter writer;
  writer.AddTensorAt("t", testing::kF32, {8}, hostile ? UINT64_MAX - 31 : 0);
  return writer.Header() + std::string(64, '\0');
}

std::string LastByte(bool hostile) {
  GgufWriter writer;
  writer.AddTensor("t", testing::kF32, {8}, std::vector<float>(8));
  std::string bytes = writer.Build();
  if (hostile) bytes.pop_back();
  return bytes;
}

std::string Neighbours(bool hostile) {
  GgufWriter writer;
  writer.AddTensorAt("low", testing::kF32, {hostile ? 9U : 8U}, 0);
  writer.AddTensorAt("high", testing::kF32, {8}, 32);
  return writer.Header() + std::string(128, '\0');
}

std::string TensorNames(bool hostile) {
  GgufWriter writer;
  writer.AddTensor("a", testing::kF32, {8}, std::vector<float>(8));
  writer.AddTensor(hostile ? "a" : "b", testing::kF32, {8}, std::vector<float>(8));
  return writer.Build();
}

std::string KeyNames(bool hostile) {
  GgufWriter writer;
  writer.AddU32("a", 1);
  writer.AddU32(hostile ? "a" : "b", 1);
  return writer.Header();
}

std::string StringLength(bool hostile) {
  std::string payload;
  testing::PutU64(&payload, hostile ? uint64_t{1} << 62 : 5);
  GgufWriter writer;
  writer.AddRaw("k", 8, payload + "hello");
  return writer.Header();
}

// 2^61 items of 8 bytes are none once 64 bits have overflowed.
std::string ArrayLength(bool hostile) {
  constexpr uint32_t kUint64 = 10;
  std::string payload;
  testing::PutU32(&payload, kUint64);
  testing::PutU64(&payload, hostile ? uint64_t{1} << 61 : 0);
  GgufWriter writer;
  writer.AddRaw("k", 9, payload);
  return writer.Header();
}

std::string Alignment(bool hostile) {
  GgufWriter writer;
  writer.AddU32("general.alignment", hostile ? 0 : 32);
  return writer.Header();
}

// Half a block of Q8_0 at the end of each row.
std::string Blocks(bool hostile) {
  GgufWriter writer;
  writer.AddTensorAt("t", testing::kQ8_0, {hostile ? 48U : 64U, 2}, 0);
  return writer.Header() + std::string(256, '\0');
}

std::string Heads(bool hostile) {
  std::string bytes = testing::MakeTinyModel({}).Build();
  constexpr std::string_view kKey = "qwen3.attention.head_count";
  if (hostile) std::memset(bytes.data() + bytes.find(kKey) + kKey.size() + 4, 0, 4);
  return bytes;
}

std::string WithVocabulary(const std::function<void(testing::TinyVocabulary&)>& change) {
  testing::TinyVocabulary vocabulary = testing::MakeTinyVocabulary();
  change(vocabulary);
  GgufWriter writer;
  testing::AddVocabulary(vocabulary, &writer);
  return writer.Build();
}

std::string TokenTypes(bool hostile) {
  return WithVocabulary([&](testing::TinyVocabulary& vocabulary) {
    if (hostile) vocabulary.types.pop_back();
  });
}

std::string Merges(bool hostile) {
  return WithVocabulary([&](testing::TinyVocabulary& vocabulary) {
    if (hostile) vocabulary.merges[3] = "a zz";
  });
}

// The embedding has a row less than there are tokens.
std::string EmbeddingRows(bool hostile) {
  std::string bytes = testing::MakeTinyModel({}).Build();
  if (!hostile) return bytes;
  constexpr std::string_view kName = "token_embd.weight";
  // Behind the name: the number of dimensions, and the first of them.
  char* const rows = bytes.data() + bytes.find(kName) + kName.size() + 4 + 8;
  uint64_t count = 0;
  std::memcpy(&count, rows, sizeof(count));
  --count;
  std::memcpy(rows, &count, sizeof(count));
  return bytes;
}

struct FileCase {
  std::string_view name;
  std::string (*make)(bool hostile);
  std::string_view part;
  Depth depth = Depth::kHeader;
};

constexpr FileCase kCases[] = {
    {"a count of 64 ones", TensorCount, "counts 18446744073709551615 tensors"},
    {"dimensions whose product overflows", Dimensions, "whose product passes"},
    {"an offset that overflows", Offset, "from byte 18446744073709551584 of the data on"},
    {"a file without its last byte", LastByte,
     "takes 32 bytes from byte 0 of the data on, but the file has only 31 bytes"},
    {"a tensor that reaches into the next", Neighbours, "inside tensor \"low\""},
    {"two tensors of one name", TensorNames, "Tensor \"a\" stands twice"},
    {"two keys of one name", KeyNames, "key \"a\" stands twice"},
    {"a string longer than the file", StringLength, "length of 4611686018427387904 bytes"},
    {"an array whose bytes overflow", ArrayLength, "has 2305843009213693952 items"},
    {"an alignment of 0", Alignment, "The alignment (general.alignment) is 0"},
    {"half a block", Blocks, "first dimension of 48"},
    {"no heads", Heads, "between 1 and 1024", Depth::kConfig},
    {"a type too few for the tokens", TokenTypes, "tokenizer.ggml.token_type has ",
     Depth::kTokenizer},
    {"a merge that points nowhere", Merges,
     "of tokenizer.ggml.merges (\"a zz\") needs token \"zz\"", Depth::kTokenizer},
    {"a row too few for the tokens", EmbeddingRows, "token_embd.weight", Depth::kModel},
};

}  // namespace

std::vector<Twin> FileTwins() {
  std::vector<Twin> twins;
  for (const FileCase& tested : kCases) {
    twins.push_back(ErrorTwin(
        34, Catcher::kFileReader, tested.name,
        [tested, hostile = tested.make(true), sound = tested.make(false)](bool faulty) {
          return ReadFileTo(tested.depth, faulty ? hostile : sound);
        },
        "format m.gguf", std::string(tested.part)));
  }
  return twins;
}

}  // namespace assay::faults
