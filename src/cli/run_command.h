// `assay run`: text in, text out.
#ifndef ASSAY_CLI_RUN_COMMAND_H_
#define ASSAY_CLI_RUN_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeRunCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_RUN_COMMAND_H_
