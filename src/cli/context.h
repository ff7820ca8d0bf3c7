// Context: what a running command may do to the world outside its files: print, warn, ask whether
// the user wants to stop.
#ifndef ASSAY_CLI_CONTEXT_H_
#define ASSAY_CLI_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "assay/base.h"

#include "cli/output.h"
#include "cli/progress.h"

namespace assay::cli {

// Text goes to standard output, diagnostics to standard error. One thread, but for cancelled() and
// the Progress it hands out.
class Context final {
 public:
  struct Streams {
    Output* out;
    Output* err;
    bool err_is_terminal = false;
    // The number of the signal that asked the program to stop; 0: none.
    const std::atomic<int>* stop_signal = nullptr;
  };
  // `streams` and what it points to must outlive the context.
  explicit Context(const Streams& streams) : streams_(streams) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void Print(std::string_view text) { streams_.out->Write(text); }
  // Makes what was printed visible now (token by token output).
  void Flush() { streams_.out->Flush(); }
  // Ends the line that was printed last, if it has not ended.
  void FinishLine() {
    if (streams_.out->mid_line()) Print("\n");
  }
  // True once standard output takes no more: a command that prints much may then stop early. The
  // failure itself is reported after Run.
  bool print_failed() const { return streams_.out->error() != 0; }

  // One line on standard error, "assay CMD: error: MESSAGE", escaped as base/text.h does it.
  void PrintError(std::string_view message) { Diagnose("error", message); }
  void Warn(std::string_view message) { Diagnose("warning", message); }
  // Not under --quiet.
  void Note(std::string_view message) {
    if (!quiet_) Diagnose("note", message);
  }

  // True after Ctrl-C, SIGTERM or SIGHUP: long work polls it and returns an error of code
  // kCancelled.
  bool cancelled() const { return stop_signal() != 0; }
  int stop_signal() const {
    return streams_.stop_signal == nullptr ? 0
                                           : streams_.stop_signal->load(std::memory_order_relaxed);
  }

  // A step that may take long. `total` 0: unknown. It is shown on standard error while it lives,
  // from its second second on, only on a terminal and not under --quiet.
  Progress StartProgress(std::string label, uint64_t total = 0, std::string unit = "") {
    return Progress(!quiet_ && streams_.err_is_terminal ? streams_.err : nullptr, std::move(label),
                    total, std::move(unit));
  }

  bool quiet() const { return quiet_; }
  void set_quiet(bool quiet) { quiet_ = quiet; }
  // Empty before a command is chosen.
  const std::string& command() const { return command_; }
  void set_command(std::string command) { command_ = std::move(command); }

 private:
  void Diagnose(std::string_view severity, std::string_view message);

  Streams streams_;
  std::string command_;
  bool quiet_ = false;
};

// `result`, but for kCancelled with `sentence` in place of what was being done at that moment.
template <typename T>
Result<T> SayStopped(Result<T> result, std::string_view sentence) {
  if (result || result.error().code() != ErrorCode::kCancelled) return result;
  return Fail(ErrorCode::kCancelled, "", std::string(sentence));
}

}  // namespace assay::cli

#endif  // ASSAY_CLI_CONTEXT_H_
