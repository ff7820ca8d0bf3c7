#include "prove/order_check.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay::prove {

void OrderCheck::CheckAfter(uint32_t earlier, uint32_t later, ByteRange range) {
  if (earlier == later || !conflict_.empty()) return;
  const Dispatch& a = dispatches_[earlier];
  const Dispatch& b = dispatches_[later];
  if (a.place_b < b.place_b) return;
  conflict_ = fmt::format(
      "{0} (line {1} of {5}) and {2} (line {3} of {5}) both touch {4} and run the other way round "
      "in {6}",
      Printable(a.kernel), a.line, Printable(b.kernel), b.line,
      range.empty() ? std::string("all memory")
                    : fmt::format("bytes [{}, {}) of one buffer", range.begin, range.end),
      sides_.a, sides_.b);
}

void OrderCheck::Touch(uint32_t index, const MarkedAccess& access) {
  buffers_[access.buffer].Update(access.range, [&](ByteRange range, Touched& touched) {
    if (touched.writer >= 0) {
      CheckAfter(static_cast<uint32_t>(touched.writer), index, range);
    }
    if (!Writes(access.access)) {
      touched.readers.push_back(index);
      return;
    }
    for (const uint32_t reader : touched.readers) CheckAfter(reader, index, range);
    touched.readers.clear();
    touched.writer = index;
  });
}

void OrderCheck::AddA(Mark dispatch, const std::vector<MarkedAccess>& accesses, uint64_t line,
                      const std::string& kernel) {
  const auto places = places_.find(dispatch);
  if (places == places_.end()) return;
  const size_t turn = used_[dispatch]++;
  if (turn >= places->second.size()) return;
  const auto index = static_cast<uint32_t>(dispatches_.size());
  dispatches_.push_back({places->second[turn], line, kernel});
  for (const uint32_t all : everything_) CheckAfter(all, index, {});
  if (accesses.empty()) {
    for (uint32_t earlier = 0; earlier < index; ++earlier) CheckAfter(earlier, index, {});
    everything_.push_back(index);
  }
  for (const MarkedAccess& access : accesses) Touch(index, access);
}

}  // namespace assay::prove
