// The loops that feed a model on the user's behalf: they end when the user asks the program to
// stop, with the command's own words.
#ifndef ASSAY_CLI_DECODE_LOOP_H_
#define ASSAY_CLI_DECODE_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "assay/base.h"
#include "assay/llm.h"

#include "cli/context.h"

namespace assay::cli {

// `stopped` is what the command says when it is asked to stop: "Stopped before ...". Both borrow
// the context.
class DecodeLoop final {
 public:
  DecodeLoop(const Context* context, llm::Decoder* decoder, std::string_view stopped)
      : context_(context), decoder_(decoder), stopped_(stopped) {}

  // Feeds the prompt, at most `piece` ids at once, each of which leaves logits. `fed` is told how
  // many are. No ids: nothing.
  Status FeedPrompt(std::span<const llm::TokenId> ids, size_t piece,
                    const std::function<void(size_t done)>& fed = {});
  // Feeds `first` and then what `take` makes of each step, from 0, until there are `steps` or it
  // says a negative id.
  Status Steps(llm::TokenId first, size_t steps,
               const std::function<Result<llm::TokenId>(size_t step)>& take);
  Status Feed(std::span<const llm::TokenId> ids);

 private:
  const Context* context_;
  llm::Decoder* decoder_;
  std::string_view stopped_;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_DECODE_LOOP_H_
