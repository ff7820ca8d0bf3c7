#include "cli/commands.h"

#include "cli/check_command.h"
#include "cli/gguf_command.h"
#include "cli/run_command.h"

namespace assay::cli {

std::span<const CommandEntry> Commands() {
  // {"name", &MakeNameCommand}, one row a command.
  static const std::vector<CommandEntry> commands = {
      {"run", &MakeRunCommand},
      {"gguf", &MakeGgufCommand},
      {"check", &MakeCheckCommand},
  };
  return commands;
}

}  // namespace assay::cli
