// Runner: from the words of the command line to the exit status.
#ifndef ASSAY_CLI_RUNNER_H_
#define ASSAY_CLI_RUNNER_H_

#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/context.h"

namespace assay::cli {

// Runs what `words` (without the program's name) ask for and returns the exit status (C1). Errors
// are printed; a standard output that did not take everything is kExitFailed.
int RunProgram(std::span<const std::string> words, std::span<const CommandEntry> commands,
               const Context::Streams& streams);

// Of this build, such as "0.1.0".
std::string_view Version();

}  // namespace assay::cli

#endif  // ASSAY_CLI_RUNNER_H_
