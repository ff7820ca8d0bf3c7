// A command with one flag of every type, for the tests of the framework.
#ifndef ASSAY_CLI_TOY_COMMAND_FOR_TEST_H_
#define ASSAY_CLI_TOY_COMMAND_FOR_TEST_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "cli/command.h"

namespace assay::cli {

struct ToyValues {
  bool fast = false;
  int64_t steps = 3;
  double temperature = 0.5;
  std::string prompt;
  std::string format = "text";
  std::vector<int64_t> depths = {0, 600};
  std::vector<std::string> tags;
  std::string input;
  std::vector<std::string> rest;
  bool steps_given = false;
};

class ToyCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "toy",
        .summary = "Does nothing of use.",
        .description = "First paragraph.\n\nSecond paragraph.",
        .positionals = {{.name = "INPUT", .value = TextValue{&values.input}, .help = "A file."},
                        {.name = "REST",
                         .value = TextListValue{&values.rest},
                         .help = "More files.",
                         .required = false}},
        .flags = {{.names = "--fast", .value = SwitchValue{&values.fast}, .help = "Hurries."},
                  {.names = "-n,--steps",
                   .value = IntegerValue{&values.steps, 1, 100},
                   .placeholder = "N",
                   .help = "Steps to take.",
                   .given = &values.steps_given},
                  {.names = "--temp",
                   .value = RealValue{&values.temperature, 0, 2},
                   .placeholder = "T",
                   .help = "Temperature."},
                  {.names = "-p,--prompt",
                   .value = TextValue{&values.prompt, /*may_be_empty=*/true},
                   .placeholder = "TEXT",
                   .help = "Prompt."},
                  {.names = "--format",
                   .value = ChoiceValue{&values.format, {"text", "jsonl"}},
                   .placeholder = "WORD",
                   .help = "Format."},
                  {.names = "--depth",
                   .value = IntegerListValue{&values.depths, 0, 1000},
                   .placeholder = "N,...",
                   .help = "Depths."},
                  {.names = "--tag",
                   .value = TextListValue{&values.tags},
                   .placeholder = "TAG",
                   .help = "A tag.",
                   .group = "other flags"}},
        .examples = {{"assay toy a", "Does nothing with a."}},
        .exit_meanings = {{0, "Done."}},
    };
  }
  Status CheckArguments() override {
    if (values.fast && values.steps_given) {
      return Fail(ErrorCode::kInvalidArgument, "--fast", "--fast and --steps exclude each other.");
    }
    return {};
  }
  // What the input is called decides what happens.
  Result<int> Run(Context& context) override {
    if (values.input == "fail") return Fail(ErrorCode::kIo, "fail", "It\nfailed.");
    if (values.input == "half") {
      context.Print("half a line");
      return Fail(ErrorCode::kIo, "half", "It failed.");
    }
    if (values.input == "cancel") return Fail(ErrorCode::kCancelled, "", "Stopped.");
    if (values.input == "throw") throw std::runtime_error("thrown");
    context.Note("a note");
    context.Print("input " + values.input + "\n");
    return values.input == "six" ? kExitRenumbered : kExitOk;
  }

  ToyValues values;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_TOY_COMMAND_FOR_TEST_H_
