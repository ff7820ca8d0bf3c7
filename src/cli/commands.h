// The table of all commands of `assay`.
#ifndef ASSAY_CLI_COMMANDS_H_
#define ASSAY_CLI_COMMANDS_H_

#include <span>

#include "cli/command.h"

namespace assay::cli {

// In the order in which the help text lists them.
std::span<const CommandEntry> Commands();

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMMANDS_H_
