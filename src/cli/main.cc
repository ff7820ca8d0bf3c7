#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/runner.h"
#include "cli/signals.h"

namespace cli = assay::cli;

int main(int argc, char** argv) {
  cli::HoldStandardDescriptors();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  cli::FdOutput out(STDOUT_FILENO);
  cli::FdOutput err(STDERR_FILENO);
  return cli::RunProgram(words, cli::Commands(),
                         {.out = &out,
                          .err = &err,
                          .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                          .stop_signal = &cli::CatchStopSignals()});
}
