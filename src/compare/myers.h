// The shortest edit script between two short sequences.
//
// E. Myers, "An O(N*D) Difference Algorithm and Its Variations", Algorithmica 1 (1986), section 2
// (the greedy algorithm), with a limit on the number of edits.
#ifndef ASSAY_COMPARE_MYERS_H_
#define ASSAY_COMPARE_MYERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::compare {

// What stands for a line: equal lines have equal tokens.
using Token = uint64_t;

// a[a..a+size) equals b[b..b+size).
struct Match {
  size_t a = 0;
  size_t b = 0;
  size_t size = 0;
  bool operator==(const Match&) const = default;
};

enum class Goal : uint8_t {
  kBothEnds,   // Until both sequences are used up.
  kEitherEnd,  // Until one is: the sequences are cut off somewhere and go on behind.
};

struct EditPath {
  bool reached = false;  // Whether the goal was reached within the edits allowed.
  // How far the path goes; without reaching the goal, the path that goes furthest in sum.
  size_t a_end = 0;
  size_t b_end = 0;
  std::vector<Match> matches;  // In order, none empty, none touching the next in both sequences.
};

// Time and memory: O(n + m + max_edits^2).
EditPath FindEditPath(std::span<const Token> a, std::span<const Token> b, size_t max_edits,
                      Goal goal);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_MYERS_H_
