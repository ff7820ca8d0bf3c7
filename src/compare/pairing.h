// Which buffer of one trace is which of the other, and the same for kernels, told from their
// declarations; and tokens of lines that do not depend on the numbering.
#ifndef ASSAY_COMPARE_PAIRING_H_
#define ASSAY_COMPARE_PAIRING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "compare/input.h"
#include "compare/line_names.h"
#include "compare/myers.h"

namespace assay::compare {

// A buffer or kernel line.
struct Declaration {
  uint64_t number = 0;
  Token content = 0;   // Of the line without the number.
  Token likeness = 0;  // Of what should survive a change: a label or else a kind; a kernel's name.
};

struct Declarations {
  std::vector<Declaration> buffers;
  std::vector<Declaration> kernels;
  NumberMap kernel_index;                 // Kernel number to index in kernel_names.
  std::vector<std::string> kernel_names;  // In order of declaration.

  // Empty for a kernel that no line declares.
  std::string_view KernelName(uint64_t number) const {
    const uint64_t index = kernel_index.Find(number);
    return index == NumberMap::kNone ? std::string_view() : kernel_names[index];
  }
};

// One pass over the text. Errors: what reading fails with, and kFormat for a declaration that
// breaks the format.
Result<Declarations> ReadDeclarations(const Input& input);

// The names of one side.
struct SideNames {
  NumberMap buffers;  // To the pair's token; kNone for what is undeclared.
  NumberMap kernels;
};

// For each buffer of A, by index, the index of its partner in B.
inline constexpr size_t kNoPartner = SIZE_MAX;
using Partners = std::vector<size_t>;

// Pairs declarations by content in order, then by content anywhere, then by what stands in the same
// place and is alike. Names that have no partner get tokens that equal nothing. `preferred`
// buffers (none, or one entry for each of A) are paired first, where they are declared alike.
class Pairing final {
 public:
  Pairing(const Declarations& a, const Declarations& b, const Partners& preferred = {});

  const SideNames& a() const { return a_; }
  const SideNames& b() const { return b_; }
  bool SameBuffer(uint64_t number_a, uint64_t number_b) const {
    return Same(a_.buffers.Find(number_a), b_.buffers.Find(number_b));
  }
  bool SameKernel(uint64_t number_a, uint64_t number_b) const {
    return Same(a_.kernels.Find(number_a), b_.kernels.Find(number_b));
  }
  // Pairs whose numbers differ.
  uint64_t buffers_renumbered() const { return buffers_renumbered_; }
  uint64_t kernels_renumbered() const { return kernels_renumbered_; }
  // True when every pair has one number, so that equal bytes are equal lines.
  bool identity() const { return buffers_renumbered_ == 0 && kernels_renumbered_ == 0; }

 private:
  static bool Same(uint64_t token_a, uint64_t token_b) {
    return token_a == token_b && token_a != NumberMap::kNone;
  }
  static uint64_t Pair(const std::vector<Declaration>& a, const std::vector<Declaration>& b,
                       const Partners& preferred, NumberMap* names_a, NumberMap* names_b);

  SideNames a_, b_;
  uint64_t buffers_renumbered_ = 0;
  uint64_t kernels_renumbered_ = 0;
};

// Makes tokens of lines. One thread; `names` must outlive it.
class LineTokenizer final {
 public:
  explicit LineTokenizer(const SideNames& names) : names_(names) {}
  // Equal for lines that are the same but for the numbers of paired names.
  Token operator()(std::string_view line);

 private:
  const SideNames& names_;
  std::string text_;
};

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_PAIRING_H_
