// What the tests of the engine on any backend have in common: the shapes of their models, and how
// logits are held against the reference and against each other.
#ifndef ASSAY_TESTS_SUPPORT_AGREEMENT_H_
#define ASSAY_TESTS_SUPPORT_AGREEMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/llm.h"

#include "support/engine.h"
#include "support/tiny_model.h"

namespace assay::testing {

// A tiny model, dense or with five experts of which a token uses two.
TinyModelOptions TinyShape(GgmlType weights, bool experts, bool tied, uint32_t layers);
// The same with the head size of published models and rows of several blocks of every type, so
// that each kernel goes round its loops.
TinyModelOptions WideShape(GgmlType weights, bool experts);

// `bytes` of a GGUF file with the type of the tensor `name`, which has `dims` dimensions, replaced.
std::string WithType(std::string bytes, std::string_view name, size_t dims, uint32_t type);

// Root mean square of the differences over the standard deviation of the reference.
double RelativeError(std::span<const float> got, std::span<const double> want);

// Feeds `count` ids, the first `prompt` of them at once, and expects each step's logits within
// `tolerance` (RelativeError) of those of the forward pass in double.
void ExpectAgreesWithReference(const Engine& engine, size_t prompt, size_t count, double tolerance,
                               llm::KvType kv = llm::KvType::kF32);

// Both hold something, and the same bits.
void ExpectSameBits(std::span<const float> got, std::span<const float> want);

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_AGREEMENT_H_
