// assay counts: what a token costs in dispatches, barriers, bytes bound and commits.
#ifndef ASSAY_CLI_COUNTS_COMMAND_H_
#define ASSAY_CLI_COUNTS_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeCountsCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_COUNTS_COMMAND_H_
