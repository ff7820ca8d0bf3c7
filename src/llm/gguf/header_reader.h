// HeaderReader: everything of a GGUF file that stands before the tensors' bytes, checked.
//
// The format is described in docs/gguf.md.
#ifndef ASSAY_LLM_GGUF_HEADER_READER_H_
#define ASSAY_LLM_GGUF_HEADER_READER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "assay/llm.h"

#include "llm/gguf/byte_source.h"

namespace assay::gguf {

struct Header {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_offset = 0;  // Where the tensors' bytes begin: the header's end, aligned.
  std::vector<std::pair<std::string, Value>> metadata;
  std::vector<Tensor> tensors;
};

// Errors as File::Open. Every tensor of a returned header lies inside the source and overlaps no
// other.
Result<Header> ReadHeader(const ByteSource& source, const Limits& limits);

}  // namespace assay::gguf

#endif  // ASSAY_LLM_GGUF_HEADER_READER_H_
