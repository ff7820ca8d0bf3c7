// A number with the noun that it counts.
#ifndef ASSAY_BASE_COUNTED_H_
#define ASSAY_BASE_COUNTED_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// "1 dispatch", "2 dispatches", "0 command buffers". `noun` is the singular; its last word takes
// the regular ending, so a noun such as "axis" or "child" does not fit.
std::string Counted(uint64_t count, std::string_view noun);
// The noun alone, where the number stands elsewhere: "dispatch" for 1, else "dispatches".
std::string NounFor(uint64_t count, std::string_view noun);

}  // namespace assay

#endif  // ASSAY_BASE_COUNTED_H_
