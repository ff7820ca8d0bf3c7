#include "llm/memory_need.h"

#include <utility>

#include <fmt/format.h>

namespace assay::llm {
namespace {

std::string Mib(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

}  // namespace

std::string MemoryNeed::Sentence(bool before) const {
  std::string text = fmt::format("{} take {} of memory", what_, Mib(needed_bytes_));
  if (memory_.total_bytes == 0) return text + ".";
  text += fmt::format(", and the device \"{}\" has {}", device_, Mib(memory_.total_bytes));
  if (memory_.free_bytes) {
    text += fmt::format(", of which {} {}", Mib(*memory_.free_bytes),
                        before ? "were free before" : "are free");
  }
  return text + ".";
}

Status MemoryNeed::Check() const {
  if (!memory_.overcommits || memory_.free_bytes.value_or(UINT64_MAX) >= needed_bytes_) return {};
  return Fail(ErrorCode::kAllocation, "memory", Sentence(/*before=*/false));
}

Error MemoryNeed::Explain(Error error) const {
  if (error.code() != ErrorCode::kAllocation) return error;
  return std::move(error).Add(Sentence(/*before=*/true));
}

}  // namespace assay::llm
