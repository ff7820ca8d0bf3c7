#include "kernels/fused/compose.h"
#include "kernels/norm_route/norm_route.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"

namespace assay::kernels {
namespace {

// One workgroup a token.
template <Isa kIsa>
struct NormRoute {
  static void Run(const gpu::CpuKernelArgs& args, Extent3 group) {
    const auto c = LoadConstants<NormRouteConstants>(args);
    const uint64_t row = uint64_t{group.x} * c.cols * sizeof(float);
    const uint64_t chosen = uint64_t{group.x} * c.used * sizeof(float);
    SharedPieces shared(args.shared);
    std::byte* const logits = shared.Take(c.experts * sizeof(float));
    std::byte* const norm = args.bindings[3] + row;
    RunPart(PickRmsNormF32(kIsa), std::array{args.bindings[0] + row, args.bindings[1], norm},
            RmsNormConstants{.cols = c.cols, .eps = c.eps, .has_weight = 1}, {});
    RunPart(PickMatMulF32(kIsa), std::array{args.bindings[2], norm, logits},
            RowsOfOneToken(c.experts, c.experts, c.cols), {});
    RunPart(PickRoute(kIsa),
            std::array{logits, args.bindings[4] + chosen, args.bindings[5] + chosen},
            RouteConstants{.experts = c.experts, .used = c.used, .normalise = c.normalise},
            shared.rest());
  }
};

}  // namespace

ASSAY_PICK_FUSED(PickNormRoute, PickRoute, NormRoute);

}  // namespace assay::kernels
