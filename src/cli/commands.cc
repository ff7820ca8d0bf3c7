#include "cli/commands.h"

#include "cli/bench_command.h"
#include "cli/check_command.h"
#include "cli/compare_command.h"
#include "cli/counts_command.h"
#include "cli/devices_command.h"
#include "cli/export_command.h"
#include "cli/gguf_command.h"
#include "cli/mutate_command.h"
#include "cli/perturb_command.h"
#include "cli/prove_command.h"
#include "cli/run_command.h"
#include "cli/scan_command.h"
#include "cli/seal_command.h"
#include "cli/show_command.h"
#include "cli/trace_command.h"

namespace assay::cli {

std::span<const CommandEntry> Commands() {
  // {"name", &MakeNameCommand}, one row a command.
  // clang-format off
  static const std::vector<CommandEntry> commands = {
      {"run", &MakeRunCommand},
      {"trace", &MakeTraceCommand},
      {"compare", &MakeCompareCommand},
      {"prove", &MakeProveCommand},
      {"check", &MakeCheckCommand},
      {"counts", &MakeCountsCommand},
      {"perturb", &MakePerturbCommand},
      {"mutate", &MakeMutateCommand},
      {"show", &MakeShowCommand},
      {"export", &MakeExportCommand},
      {"seal", &MakeSealCommand},
      {"scan", &MakeScanCommand},
      {"gguf", &MakeGgufCommand},
      {"devices", &MakeDevicesCommand},
      {"bench", &MakeBenchCommand},
  };
  // clang-format on
  return commands;
}

}  // namespace assay::cli
