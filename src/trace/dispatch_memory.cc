#include "trace/dispatch_memory.h"

namespace assay::trace {

void DispatchMemory::Remember(const DispatchRecord& record, uint64_t epoch, std::string_view text,
                              size_t args_at) {
  if (next_ >= kMaxLines) return;
  if (next_ >= lines_.size()) lines_.resize(next_ + 1);
  Line& line = lines_[next_++];
  if (record.bindings.size() > line.bindings.size() || text.size() > line.text.size()) {
    line.epoch = 0;
    return;
  }
  line.epoch = epoch;
  line.kernel_key = record.kernel_key;
  line.grid = record.grid;
  line.shared_bytes = record.shared_bytes;
  line.arg_bytes = static_cast<uint32_t>(record.args.size());
  line.args_at = static_cast<uint16_t>(args_at);
  line.text_bytes = static_cast<uint16_t>(text.size());
  line.binding_count = static_cast<uint16_t>(record.bindings.size());
  std::copy(record.bindings.begin(), record.bindings.end(), line.bindings.begin());
  text.copy(line.text.data(), text.size());
}

void DispatchMemory::Forget() {
  if (next_ < lines_.size()) lines_[next_].epoch = 0;
  ++next_;
}

}  // namespace assay::trace
