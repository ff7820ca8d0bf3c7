// Whether two traces are the same but for the numbers of their buffers (C3): exactly, not by trial.
#ifndef ASSAY_COMPARE_RENUMBER_H_
#define ASSAY_COMPARE_RENUMBER_H_

#include <cstdint>
#include <optional>

#include "assay/base.h"

#include "compare/input.h"

namespace assay::compare {

struct Renumbering {
  uint64_t buffers = 0;
  uint64_t renumbered = 0;  // Buffers whose two numbers differ.
  // Buffers that were made one after another were made in another order.
  bool order_differs = false;
};

// The one-to-one mapping of the buffers of `a` to those of `b` that makes the traces equal, by its
// figures; nullopt when there is none.
//
// Lines must be equal one by one, with one exception: within a declaration run (buffer lines in a
// row, and among them the writes, reads and frees of those buffers) the order between the buffers
// is free, since that order is what the numbers are given by. Each buffer's own lines keep their
// order. A mapping keeps all of a buffer's declaration, its size and kind among it. Buffers that
// are declared alike are told apart by the first line behind the run that uses them, which leaves
// no choice, so that a mapping is found whenever there is one.
//
// Streams both texts; memory grows with the number of buffers only. Errors: what reading fails
// with.
Result<std::optional<Renumbering>> FindRenumbering(const Input& a, const Input& b);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_RENUMBER_H_
