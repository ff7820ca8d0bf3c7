#include "cli/decode_loop.h"

#include <algorithm>
#include <string>

namespace assay::cli {

using llm::TokenId;

Status DecodeLoop::Feed(std::span<const TokenId> ids) {
  if (context_->cancelled()) return Fail(ErrorCode::kCancelled, "", std::string(stopped_));
  return SayStopped(decoder_->Feed(ids), stopped_);
}

Status DecodeLoop::FeedPrompt(std::span<const TokenId> ids, size_t piece,
                              const std::function<void(size_t)>& fed) {
  for (size_t done = 0; done < ids.size();) {
    const size_t count = std::min(piece, ids.size() - done);
    ASSAY_TRY(Feed(ids.subspan(done, count)));
    done += count;
    if (fed) fed(done);
  }
  return {};
}

Status DecodeLoop::Steps(TokenId first, size_t steps,
                         const std::function<Result<TokenId>(size_t)>& take) {
  TokenId next = first;
  for (size_t step = 0; step < steps && next >= 0; ++step) {
    ASSAY_TRY(Feed({&next, 1}));
    ASSAY_ASSIGN_OR_RETURN(next, take(step));
  }
  return {};
}

}  // namespace assay::cli
