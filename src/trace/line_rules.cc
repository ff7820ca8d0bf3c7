#include "trace/line_rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::trace {

bool NumberSet::Insert(uint64_t number) {
  const size_t word = number / 64;
  if (word >= words_.size()) {
    // Room for later numbers, but never more than the limit needs.
    const size_t wanted = std::min<size_t>(std::max(word + 1, 2 * words_.size()), kLimit / 64);
    words_.resize(wanted);
  }
  const uint64_t bit = uint64_t{1} << (number % 64);
  if ((words_[word] & bit) != 0) return false;
  words_[word] |= bit;
  return true;
}

// One overload an event, each returning what is wrong or an empty string.
struct LineRulesVisitor {
  LineRules& rules;

  std::string operator()(const MetaEvent& event) const {
    if (rules.meta_over_) return "A meta line stands behind the other events.";
    if (!rules.last_meta_key_.empty() && event.key <= rules.last_meta_key_) {
      return fmt::format(
          "The meta key \"{}\" stands behind \"{}\"; the keys must be sorted, each "
          "once.",
          event.key, rules.last_meta_key_);
    }
    rules.last_meta_key_ = event.key;
    return {};
  }
  std::string operator()(const BufferEvent& event) const {
    if (rules.in_command_buffer_) return Inside("buffer");
    return Declare(&rules.buffers_, event.buffer.value(), "Buffer #");
  }
  std::string operator()(const FreeEvent& event) const {
    if (rules.in_command_buffer_) return Inside("free");
    return Use(event.buffer);
  }
  std::string operator()(const KernelEvent& event) const {
    if (rules.in_command_buffer_) return Inside("kernel");
    return Declare(&rules.kernels_, event.kernel.value(), "Kernel k");
  }
  std::string operator()(const BeginEvent&) const {
    if (rules.in_command_buffer_) {
      return "A command buffer begins before the one that is open was committed.";
    }
    rules.in_command_buffer_ = true;
    return {};
  }
  std::string operator()(const DispatchEvent& event) const {
    if (!rules.in_command_buffer_) return Outside("dispatch");
    if (!rules.kernels_.Contains(event.kernel.value())) {
      return fmt::format("Kernel k{} is used before a line declares it.", event.kernel.value());
    }
    for (const BufferAccess& access : event.accesses) {
      if (std::string wrong = Use(access.buffer); !wrong.empty()) return wrong;
    }
    return {};
  }
  std::string operator()(const BarrierEvent&) const {
    return rules.in_command_buffer_ ? std::string() : Outside("barrier");
  }
  std::string operator()(const CommitEvent&) const {
    if (!rules.in_command_buffer_) return Outside("commit");
    rules.in_command_buffer_ = false;
    return {};
  }
  std::string operator()(const WaitEvent&) const {
    return rules.in_command_buffer_ ? Inside("wait") : std::string();
  }
  std::string operator()(const HostWriteEvent& event) const {
    return rules.in_command_buffer_ ? Inside("write") : Use(event.buffer);
  }
  std::string operator()(const HostReadEvent& event) const {
    return rules.in_command_buffer_ ? Inside("read") : Use(event.buffer);
  }
  std::string operator()(const RefusedEvent& event) const {
    if (rules.in_command_buffer_) return Inside("refused");
    if (!rules.refusals_.empty() && event.reason <= rules.refusals_.back().reason) {
      return fmt::format(
          "The refusal {} stands behind {}; each reason stands once, in the order "
          "of the format's document.",
          RefusalName(event.reason), RefusalName(rules.refusals_.back().reason));
    }
    rules.refusals_.push_back(event);
    return {};
  }

 private:
  static std::string Inside(std::string_view word) {
    return fmt::format(
        "A {} line stands between begin and commit, where only dispatch and barrier may.", word);
  }
  static std::string Outside(std::string_view word) {
    return fmt::format("A {} line stands outside begin and commit.", word);
  }
  static std::string Declare(NumberSet* set, uint64_t number, std::string_view name) {
    if (number >= NumberSet::kLimit) {
      return fmt::format("{}{} passes the largest number that is read ({}).", name, number,
                         NumberSet::kLimit - 1);
    }
    if (set->Insert(number)) return {};
    return fmt::format("{}{} is declared a second time.", name, number);
  }
  std::string Use(BufferId buffer) const {
    if (buffer == kUnnamedBuffer) {
      rules.unnamed_used_ = true;
      return {};
    }
    if (rules.buffers_.Contains(buffer.value())) return {};
    return fmt::format("Buffer #{} is used before a line declares it.", buffer.value());
  }
};

std::string LineRules::Check(const Event& event) {
  if (!refusals_.empty() && !std::holds_alternative<RefusedEvent>(event)) {
    return "An event stands behind the refusals, which only the end line may follow.";
  }
  std::string wrong = std::visit(LineRulesVisitor{*this}, event);
  meta_over_ = meta_over_ || !std::holds_alternative<MetaEvent>(event);
  return wrong;
}

std::string LineRules::CheckEnd() const {
  if (in_command_buffer_) return "The trace ends inside a command buffer: commit is missing.";
  if (unnamed_used_ && refusals_.empty()) {
    return "The trace uses #? but holds no refused line that says why.";
  }
  return {};
}

}  // namespace assay::trace
