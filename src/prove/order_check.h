// Whether dispatches may stand in the order of another trace: no two of them that touch the same
// bytes, one of them writing, may exchange their order.
#ifndef ASSAY_PROVE_ORDER_CHECK_H_
#define ASSAY_PROVE_ORDER_CHECK_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assay/base.h"
#include "assay/compare.h"

#include "hazard/range_map.h"

namespace assay::prove {

// What stands for the same dispatch, or the same buffer, in both traces.
using Mark = uint64_t;

struct MarkedAccess {
  Mark buffer = 0;
  ByteRange range;
  Access access = Access::kRead;
};

// Takes the dispatches of B first, then those of A. Of several dispatches of one mark the n-th of A
// is the n-th of B. Dispatches that only one trace has are passed over. One thread.
class OrderCheck final {
 public:
  // `sides` is for messages.
  explicit OrderCheck(compare::Sides sides) : sides_(std::move(sides)) {}
  void AddB(Mark dispatch) { places_[dispatch].push_back(count_b_++); }
  // `line` names it in a message. Without accesses it touches everything.
  void AddA(Mark dispatch, const std::vector<MarkedAccess>& accesses, uint64_t line,
            const std::string& kernel);

  bool legal() const { return conflict_.empty(); }
  // Of the first pair; empty when legal.
  const std::string& conflict() const { return conflict_; }

 private:
  struct Dispatch {
    uint64_t place_b = 0;
    uint64_t line = 0;
    std::string kernel;
  };
  // Of bytes: who wrote them last, and who has read them since; indices into dispatches_.
  struct Touched {
    std::vector<uint32_t> readers;
    int64_t writer = -1;
  };
  void CheckAfter(uint32_t earlier, uint32_t later, ByteRange range);
  void Touch(uint32_t index, const MarkedAccess& access);

  const compare::Sides sides_;
  std::unordered_map<Mark, std::vector<uint64_t>> places_;
  std::unordered_map<Mark, size_t> used_;
  uint64_t count_b_ = 0;
  std::vector<Dispatch> dispatches_;
  std::unordered_map<Mark, hazard::RangeMap<Touched>> buffers_;
  std::vector<uint32_t> everything_;  // Dispatches that touch everything.
  std::string conflict_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_ORDER_CHECK_H_
