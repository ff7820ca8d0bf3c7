// `assay devices`: what there is to run on.
#ifndef ASSAY_CLI_DEVICES_COMMAND_H_
#define ASSAY_CLI_DEVICES_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeDevicesCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_DEVICES_COMMAND_H_
