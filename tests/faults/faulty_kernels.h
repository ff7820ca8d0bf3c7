// Kernels that the corpus runs on the cpu backend: one that copies rows as it is told, and faulty
// forms of the engine's own.
#ifndef ASSAY_TESTS_FAULTS_FAULTY_KERNELS_H_
#define ASSAY_TESTS_FAULTS_FAULTY_KERNELS_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/cpu/cpu_kernel.h"
#include "support/forwarding_backend.h"

namespace assay::faults {

// Copies `rows` rows of `width` uint32, `in_stride` and `out_stride` apart, from `in_begin` on:
// all counted in uint32 from the first byte of bindings in (r) and out (w), whose ends it does not
// look at.
struct CopyRows {
  int32_t in_begin = 0;
  uint32_t rows = 1;
  uint32_t width = 1;
  uint32_t in_stride = 1;
  uint32_t out_stride = 1;
};
// Registers it as "copy_rows" where that has not been done, and dispatches it.
Status DispatchCopyRows(gpu::Device& device, gpu::Session& session, const CopyRows& copy,
                        const gpu::BufferView& in, const gpu::BufferView& out);

// Gives a kernel of the engine other code.
class PlantedKernel final : public testing::ForwardingBackend {
 public:
  // `code` must outlive the backend.
  PlantedKernel(std::unique_ptr<gpu::Backend> inner, std::string_view name,
                const gpu::CpuKernel* code)
      : ForwardingBackend(std::move(inner)), name_(name), code_(code) {}
  Result<std::unique_ptr<gpu::BackendKernel>> CreateKernel(const gpu::KernelDesc& desc) override;

 private:
  std::string_view name_;
  const gpu::CpuKernel* code_;
};

// A faulty form of a kernel of the engine.
struct Fault {
  std::string_view kernel;
  gpu::CpuKernel code;
};

// Kind 24: kv_append.f32 that appends one row, however many there are.
extern const Fault kAppendsOneRow;
// Kind 25: rms_norm.f32 with another kernel for more than 8 rows, which adds in another order.
extern const Fault kOtherOrderAboveEightRows;
// Kind 26: attention.f32.f32 that skips a tile whose second half the last token does not see.
extern const Fault kSkipsTilesByHalf;
// Kind 27: rms_norm.f32 whose sum is split into as many parts as there are threads: 1, 2, 3 or 8.
const Fault& SplitByThreads(int threads);
// Kind 28: attention.f32.f32 that takes what lies before the chunk and the chunk apart.
extern const Fault kMergesPrefixAndChunk;

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_FAULTY_KERNELS_H_
