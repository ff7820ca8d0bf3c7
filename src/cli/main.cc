#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/runner.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  using namespace assay::cli;
  HoldStandardDescriptors();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  FdOutput out(STDOUT_FILENO);
  FdOutput err(STDERR_FILENO);
  return RunProgram(words, Commands(),
                    {.out = &out,
                     .err = &err,
                     .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                     .stop_signal = &CatchStopSignals()});
}
