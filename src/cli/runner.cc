#include "cli/runner.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/host_memory.h"
#include "base/nearest.h"
#include "cli/arguments.h"
#include "cli/help.h"

namespace assay::cli {
namespace {

const CommandEntry* FindCommand(std::span<const CommandEntry> commands, std::string_view name) {
  for (const CommandEntry& entry : commands) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

int UsageError(Context& context, std::string_view message) {
  const std::string help = context.command().empty()
                               ? "assay --help"
                               : fmt::format("assay {} --help", context.command());
  context.PrintError(fmt::format("{} See \"{}\".", message, help));
  return kExitUsage;
}

bool WantsJson(const CommandSpec& spec, std::span<const std::string> words) {
  const bool known = std::ranges::any_of(spec.flags, [](const Flag& flag) {
    return flag.names == "--json" && std::holds_alternative<SwitchValue>(flag.value);
  });
  return known && std::ranges::count(words, "--json") > 0;
}

// What a command that was asked for one JSON object prints when it has none of its own to print.
void PrintErrorObject(Context& context, std::string_view message, int exit_status) {
  const nlohmann::ordered_json json = {{"error", message}, {"exit_status", exit_status}};
  context.Print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

int UnknownCommand(Context& context, std::span<const CommandEntry> commands,
                   const std::string& name) {
  if (name.starts_with("-")) {
    const std::string known[] = {"--help", "--version"};
    return UsageError(
        context, SuggestNearest(fmt::format("There is no flag {} before the command", name), name,
                                known, ""));
  }
  std::vector<std::string> names = {"help"};
  for (const CommandEntry& entry : commands) names.emplace_back(entry.name);
  return UsageError(context, SuggestNearest(fmt::format("There is no command \"{}\"", name), name,
                                            names, "\"\""));
}

// What is thrown at this moment, as an error. The libraries throw nothing of their own; the
// standard library and the allocator may.
Error ThrownError() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    const HostMemory host = ReadHostMemory();
    return {
        ErrorCode::kAllocation, "",
        fmt::format("The memory that the program may have ({} MiB{}) is too little for this; {}.",
                    host.total_bytes >> 20, host.limited ? ", by ulimit -v" : "",
                    host.limited ? "raise that limit, or ask for less"
                                 : "close other programs, or ask for less")};
  } catch (const std::exception& thrown) {
    return {ErrorCode::kInternal, "",
            fmt::format("Assay failed in a way it does not know ({}).", thrown.what())};
  }
}

Result<int> Guarded(Command& command, Context& context) {
  try {
    return command.Run(context);
  } catch (const std::exception&) {
    return Fail(ThrownError());
  }
}

int RunCommand(Context& context, const CommandEntry& entry, std::span<const std::string> words) {
  context.set_command(std::string(entry.name));
  const std::unique_ptr<Command> command = entry.make();
  const CommandSpec spec = command->Describe();
  const bool json = WantsJson(spec, words);
  const Result<CommonFlags> common = ParseArguments(spec, words);
  const auto usage = [&](const Error& error) {
    if (json) PrintErrorObject(context, error.ToString(), kExitUsage);
    return UsageError(context, error.ToString());
  };
  if (!common) return usage(common.error());
  if (common->help) {
    // From a command that no argument has touched, since the text shows the defaults.
    context.Print(FormatCommandHelp(entry.make()->Describe()));
    return kExitOk;
  }
  context.set_quiet(common->quiet);
  if (const Status status = command->CheckArguments(); !status) {
    return usage(status.error());
  }
  const Result<int> status = Guarded(*command, context);
  if (status) return *status;
  // On a terminal a message would run into a text that was cut off.
  context.FinishLine();
  context.Flush();
  // A command that stopped because nobody takes its text has nothing to add to that.
  if (status.error().code() == ErrorCode::kCancelled && context.print_failed()) return kExitFailed;
  const bool stopped = status.error().code() == ErrorCode::kCancelled && context.cancelled();
  const int exit_status = stopped ? 128 + context.stop_signal() : kExitFailed;
  if (json) PrintErrorObject(context, status.error().ToString(), exit_status);
  context.PrintError(status.error().ToString());
  return exit_status;
}

int Choose(Context& context, std::span<const CommandEntry> commands,
           std::span<const std::string> words) {
  if (words.empty()) return UsageError(context, "A command is missing.");
  const std::string& first = words.front();
  const bool help = first == "help" || first == "--help" || first == "-h";
  const size_t most = first == "--version" ? 1 : help ? 2 : words.size();
  if (words.size() > most) {
    return UsageError(context, fmt::format("The argument \"{}\" is one too many.", words[most]));
  }
  if (first == "--version") {
    context.Print(fmt::format("assay {}\n", Version()));
    return kExitOk;
  }
  if (help &&
      (words.size() == 1 || words[1] == "help" || words[1] == "--help" || words[1] == "-h")) {
    context.Print(FormatProgramHelp(commands));
    return kExitOk;
  }
  const std::string& name = help ? words[1] : first;
  const CommandEntry* entry = FindCommand(commands, name);
  if (entry == nullptr) return UnknownCommand(context, commands, name);
  if (!help) return RunCommand(context, *entry, words.subspan(1));
  const std::string ask[] = {"--help"};
  return RunCommand(context, *entry, ask);
}

}  // namespace

int RunProgram(std::span<const std::string> words, std::span<const CommandEntry> commands,
               const Context::Streams& streams) {
  Context context(streams);
  int status = kExitFailed;
  try {
    status = Choose(context, commands, words);
  } catch (const std::exception&) {
    context.PrintError(ThrownError().ToString());
  }
  streams.out->Flush();
  if (streams.out->error() == 0) return status;
  // A reader that has seen enough, such as head: other programs end by SIGPIPE there, in silence.
  if (streams.out->error() == EPIPE) return 128 + SIGPIPE;
  context.PrintError(
      fmt::format("Cannot write to standard output: {}. The text printed is not whole.",
                  WriteFailure(streams.out->error())));
  return kExitFailed;
}

std::string_view Version() { return ASSAY_VERSION; }

}  // namespace assay::cli
