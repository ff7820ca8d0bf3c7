#include "hazard/dispatch_log.h"

#include <algorithm>

namespace assay::hazard {

const DispatchLog::Record* DispatchLog::Find(uint32_t ordinal) const {
  const auto found =
      std::partition_point(records_.begin(), records_.end(),
                           [ordinal](const Record& record) { return record.ordinal < ordinal; });
  return found != records_.end() && found->ordinal == ordinal ? &*found : nullptr;
}

void DispatchLog::Clear() {
  records_.clear();
  prune_above_ = records_kept_;
}

void DispatchLog::Prune(uint32_t keep_from, std::vector<uint32_t> named) {
  std::sort(named.begin(), named.end());
  auto next = named.begin();
  const auto dropped = std::remove_if(records_.begin(), records_.end(), [&](const Record& record) {
    if (record.ordinal >= keep_from) return false;
    while (next != named.end() && *next < record.ordinal) ++next;
    return next == named.end() || *next != record.ordinal;
  });
  records_.erase(dropped, records_.end());
  prune_above_ = std::max(records_kept_, 2 * records_.size());
}

}  // namespace assay::hazard
