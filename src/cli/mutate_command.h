// assay mutate: every barrier of a trace or a decode left out in turn (E9).
#ifndef ASSAY_CLI_MUTATE_COMMAND_H_
#define ASSAY_CLI_MUTATE_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeMutateCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_MUTATE_COMMAND_H_
