#include "llm/gguf/tensor_type.h"

#include <array>

namespace assay::gguf {
namespace {

// Indexed by ggml's number; "" marks a withdrawn or unused one.
constexpr std::array<std::string_view, 43> kGgmlTypeNames = {
    "F32",     "F16",   "Q4_0",   "Q4_1",  "",      "",       "Q5_0", "Q5_1",    "Q8_0",
    "Q8_1",    "Q2_K",  "Q3_K",   "Q4_K",  "Q5_K",  "Q6_K",   "Q8_K", "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",   "I16",     "I32",
    "I64",     "F64",   "IQ1_M",  "BF16",  "",      "",       "",     "TQ1_0",   "TQ2_0",
    "",        "",      "",       "MXFP4", "NVFP4", "Q1_0",   "Q2_0"};

}  // namespace

std::optional<BlockShape> FindBlockShape(uint32_t type_number) {
  switch (static_cast<TensorType>(type_number)) {
    case TensorType::kF32:
      return BlockShape{1, 4};
    case TensorType::kF16:
    case TensorType::kBF16:
      return BlockShape{1, 2};
    case TensorType::kQ4_0:
      return BlockShape{32, 18};
    case TensorType::kQ8_0:
      return BlockShape{32, 34};
    case TensorType::kQ4_K:
      return BlockShape{256, 144};
    case TensorType::kQ5_K:
      return BlockShape{256, 176};
    case TensorType::kQ6_K:
      return BlockShape{256, 210};
  }
  return std::nullopt;
}

std::string_view GgmlTypeName(uint32_t type_number) {
  return type_number < kGgmlTypeNames.size() ? kGgmlTypeNames[type_number] : std::string_view();
}

std::string_view TensorTypeName(TensorType type) {
  return GgmlTypeName(static_cast<uint32_t>(type));
}

}  // namespace assay::gguf
