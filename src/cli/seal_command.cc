#include "cli/seal_command.h"

#include <string>

#include <fmt/format.h>

#include "assay/trace.h"

#include "base/text.h"

namespace assay::cli {
namespace {

class SealCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "seal",
        .summary = "Writes the end line of a trace that was written by hand.",
        .description =
            "Checks every line, counts and digests them, and replaces the end line or adds one. A "
            "trace with a line that breaks the format is left as it is.",
        .positionals = {{.name = "FILE",
                         .value = TextValue{&path_},
                         .help = "The trace; it is replaced when all is well, plain or .zst."}},
        .examples = {{"assay seal case.trace",
                      "Makes a whole trace of lines that were written or changed by hand."}},
        .exit_meanings = {{kExitOk, "The file is whole."},
                          {kExitFailed,
                           "It could not be read, breaks the format, or could not be "
                           "written; it is unchanged."}},
        .quiet_help = "Prints nothing but errors.",
    };
  }
  Result<int> Run(Context& context) override {
    ASSAY_TRY(SayStopped(trace::Seal(path_, [&] { return context.cancelled(); }),
                         "Stopped before the trace was sealed; it is as it was."));
    if (!context.quiet()) context.Print(fmt::format("sealed {}\n", Printable(path_)));
    return kExitOk;
  }

 private:
  std::string path_;
};

}  // namespace

std::unique_ptr<Command> MakeSealCommand() { return std::make_unique<SealCommand>(); }

}  // namespace assay::cli
