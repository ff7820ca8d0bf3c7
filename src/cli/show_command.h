// `assay show`: a trace as a table.
#ifndef ASSAY_CLI_SHOW_COMMAND_H_
#define ASSAY_CLI_SHOW_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeShowCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_SHOW_COMMAND_H_
