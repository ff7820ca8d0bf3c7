// assay export: a trace in the format of another program's viewer.
#ifndef ASSAY_CLI_EXPORT_COMMAND_H_
#define ASSAY_CLI_EXPORT_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeExportCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_EXPORT_COMMAND_H_
