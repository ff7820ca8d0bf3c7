#include <cstring>

#include "kernels/fused/compose.h"
#include "kernels/head_norm_rope_append/head_norm_rope_append.h"
#include "kernels/kv_append/kv_append.h"

namespace assay::kernels {
namespace {

// One workgroup a row.
template <uint64_t kCacheBytes, gpu::CpuWorkgroupFn (*kPickAppend)(Isa)>
struct Into {
  template <Isa kIsa>
  struct HeadNormRopeAppend {
    static void Run(const gpu::CpuKernelArgs& args, Extent3 group) {
      auto c = LoadConstants<HeadNormRopeAppendConstants>(args);
      const uint64_t bytes = uint64_t{c.head.cols} * sizeof(float);
      const uint64_t cached = uint64_t{group.x} * c.head.cols * kCacheBytes;
      SharedPieces shared(args.shared);
      std::byte* const k = shared.Take(bytes);
      std::memcpy(k, args.bindings[0] + group.x * bytes, bytes);
      c.head.first_position += group.x;
      RunPart(PickHeadNormRope(kIsa), std::array{k, args.bindings[1]}, c.head, shared.rest());
      RunPart(kPickAppend(kIsa),
              std::array{k, args.bindings[2] + group.x * bytes, args.bindings[3] + cached,
                         args.bindings[4] + cached},
              KvAppendConstants{.cols = c.head.cols}, {});
    }
  };
};

}  // namespace

ASSAY_PICK_FUSED(PickHeadNormRopeAppendF32, PickKvAppendF32,
                 Into<sizeof(float), PickKvAppendF32>::HeadNormRopeAppend);
ASSAY_PICK_FUSED(PickHeadNormRopeAppendF16, PickKvAppendF16,
                 Into<sizeof(uint16_t), PickKvAppendF16>::HeadNormRopeAppend);

}  // namespace assay::kernels
