// Whether what the flags ask for fits into the context, said in the words of the flags before
// anything is loaded.
#ifndef ASSAY_CLI_CONTEXT_FIT_H_
#define ASSAY_CLI_CONTEXT_FIT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "assay/base.h"
#include "assay/llm.h"

#include "cli/engine_flags.h"

namespace assay::cli {

// What else can be done where `positions` (-c, or the model's own) are too few for `needed`, behind
// other advice: ", or give a larger -c (up to 2048)", or "; " and that the model goes no further.
std::string ContextAdvice(uint32_t positions, uint64_t needed, const llm::Config& config);

// Error kInvalidArgument where -c is more than the model goes up to.
Status CheckContext(const EngineFlags& flags, const llm::Config& config);

// Tokens that follow those of --depth, and the flag that says how many: 5, "step", "--steps".
struct TokensAfter {
  int64_t count = 0;
  std::string_view noun;
  std::string_view flag;
};

inline TokensAfter StepsAfter(int64_t steps) { return {steps, "step", "--steps"}; }

// CheckContext, and error kInvalidArgument where a decode of `depth` tokens and those behind them
// does not fit, with the flags that make up the number.
Status CheckFits(const EngineFlags& flags, const llm::Config& config, int64_t depth,
                 const TokensAfter& after);

}  // namespace assay::cli

#endif  // ASSAY_CLI_CONTEXT_FIT_H_
