// `assay trace`: records decode steps as evidence.
#ifndef ASSAY_CLI_TRACE_COMMAND_H_
#define ASSAY_CLI_TRACE_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeTraceCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_TRACE_COMMAND_H_
