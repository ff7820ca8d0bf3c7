#include "cli/scan_command.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/prove.h"

#include "base/file.h"
#include "cli/engine_flags.h"
#include "cli/kernel_scan.h"

namespace assay::cli {
namespace {

class ScanCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override;
  Result<int> Run(Context& context) override;

 private:
  Status CheckCompared() const;
  Result<int> Write(Context& context) const;
  Result<int> Compare(Context& context) const;

  std::vector<std::string> paths_;
  prove::Scan Make() const;

  std::string backend_ = "cpu";
  bool backend_given_ = false;
  std::string method_ = "best";
  bool method_given_ = false;
  std::string device_;
  std::string output_;
  bool compare_ = false;
  bool json_ = false;
};

CommandSpec ScanCommand::Describe() {
  return {
      .name = "scan",
      .summary = "Writes a row for each kernel of this program, or compares two such scans.",
      .description =
          "A row says what one kernel is for one instruction set: the digest of its code, its "
          "size, instructions by class, workgroup, shared memory, bindings and constants. Rows are "
          "sorted, and two builds of the same source by the same compiler give the same scan "
          "wherever they lie.\n\n"
          "The method cpu-code-1 digests the machine code with addresses taken out; cpu-source-1 "
          "digests the sources, the compiler and its flags. Without --method the first is used "
          "where the program has symbols.\n\n"
          "With --backend vulkan it scans the shaders. The method spirv-1, the default, digests "
          "their SPIR-V without names and needs no driver; spirv-driver-1 adds a row for each "
          "kernel with what the driver of a device says of it: registers, spills, subgroup size.",
      .positionals = {{.name = "SCAN",
                       .value = TextListValue{&paths_},
                       .help = "With --compare: two scans, or folders of evidence.",
                       .required = false}},
      .flags = {{.names = "--compare",
                 .value = SwitchValue{&compare_},
                 .help = "Compares the two scans that are named."},
                {.names = "--json",
                 .value = SwitchValue{&json_},
                 .help = "Prints the comparison as one JSON object."},
                {.names = "--backend",
                 .value = ChoiceValue{&backend_, {"cpu", "vulkan"}},
                 .placeholder = "NAME",
                 .help = "Whose kernels are scanned.",
                 .given = &backend_given_},
                {.names = "--device",
                 .value = TextValue{&device_},
                 .placeholder = "NAME|N",
                 .help = "For spirv-driver-1: a number or line that assay devices shows, or a "
                         "part of a name. Without it a GPU where there is one.",
                 .show_default = false},
                {.names = "--method",
                 .value = ChoiceValue{&method_,
                                      {"best", std::string(kCodeMethod), std::string(kSourceMethod),
                                       std::string(kSpirvMethod), std::string(kDriverMethod)}},
                 .placeholder = "METHOD",
                 .help = "How digests are made.",
                 .given = &method_given_},
                {.names = "-o,--output",
                 .value = TextValue{&output_},
                 .placeholder = "FILE",
                 .help = "Writes the scan there instead of to standard output, which - is.",
                 .show_default = false}},
      .examples = {{"assay scan -o before.scan", "Scans this program."},
                   {"assay scan --compare before.scan after.scan", "Says which kernels changed."},
                   {"assay scan --backend vulkan --method spirv-driver-1",
                    "Scans the shaders, and says what a GPU's driver makes of them."}},
      .exit_meanings = {{kExitOk, "The scan was made; with --compare: the same."},
                        {kExitDifferent, "With --compare: different."},
                        {kExitFailed,
                         "The scan failed (what is written says so and has no rows), or one of "
                         "those compared is refused."}},
      .quiet_help = "With --compare prints nothing but errors; else it changes nothing.",
  };
}

// Two scans say themselves what they are of.
Status ScanCommand::CheckCompared() const {
  const std::pair<std::string_view, bool> of_a_scan[] = {{"--output", !output_.empty()},
                                                         {"--backend", backend_given_},
                                                         {"--method", method_given_},
                                                         {"--device", !device_.empty()}};
  for (const auto& [flag, given] : of_a_scan) {
    if (!given) continue;
    return Fail(ErrorCode::kInvalidArgument, std::string(flag),
                fmt::format("{} does not go with --compare.", flag));
  }
  if (std::ranges::count(paths_, "") == 0) return {};
  return Fail(ErrorCode::kInvalidArgument, "SCAN",
              "SCAN is empty (\"\"); name a file or a folder of evidence.");
}

Status ScanCommand::CheckArguments() {
  if (compare_ && paths_.size() != 2) {
    return Fail(ErrorCode::kInvalidArgument, "SCAN",
                fmt::format("--compare takes two scans; {} are named.", paths_.size()));
  }
  if (!compare_ && !paths_.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "SCAN",
                fmt::format("\"{}\" is named, but without --compare this program scans itself.",
                            paths_.front()));
  }
  if (!compare_ && json_) {
    return Fail(ErrorCode::kInvalidArgument, "--json", "--json needs --compare.");
  }
  if (compare_) return CheckCompared();
  const bool shaders = method_ == kSpirvMethod || method_ == kDriverMethod;
  if (method_ != "best" && shaders != (backend_ == "vulkan")) {
    return Fail(
        ErrorCode::kInvalidArgument, "--method",
        fmt::format("The method {} is of the backend {}, and the backend is {}; give "
                    "--backend {}.",
                    method_, shaders ? "vulkan" : "cpu", backend_, shaders ? "vulkan" : "cpu"));
  }
  ASSAY_TRY(CheckDeviceName(device_));
  if (!device_.empty() && method_ != kDriverMethod) {
    return Fail(
        ErrorCode::kInvalidArgument, "--device",
        fmt::format("--device is of the method {}, and the method is {}; give {}--method {}.",
                    kDriverMethod, method_, backend_ == "vulkan" ? "" : "--backend vulkan ",
                    kDriverMethod));
  }
  return {};
}

Result<int> ScanCommand::Run(Context& context) {
  return compare_ ? Compare(context) : Write(context);
}

prove::Scan ScanCommand::Make() const {
  if (method_ == "best") return ScanBackend(backend_);
  if (method_ == kSpirvMethod) return ScanShaders();
  if (method_ == kDriverMethod) return ScanShadersOn(device_);
  return ScanKernels(method_);
}

Result<int> ScanCommand::Write(Context& context) const {
  const prove::Scan scan = Make();
  const std::string text = prove::FormatScan(scan);
  if (output_.empty() || output_ == "-") {
    context.Print(text);
  } else {
    ASSAY_TRY(WriteFile(output_, text));
  }
  if (scan.failed.empty()) return kExitOk;
  context.PrintError(fmt::format("The scan failed: {}", scan.failed));
  return kExitFailed;
}

Result<int> ScanCommand::Compare(Context& context) const {
  prove::ScanComparison comparison;
  const Result<prove::Scan> a = prove::ReadScan(paths_[0]);
  const Result<prove::Scan> b = prove::ReadScan(paths_[1]);
  if (a && b) {
    comparison = prove::CompareScans(*a, *b);
  } else {
    comparison.verdict = compare::Verdict::kRefused;
    comparison.reason = (a ? b : a).error().ToString();
  }
  if (json_) {
    context.Print(prove::FormatScanJson(comparison));
  } else if (!context.quiet() && comparison.verdict != compare::Verdict::kRefused) {
    context.Print(prove::FormatScanText(comparison));
  }
  if (comparison.verdict == compare::Verdict::kRefused) context.PrintError(comparison.reason);
  return static_cast<int>(comparison.verdict);
}

}  // namespace

std::unique_ptr<Command> MakeScanCommand() { return std::make_unique<ScanCommand>(); }

}  // namespace assay::cli
