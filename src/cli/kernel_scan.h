// The scan of the kernels that are built into this program.
#ifndef ASSAY_CLI_KERNEL_SCAN_H_
#define ASSAY_CLI_KERNEL_SCAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "assay/prove.h"

namespace assay::cli {

// The methods of ScanKernels, the best first. "cpu-code-1" digests the machine code that runs
// (src/prove/program_code.h); "cpu-source-1" the sources, the compiler and its flags, so that a
// changed comment is a changed kernel.
inline constexpr std::string_view kCodeMethod = "cpu-code-1";
inline constexpr std::string_view kSourceMethod = "cpu-source-1";

// A row for each kernel and each instruction set that the program has code for, whether or not this
// processor runs it. A scan that cannot be made has a reason and no rows.
prove::Scan ScanKernels(std::string_view method);
// By kCodeMethod where the program's code can be read, else by kSourceMethod.
prove::Scan ScanKernels();

}  // namespace assay::cli

#endif  // ASSAY_CLI_KERNEL_SCAN_H_
