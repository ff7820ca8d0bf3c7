// DispatchLog: where the dispatches stand that a finding may still name.
#ifndef ASSAY_HAZARD_DISPATCH_LOG_H_
#define ASSAY_HAZARD_DISPATCH_LOG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/trace.h"

namespace assay::hazard {

// One thread.
class DispatchLog final {
 public:
  struct Record {
    uint64_t line = 0;
    uint64_t command_buffer = 0;  // From 1.
    uint32_t ordinal = 0;
    uint32_t dispatch = 0;  // From 1 within the command buffer.
    trace::KernelId kernel;
  };

  // `records_kept` is the number of records that may stand before Prune() is worth its while.
  explicit DispatchLog(size_t records_kept)
      : records_kept_(records_kept), prune_above_(records_kept) {}

  // Ordinals must rise.
  void Append(const Record& record) { records_.push_back(record); }
  // Null when the record was dropped, or never was.
  const Record* Find(uint32_t ordinal) const;

  void Clear();

  bool WantsPrune() const { return records_.size() > prune_above_; }
  // Keeps the records from `keep_from` on and those of `named` (in any order, with repeats).
  void Prune(uint32_t keep_from, std::vector<uint32_t> named);
  size_t size() const { return records_.size(); }

 private:
  std::vector<Record> records_;  // By ordinal.
  size_t records_kept_;
  size_t prune_above_;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_DISPATCH_LOG_H_
