// The programs of kinds 1 to 10: dispatches that only a barrier orders. What each lacks in its racy
// form is said with it, by the numbers of its fences.
#ifndef ASSAY_TESTS_FAULTS_ORDERING_PROGRAMS_H_
#define ASSAY_TESTS_FAULTS_ORDERING_PROGRAMS_H_

#include "tests/faults/stage.h"

namespace assay::faults {

// Kind 1. Two steps of state = state * scale + bias in one command buffer. Fence 2 stands where one
// step ends and the next begins.
void TwoStepsInOne(Stage& stage);
// The same with the command buffer ending there; without fence 2 they are merged.
void TwoStepsApart(Stage& stage);

// Kind 2. One helper adds to the residual stream, the next normalises it; fence 1 lies between
// their calls, and fence 2 inside the second.
void ResidualThenNorm(Stage& stage);

// Kind 3. g is read, then overwritten in place; fence 1 lies between.
void OverwriteAfterRead(Stage& stage);

// Kind 4. 64 writes of one row, a fence between any two.
void WritesInARow(Stage& stage);

// Kind 5, with SmuggledDispatch around the recorder: x is written behind the session's back as the
// second command buffer begins. Fence 2 follows a dispatch that has nothing to do with x.
void ReaderOfAHiddenProducer(Stage& stage);

// Kind 6. A chain of four values with fences 1, 2 and 3 between their producers.
void ChainOfFour(Stage& stage);

// Kind 10. A product of many rows, and behind fence 1 a reader of its last row alone.
void SmallReaderOfALargeProduct(Stage& stage);
// The same in the sizes of requirement E7: out = (a + b) * c over 4,096 values.
void Smoke(Stage& stage);

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_ORDERING_PROGRAMS_H_
