// Which of several buffers that are declared alike is which of the other trace's: the lines that
// use them vote.
#ifndef ASSAY_COMPARE_VOTES_H_
#define ASSAY_COMPARE_VOTES_H_

#include "assay/base.h"

#include "compare/input.h"
#include "compare/pairing.h"

namespace assay::compare {

// Names by which all buffers declared alike are one.
struct AlikeNames {
  SideNames a, b;
  AlikeNames(const Declarations& declarations_a, const Declarations& declarations_b,
             const Pairing& pairing);
};

// Aligns the traces as if buffers declared alike were one, and lets each pair of equal lines vote
// for the pairs of buffers it names: the majority of a buffer's uses decides, whether or not an
// edit names another buffer here and there. (R. S. Boyer and J S. Moore, "MJRTY - A Fast Majority
// Vote Algorithm", 1991: one candidate and one counter a buffer.) Errors: what reading fails with.
Result<Partners> VoteForPartners(const Input& input_a, const Input& input_b, const Declarations& a,
                                 const Declarations& b, const AlikeNames& alike, bool same_numbers);

// Partners of the same number, where there are any.
Partners PartnersByNumber(const Declarations& a, const Declarations& b);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_VOTES_H_
