// Proves that a dispatch touches what it declares and nothing else (E6).
#ifndef ASSAY_GPU_CPU_ACCESS_CHECK_H_
#define ASSAY_GPU_CPU_ACCESS_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "assay/base.h"

#include "gpu/cpu/command_list.h"

namespace assay::gpu {

// Runs command lists on the calling thread, one dispatch after another, and each dispatch on copies
// of what it binds. A copy holds the declared readable bytes; all others, also those around the
// bindings as far as kMarginBytes, hold filler.
//
// Every dispatch runs twice, the second time over other filler.
//
//   Writes: filler, or a byte declared read-only, that has changed was written undeclared.
//   Reads: results that differ were made from bytes that were not declared readable; which ones,
//   further runs find out by bisection. Shared memory, which a kernel must write before it reads
//   it, is checked in the same way.
//
// Only bytes declared writable go back to the buffers, and only when both proofs hold, so that a
// false declaration harms nothing. Bytes further away than the margin are not guarded.
class AccessChecker final {
 public:
  static constexpr uint64_t kMarginBytes = 4096;

  AccessChecker();
  ~AccessChecker();
  AccessChecker(const AccessChecker&) = delete;
  AccessChecker& operator=(const AccessChecker&) = delete;

  // Error kInvalidArgument at the first false declaration, naming kernel, binding and bytes; what
  // follows it in the list does not run. `scratch` holds the largest shared_bytes.
  Status Run(const CommandList& list, std::span<std::byte> scratch);

 private:
  class Image;

  Status RunDispatch(const CpuDispatch& dispatch);
  void MakeImages();
  // Fills copy `copy` of every image, with filler [vary_begin, vary_end) of the second kind and the
  // rest of the first, and shared memory with `shared`, and runs the dispatch on that.
  void RunOn(int copy, uint64_t vary_begin, uint64_t vary_end, std::byte shared);
  // True when a result of `copy`, made with that filler varied, is not that of the first copy.
  bool ResultsDiffer(int copy, uint64_t vary_begin, uint64_t vary_end) const;
  Status CheckWrites() const;
  // The error of a dispatch whose results depend on filler.
  Error FindUndeclaredRead();
  Error FalseAccess(const Image& image, uint64_t begin, uint64_t end, Access access) const;

  const CommandList* list_ = nullptr;
  const CpuDispatch* dispatch_ = nullptr;
  std::span<const CpuBinding> bindings_;
  std::span<std::byte> scratch_;
  uint64_t filler_bytes_ = 0;  // In all images.
  size_t image_count_ = 0;     // Of the dispatch; the others are spare.
  std::vector<std::unique_ptr<Image>> images_;
  std::vector<size_t> image_of_binding_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_ACCESS_CHECK_H_
