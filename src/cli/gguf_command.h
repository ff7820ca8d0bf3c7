// `assay gguf`: what a model file says of itself.
#ifndef ASSAY_CLI_GGUF_COMMAND_H_
#define ASSAY_CLI_GGUF_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeGgufCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_GGUF_COMMAND_H_
