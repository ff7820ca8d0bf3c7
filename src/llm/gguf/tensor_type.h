// TensorType: block sizes and names of ggml's tensor types.
#ifndef ASSAY_LLM_GGUF_TENSOR_TYPE_H_
#define ASSAY_LLM_GGUF_TENSOR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "assay/llm.h"

namespace assay::gguf {

// Values are stored in blocks of `items` values along the first dimension, `bytes` bytes each.
struct BlockShape {
  uint32_t items;
  uint32_t bytes;
};

// Nothing for a number outside TensorType.
std::optional<BlockShape> FindBlockShape(uint32_t type_number);

// ggml's name for a number, whether or not the reader handles that type; "" for a number that ggml
// does not use or has withdrawn.
std::string_view GgmlTypeName(uint32_t type_number);

}  // namespace assay::gguf

#endif  // ASSAY_LLM_GGUF_TENSOR_TYPE_H_
