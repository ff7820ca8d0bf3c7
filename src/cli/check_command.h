// assay check: the hazards of a trace (H1..H5).
#ifndef ASSAY_CLI_CHECK_COMMAND_H_
#define ASSAY_CLI_CHECK_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeCheckCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_CHECK_COMMAND_H_
