// The scan of the kernels that are built into this program.
#ifndef ASSAY_CLI_KERNEL_SCAN_H_
#define ASSAY_CLI_KERNEL_SCAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "assay/prove.h"

namespace assay::cli {

// How a scan is made. The first two are of the cpu's kernels: "cpu-code-1" digests the machine code
// that runs (src/prove/program_code.h); "cpu-source-1" the sources, the compiler and its flags, so
// that a changed comment is a changed kernel. The others are of the shaders: "spirv-1" digests
// their SPIR-V (src/gpu/spirv/module.h) and asks no driver; "spirv-driver-1" has the same rows and
// for each kernel one with what a device's driver says of the code that it makes.
inline constexpr std::string_view kCodeMethod = "cpu-code-1";
inline constexpr std::string_view kSourceMethod = "cpu-source-1";
inline constexpr std::string_view kSpirvMethod = "spirv-1";
inline constexpr std::string_view kDriverMethod = "spirv-driver-1";

// A row for each kernel and each instruction set that the program has code for, whether or not this
// processor runs it. A scan that cannot be made has a reason and no rows.
prove::Scan ScanKernels(std::string_view method);
// Of what `backend` runs. For vulkan by kSpirvMethod; else by kCodeMethod where the program's code
// can be read, and by kSourceMethod where not.
prove::Scan ScanBackend(std::string_view backend);

// By kSpirvMethod: a row for each shader.
prove::Scan ScanShaders();
// By kDriverMethod, with the rows of the Vulkan device that `device` means
// (gpu::VulkanOptions::device).
prove::Scan ScanShadersOn(const std::string& device);

}  // namespace assay::cli

#endif  // ASSAY_CLI_KERNEL_SCAN_H_
