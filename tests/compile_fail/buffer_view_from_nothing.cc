// E11: a view comes from a buffer or another view, which check its range.
#include "assay/gpu.h"

assay::gpu::BufferView Make(const assay::gpu::Buffer& buffer) {
#ifdef ASSAY_MISUSE
  return assay::gpu::BufferView(buffer, assay::ByteRange{0, 100});
#else
  return buffer.View(0, 100).value_or(assay::gpu::BufferView());
#endif
}
