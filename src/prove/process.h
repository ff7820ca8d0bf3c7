// Runs another program to its end, with its whole process group.
#ifndef ASSAY_PROVE_PROCESS_H_
#define ASSAY_PROVE_PROCESS_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/base.h"

namespace assay::prove {

struct ProcessOptions {
  std::string folder;  // Where it runs; must exist.
  // Added to the environment of this process, or put in place of what is there.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::string> unset = {};  // Left out of it.
  // Appended to this file, standard error as well; empty: given back in ProcessResult.
  std::string log = {};
  std::optional<std::chrono::seconds> time_limit = {};
  // Asked several times a second; true ends the group. May be empty.
  std::function<bool()> stop = {};
};

struct ProcessResult {
  int exit_status = 0;  // 128 + the signal when one ended it.
  bool timed_out = false;
  std::string out, err;  // Without a log.
};

// Starts `words` (the first is looked for in PATH) in a group of its own, with no input, and waits.
// What is left of the group when the program ends is killed, and so is the whole group when the
// time is up or `stop` says so: first asked to end, and after two seconds made to. It is killed as
// well when this process ends before it. Errors:
// kNotFound when there is no such program, kIo, kCancelled after a stop.
Result<ProcessResult> RunProcess(const std::vector<std::string>& words,
                                 const ProcessOptions& options);

// `text` as one word of a shell.
std::string ShellQuote(std::string_view text);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_PROCESS_H_
