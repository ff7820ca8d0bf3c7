// The form in which a kernel's CPU code reaches the cpu backend: KernelCode{"cpu", &cpu_kernel,
// sizeof(CpuKernel)}.
#ifndef ASSAY_GPU_CPU_CPU_KERNEL_H_
#define ASSAY_GPU_CPU_CPU_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "assay/base.h"

namespace assay::gpu {

// What a workgroup sees. Pointers are to the first byte of each bound range; they are valid for the
// call.
struct CpuKernelArgs {
  std::byte* const* bindings = nullptr;
  const uint64_t* binding_bytes = nullptr;
  const std::byte* constants = nullptr;
  Extent3 grid;
  // The dispatch's dynamic shared memory: this worker's own, uninitialised, aligned to 64 bytes.
  std::span<std::byte> shared;
};

// Runs workgroup `group` of the grid. Called from several workers at once, in any order; must give
// the same bits wherever and whenever it runs, so it keeps no state and reduces in a fixed order.
using CpuWorkgroupFn = void (*)(const CpuKernelArgs& args, Extent3 group);

struct CpuKernel {
  // Picks the code for this processor; called once, when the kernel is built.
  CpuWorkgroupFn (*resolve)();
  // The instruction set that `resolve` picks ("AVX3", "NEON", ...); part of the kernel's digest.
  std::string_view (*target)();
};

inline constexpr std::string_view kCpuCodeFormat = "cpu";

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_CPU_KERNEL_H_
