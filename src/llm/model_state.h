// What a loaded model holds, for the decoder.
#ifndef ASSAY_LLM_MODEL_STATE_H_
#define ASSAY_LLM_MODEL_STATE_H_

#include <memory>

#include "assay/llm.h"

#include "llm/models/architecture.h"

namespace assay::llm {

struct Model::State {
  gpu::Device* device = nullptr;
  const Architecture* architecture = nullptr;
  Config config;
  // Set when the weights are the mapped file itself, which must then live as long as they do.
  // Declared before the weights, so that it goes after them.
  std::shared_ptr<const gguf::File> mapping;
  Weights weights;
  uint64_t weight_bytes = 0;
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_MODEL_STATE_H_
