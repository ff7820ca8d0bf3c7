// qwen3: a dense transformer: every layer has one gated feed-forward block.
#ifndef ASSAY_LLM_MODELS_QWEN3_H_
#define ASSAY_LLM_MODELS_QWEN3_H_

#include "llm/models/architecture.h"

namespace assay::llm {

extern const Architecture kQwen3;

}  // namespace assay::llm

#endif  // ASSAY_LLM_MODELS_QWEN3_H_
