// `assay bench`: load, prefill and decode speed.
#ifndef ASSAY_CLI_BENCH_COMMAND_H_
#define ASSAY_CLI_BENCH_COMMAND_H_

#include <memory>

#include "cli/command.h"

namespace assay::cli {

std::unique_ptr<Command> MakeBenchCommand();

}  // namespace assay::cli

#endif  // ASSAY_CLI_BENCH_COMMAND_H_
