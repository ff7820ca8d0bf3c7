#include "cli/context_fit.h"

#include <fmt/format.h>

#include "base/counted.h"

namespace assay::cli {

std::string ContextAdvice(uint32_t positions, uint64_t needed, const llm::Config& config) {
  if (positions >= config.context) {
    return fmt::format("; {} is all that the model goes up to", config.context);
  }
  return needed <= config.context
             ? fmt::format(", or give a larger -c (up to {})", config.context)
             : fmt::format("; a larger -c does not do it: the model goes up to {}", config.context);
}

Status CheckContext(const EngineFlags& flags, const llm::Config& config) {
  if (flags.context <= config.context) return {};
  return Fail(ErrorCode::kInvalidArgument, "--ctx",
              fmt::format("A context of {} (-c) is more than the model goes up to ({}); give a "
                          "smaller -c, or leave it out.",
                          flags.context, config.context));
}

Status CheckFits(const EngineFlags& flags, const llm::Config& config, int64_t depth,
                 const TokensAfter& after) {
  ASSAY_TRY(CheckContext(flags, config));
  const int64_t positions = flags.context > 0 ? flags.context : int64_t{config.context};
  const int64_t needed = depth + after.count;
  if (needed <= positions) return {};
  const std::string_view whose = flags.context > 0 ? "that of -c" : "the model's";
  return Fail(
      ErrorCode::kInvalidArgument, "--depth",
      fmt::format(
          "Depth {} (--depth) and {} ({}) need a context of {}; {} holds {}. Give a "
          "smaller --depth or a smaller {}{}.",
          depth, Counted(static_cast<uint64_t>(after.count), after.noun), after.flag, needed, whose,
          positions, after.flag,
          ContextAdvice(static_cast<uint32_t>(positions), static_cast<uint64_t>(needed), config)));
}

}  // namespace assay::cli
