// Where a command writes, held against what it reads.
#ifndef ASSAY_CLI_OUTPUT_PATHS_H_
#define ASSAY_CLI_OUTPUT_PATHS_H_

#include <span>
#include <string>
#include <string_view>

#include "assay/base.h"

namespace assay::cli {

// Both lead to one file, however they are written and through whatever links. Neither must exist.
bool SamePlace(const std::string& a, const std::string& b);

// Error kInvalidArgument when `output`, the value of `flag`, is one of the inputs or lies in one
// that is a folder: writing it would destroy what the command reads. An empty output or "-" is
// none.
Status CheckOutput(std::string_view flag, const std::string& output,
                   std::span<const std::string> inputs);

// The same when `output` is a file that git keeps in the working tree that `tree` lies in, or one
// of git's own there. Where there is no working tree, or no git, nothing is refused.
Status CheckOutputOfTree(std::string_view flag, const std::string& output, const std::string& tree);

}  // namespace assay::cli

#endif  // ASSAY_CLI_OUTPUT_PATHS_H_
