// assay perturb: shows that no order which the barriers allow changes a bit of the logits.
#ifndef ASSAY_CLI_PERTURB_COMMAND_H_
#define ASSAY_CLI_PERTURB_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakePerturbCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_PERTURB_COMMAND_H_
