// What the words of a SPIR-V module say: the digest of its code, and the figures of a kernel scan.
#ifndef ASSAY_GPU_SPIRV_MODULE_H_
#define ASSAY_GPU_SPIRV_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "assay/base.h"

namespace assay::gpu::spirv {

// Far above any shader; more words are refused.
inline constexpr size_t kMaxWords = size_t{1} << 24;

struct ModuleFacts {
  // Of every instruction that is no debug information, with ids numbered in the order in which they
  // appear, and of the specialization; lower-case hex. Neither names, lines and paths of the source
  // nor the compiler's name and its counting of ids are in it.
  std::string digest;
  // Of the specialized module; 0 where it does not say.
  Extent3 workgroup = {0, 0, 0};
  // Static shared memory, each value at its natural alignment.
  uint64_t shared_bytes = 0;
  // Of the code that is digested.
  uint64_t code_bytes = 0;
  // Of all functions, by class ("arithmetic", "memory", ...); labels and the like are not counted.
  std::map<std::string, uint64_t> instructions;
};

// Value i of `specialization` is that of the specialization constant i. `words` may be anything.
// Errors: kFormat for what is no module or is cut short; kUnsupported for an instruction that no
// shader has, and for shared memory whose size is an expression of specialization constants.
Result<ModuleFacts> ReadModule(std::span<const uint32_t> words,
                               std::span<const uint32_t> specialization);

// ReadModule's digest, or that of the bare words and specialization where ReadModule fails.
std::string DigestOf(std::span<const uint32_t> words, std::span<const uint32_t> specialization);

}  // namespace assay::gpu::spirv

#endif  // ASSAY_GPU_SPIRV_MODULE_H_
