// Command: what a subcommand of `assay` is. It describes its flags and arguments as data and runs.
//
// Adding one, in order: <name>_command.{h,cc} with a class derived from Command and a
// Make<Name>Command(); one row in commands.cc; one assay_command() line in CMakeLists.txt; a test
// with a help golden and a bad flag under tests/cli/.
//
//   class SealCommand final : public Command {
//    public:
//     CommandSpec Describe() override {
//       return {.name = "seal", .summary = "...", .positionals = {{"FILE", TextValue{&path_}}}};
//     }
//     Result<int> Run(Context& context) override;
//
//    private:
//     std::string path_;
//   };
#ifndef ASSAY_CLI_COMMAND_H_
#define ASSAY_CLI_COMMAND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "assay/base.h"

#include "cli/context.h"

namespace assay::cli {

// Exit statuses (C1). A command returns one of these, or an Error, which ends in kExitFailed.
inline constexpr int kExitOk = 0;         // Done; for compare: identical.
inline constexpr int kExitDifferent = 1;  // Different, or something was found.
inline constexpr int kExitFailed = 2;     // Refused, unreadable, or failed.
inline constexpr int kExitRenumbered = 6;
inline constexpr int kExitUsage = 64;  // The command line itself is wrong.

// Where the value of a flag or of an argument goes. Targets belong to the command and keep their
// value, which is the default, when the flag is absent. A scalar given twice keeps the last value.
struct SwitchValue {
  bool* target;
};
struct IntegerValue {
  int64_t* target;
  int64_t min;
  int64_t max;
};
struct RealValue {
  double* target;
  double min;
  double max;
};
struct TextValue {
  std::string* target;
  // An empty text is what a variable of a script comes to that nobody set: seldom what was meant.
  bool may_be_empty = false;
};
// One of a few words.
struct ChoiceValue {
  std::string* target;
  std::vector<std::string> choices;
};
// Integers separated by commas, "0,600"; at least one.
struct IntegerListValue {
  std::vector<int64_t>* target;
  int64_t min;
  int64_t max;
};
// Takes every occurrence, in order.
struct TextListValue {
  std::vector<std::string>* target;
};
using Value = std::variant<SwitchValue, IntegerValue, RealValue, TextValue, ChoiceValue,
                           IntegerListValue, TextListValue>;

struct Flag {
  std::string names;  // "--steps" or "-n,--steps".
  Value value;
  std::string placeholder = {};  // "N"; empty for a switch.
  // A full sentence. Limits, choices and the default are added to it by the help text.
  std::string help = {};
  bool* given = nullptr;        // Set to true when the flag stands on the command line.
  bool show_default = true;     // False where the default is not a value of the flag ("none").
  std::string group = "flags";  // The heading under which the help text lists it.
};

struct Positional {
  std::string name;  // "FILE".
  Value value;       // Not a switch. A list must come last and takes the rest, at least one.
  std::string help = {};
  bool required = true;
};

struct Example {
  std::string command_line;
  std::string says;
};

struct ExitMeaning {
  int status;
  std::string meaning;
};

struct CommandSpec {
  std::string name;
  std::string summary = {};      // One line, for the list of commands.
  std::string description = {};  // Paragraphs separated by an empty line; wrapped by the help text.
  std::vector<Positional> positionals = {};
  std::vector<Flag> flags = {};  // -q,--quiet and -h,--help are added to every command.
  std::vector<Example> examples = {};
  std::vector<ExitMeaning> exit_meanings = {};  // Beyond 64 and 130, which every command has.
  std::string quiet_help = "Prints no progress and no notes.";
};

// One run of one subcommand: made, described, filled with the arguments, checked, run, destroyed.
class Command {
 public:
  virtual ~Command() = default;
  virtual CommandSpec Describe() = 0;
  // Checks what no single flag can (two flags that exclude each other). A failure is a usage error.
  virtual Status CheckArguments() { return {}; }
  // The exit status; or an error, which is printed and ends in kExitFailed, or in 128 + the signal
  // when its code is kCancelled.
  virtual Result<int> Run(Context& context) = 0;
};

struct CommandEntry {
  std::string_view name;
  std::unique_ptr<Command> (*make)();
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMMAND_H_
