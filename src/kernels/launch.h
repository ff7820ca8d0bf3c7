// Launch: one dispatch of a kernel without its buffers. Each op's header makes it from the target
// and the shapes alone, so that the grid never depends on the number of threads.
#ifndef ASSAY_KERNELS_LAUNCH_H_
#define ASSAY_KERNELS_LAUNCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "assay/base.h"

#include "gpu/cpu/cpu_kernel.h"
#include "kernels/kernel_table.h"
#include "kernels/target.h"

namespace assay::kernels {

struct Launch {
  KernelIndex kernel = KernelIndex::kCount;
  std::array<std::byte, 64> constants{};
  uint32_t constant_bytes = 0;
  Extent3 grid;
  uint32_t shared_bytes = 0;

  std::span<const std::byte> constant_span() const {
    return std::span(constants).first(constant_bytes);
  }
};

template <typename Constants>
Launch MakeLaunch(KernelIndex kernel, const Constants& constants, Extent3 grid,
                  uint32_t shared_bytes = 0) {
  static_assert(std::is_trivially_copyable_v<Constants>);
  static_assert(std::has_unique_object_representations_v<Constants> || sizeof(Constants) % 4 == 0);
  Launch launch;
  static_assert(sizeof(Constants) <= sizeof(launch.constants));
  launch.kernel = kernel;
  std::memcpy(launch.constants.data(), &constants, sizeof(constants));
  launch.constant_bytes = sizeof(constants);
  launch.grid = grid;
  launch.shared_bytes = shared_bytes;
  return launch;
}

// The constants inside a workgroup function.
template <typename Constants>
Constants LoadConstants(const gpu::CpuKernelArgs& args) {
  Constants constants;
  std::memcpy(&constants, args.constants, sizeof(constants));
  return constants;
}

constexpr uint32_t CeilDiv(uint32_t a, uint32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_LAUNCH_H_
