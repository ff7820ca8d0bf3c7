// `assay seal`: the end line of a trace written by hand.
#ifndef ASSAY_CLI_SEAL_COMMAND_H_
#define ASSAY_CLI_SEAL_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeSealCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_SEAL_COMMAND_H_
