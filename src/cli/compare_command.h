// `assay compare`: whether two traces, or two evidence folders, are the same.
#ifndef ASSAY_CLI_COMPARE_COMMAND_H_
#define ASSAY_CLI_COMPARE_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeCompareCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMPARE_COMMAND_H_
