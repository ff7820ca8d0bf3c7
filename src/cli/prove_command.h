// assay prove: two commits built, recorded and compared; one verdict.
#ifndef ASSAY_CLI_PROVE_COMMAND_H_
#define ASSAY_CLI_PROVE_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeProveCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_PROVE_COMMAND_H_
