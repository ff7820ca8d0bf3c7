// ExpOfNegative: an exponential that gives the same bits on every machine.
#ifndef ASSAY_LLM_EXPONENTIAL_H_
#define ASSAY_LLM_EXPONENTIAL_H_

namespace assay::llm {

// e^x for x <= 0, 0 for x below -700 (-infinity too); within 2e-15 of it relatively. It uses only
// additions and multiplications of doubles, which IEEE 754 rounds in one way, and is compiled
// without fused multiply-adds.
double ExpOfNegative(double x);

}  // namespace assay::llm

#endif  // ASSAY_LLM_EXPONENTIAL_H_
