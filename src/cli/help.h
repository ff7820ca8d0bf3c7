// Help: the texts of `assay --help` and `assay CMD --help`, made from the commands' descriptions.
#ifndef ASSAY_CLI_HELP_H_
#define ASSAY_CLI_HELP_H_

#include <span>
#include <string>

#include "cli/command.h"

namespace assay::cli {

// The help text of one command. Defaults are read from the flags' targets, so the command must not
// have been filled yet.
std::string FormatCommandHelp(const CommandSpec& spec);
// The list of all commands.
std::string FormatProgramHelp(std::span<const CommandEntry> commands);

}  // namespace assay::cli

#endif  // ASSAY_CLI_HELP_H_
