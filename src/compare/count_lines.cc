#include "compare/count_lines.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/count_lines.cc"
#include <hwy/foreach_target.h>  // Must come before highway.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::compare {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

LineCount CountLinesIn(const uint8_t* text, size_t size) {
  LineCount count;
  if (size <= kLookAhead) return count;
  size -= kLookAhead;
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto newline = hn::Set(d, uint8_t{'\n'});
  const auto letter = hn::Set(d, uint8_t{'u'});
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto ends = hn::Eq(hn::LoadU(d, text + i), newline);
    const auto letters = hn::Eq(hn::LoadU(d, text + i + kLookAhead), letter);
    count.newlines += hn::CountTrue(d, ends);
    count.maybe_refused |= !hn::AllFalse(d, hn::And(ends, letters));
  }
  for (; i < size; ++i) {
    if (text[i] != '\n') continue;
    ++count.newlines;
    count.maybe_refused |= text[i + kLookAhead] == 'u';
  }
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::compare
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::compare {

HWY_EXPORT(CountLinesIn);

LineCount CountLines(std::string_view text) {
  return HWY_DYNAMIC_DISPATCH(CountLinesIn)(reinterpret_cast<const uint8_t*>(text.data()),
                                            text.size());
}

}  // namespace assay::compare
#endif  // HWY_ONCE
