// Arguments: the words of a command line, put where a command's description says.
#ifndef ASSAY_CLI_ARGUMENTS_H_
#define ASSAY_CLI_ARGUMENTS_H_

#include <span>
#include <string>

#include "assay/base.h"

#include "cli/command.h"

namespace assay::cli {

struct CommonFlags {
  bool help = false;
  bool quiet = false;
};

// Fills the targets of `spec` from `words` (without the program's and the command's name). `--`
// ends the flags; `--flag=value` and `--flag value` are the same. Errors: kInvalidArgument, a
// sentence that names the flag, the value and the limits, or the nearest known flag. With --help
// among the words, the rest is not judged.
Result<CommonFlags> ParseArguments(const CommandSpec& spec, std::span<const std::string> words);

// "-n,--steps" -> {"-n", "--steps"}.
std::vector<std::string> SplitNames(std::string_view names);

}  // namespace assay::cli

#endif  // ASSAY_CLI_ARGUMENTS_H_
