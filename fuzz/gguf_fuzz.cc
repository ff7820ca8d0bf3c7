// Any bytes as a GGUF file: it is refused with a message, or every tensor of it can be read and its
// vocabulary is refused or usable.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "assay/llm.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckTensors(const assay::gguf::File& file) {
  std::vector<assay::ByteRange> ranges;
  for (const assay::gguf::Tensor& tensor : file.tensors()) {
    Require(tensor.size_bytes > 0 && tensor.offset >= file.data_offset());
    Require(tensor.offset <= file.size_bytes() &&
            tensor.size_bytes <= file.size_bytes() - tensor.offset);
    Require(tensor.offset % file.alignment() == 0);
    Require(file.FindTensor(tensor.name) == &tensor);
    ranges.push_back({tensor.offset, tensor.offset + tensor.size_bytes});
    std::vector<std::byte> copy(tensor.size_bytes);
    Require(file.ReadTensor(tensor, copy).has_value());
    Require(std::ranges::equal(copy, file.TensorBytes(tensor)));
  }
  std::ranges::sort(ranges, {}, &assay::ByteRange::begin);
  for (size_t i = 1; i < ranges.size(); ++i) Require(!ranges[i - 1].Overlaps(ranges[i]));
}

void CheckMetadata(const assay::gguf::File& file) {
  for (const auto& [key, value] : file.metadata()) {
    Require(file.FindKey(key) == &value);
    // Exactly the look-up that fits the value succeeds.
    const int fits = int{file.GetString(key).has_value()} + int{file.GetDouble(key).has_value()} +
                     int{file.GetBool(key).has_value()} + int{file.GetUint(key).has_value()};
    Require(fits <= 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Far below the defaults, so that memory stays small however often an input claims more.
  const assay::gguf::Limits limits = {.max_tensors = 1 << 12,
                                      .max_keys = 1 << 12,
                                      .max_string_bytes = 1 << 16,
                                      .max_array_items = 1 << 16,
                                      .max_header_bytes = 1 << 24};
  const auto file =
      assay::gguf::File::FromMemory(std::as_bytes(std::span(data, size)), "fuzz", limits);
  if (!file) {
    Require(!file.error().message().empty());
    return 0;
  }
  CheckTensors(**file);
  CheckMetadata(**file);
  const auto tokenizer = assay::llm::Tokenizer::FromGguf(**file);
  if (!tokenizer) {
    Require(!tokenizer.error().message().empty());
    return 0;
  }
  const auto ids = (*tokenizer)->Encode("The <|im_end|> of 12 tales.\n", true);
  Require(ids.has_value() && (*tokenizer)->Decode(*ids, true).has_value());
  return 0;
}
