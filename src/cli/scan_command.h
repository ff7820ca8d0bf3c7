// assay scan: the kernels of this program, row by row; or two such scans compared.
#ifndef ASSAY_CLI_SCAN_COMMAND_H_
#define ASSAY_CLI_SCAN_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeScanCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_SCAN_COMMAND_H_
