#include "cli/commands.h"

namespace assay::cli {

std::span<const CommandEntry> Commands() {
  // {"name", &MakeNameCommand}, one row a command.
  static const std::vector<CommandEntry> commands = {};
  return commands;
}

}  // namespace assay::cli
