// Remembers the lines of one command buffer's dispatches, so that a later command buffer that says
// the same, as each step of a decode does, copies its lines instead of making them.
#ifndef ASSAY_TRACE_DISPATCH_MEMORY_H_
#define ASSAY_TRACE_DISPATCH_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "assay/trace.h"

#include "trace/format.h"

namespace assay::trace {

// One thread. The n-th dispatch of a command buffer is held against the n-th of the one before.
class DispatchMemory final {
 public:
  // A command buffer begins.
  void Rewind() { next_ = 0; }

  // Writes the line of `record` at `p` when the dispatch remembered here had the same kernel, grid
  // and bindings, in the same epoch and with as many constant bytes; null when it had not.
  char* Recall(char* p, const DispatchRecord& record, uint64_t epoch) const {
    if (next_ >= lines_.size()) return nullptr;
    const Line& line = lines_[next_];
    if (line.epoch != epoch || line.kernel_key != record.kernel_key || line.grid != record.grid ||
        line.shared_bytes != record.shared_bytes || line.arg_bytes != record.args.size() ||
        !std::equal(record.bindings.begin(), record.bindings.end(), line.bindings.begin(),
                    line.bindings.begin() + line.binding_count, SameBinding)) {
      return nullptr;
    }
    std::memcpy(p, line.text.data(), line.text_bytes);
    PutHex(p + line.args_at, record.args);
    return p + line.text_bytes;
  }
  // Goes on to the next dispatch, and fetches the one behind it: a step's own work has pushed it
  // out of the processor's caches.
  void Skip() {
    ++next_;
    if (next_ + 1 >= lines_.size()) return;
    const char* const line = reinterpret_cast<const char*>(&lines_[next_ + 1]);
    for (size_t at = 0; at < sizeof(Line); at += 64) __builtin_prefetch(line + at);
  }
  // Remembers `text`, the line of `record` with its newline and all names in it, and goes on. The
  // hex of the constant bytes, if there are any, begins at text[args_at]. What is too large is
  // forgotten.
  void Remember(const DispatchRecord& record, uint64_t epoch, std::string_view text,
                size_t args_at);
  // Forgets the dispatch here and goes on.
  void Forget();

 private:
  static bool SameBinding(const DispatchRecord::Binding& a, const DispatchRecord::Binding& b) {
    return a.buffer_key == b.buffer_key && a.range == b.range && a.access == b.access &&
           a.exact == b.exact;
  }

  // One size for all, in 512 bytes, so that they are replaced in place.
  struct Line {
    uint64_t epoch = 0;  // Epochs begin at 1.
    uint64_t kernel_key = 0;
    Extent3 grid;
    uint32_t shared_bytes = 0;
    uint32_t arg_bytes = 0;
    uint16_t args_at = 0;
    uint16_t text_bytes = 0;
    uint16_t binding_count = 0;
    std::array<DispatchRecord::Binding, 6> bindings;
    std::array<char, 272> text;
  };
  static constexpr size_t kMaxLines = 4096;

  std::vector<Line> lines_;
  size_t next_ = 0;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_DISPATCH_MEMORY_H_
