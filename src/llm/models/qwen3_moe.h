// qwen3moe: qwen3 with a router and experts in place of the feed-forward block.
#ifndef ASSAY_LLM_MODELS_QWEN3_MOE_H_
#define ASSAY_LLM_MODELS_QWEN3_MOE_H_

#include "llm/models/architecture.h"

namespace assay::llm {

extern const Architecture kQwen3Moe;

}  // namespace assay::llm

#endif  // ASSAY_LLM_MODELS_QWEN3_MOE_H_
