// What must hold between the lines of a trace, beyond the grammar of each.
#ifndef ASSAY_TRACE_LINE_RULES_H_
#define ASSAY_TRACE_LINE_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/trace.h"

namespace assay::trace {

// A set of numbers below a limit, one bit each; it grows with the largest number in it.
class NumberSet final {
 public:
  // 32 MiB at most.
  static constexpr uint64_t kLimit = uint64_t{1} << 28;

  bool Contains(uint64_t number) const {
    return number / 64 < words_.size() && (words_[number / 64] >> (number % 64) & 1) != 0;
  }
  // `number` must be below kLimit. False when it is in the set already.
  bool Insert(uint64_t number);

 private:
  std::vector<uint64_t> words_;
};

// Takes the events of one trace in order. Each call returns what is wrong, as a full sentence, or
// an empty string. One thread.
class LineRules final {
 public:
  std::string Check(const Event& event);
  // Nothing but the end line follows.
  std::string CheckEnd() const;

  // Whether a command buffer is open.
  bool inside() const { return in_command_buffer_; }
  const NumberSet& buffers() const { return buffers_; }
  const NumberSet& kernels() const { return kernels_; }
  // In place of Check, for lines that are certain to be right: such as declare nothing, refuse
  // nothing and use no unnamed buffer for the first time. `inside`: whether a command buffer is
  // open behind them.
  void PassLines(bool inside) {
    meta_over_ = true;
    in_command_buffer_ = inside;
  }

  const std::vector<RefusedEvent>& refusals() const { return refusals_; }

 private:
  friend struct LineRulesVisitor;

  NumberSet buffers_;
  NumberSet kernels_;
  bool meta_over_ = false;
  std::string last_meta_key_;
  bool in_command_buffer_ = false;
  bool unnamed_used_ = false;
  std::vector<RefusedEvent> refusals_;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_LINE_RULES_H_
