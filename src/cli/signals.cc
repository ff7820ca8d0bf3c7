#include "cli/signals.h"

#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace assay::cli {
namespace {

// The one variable outside objects: a signal handler gets no argument of ours to reach another.
constinit std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void OnStopSignal(int signal_number) { stop_signal.store(signal_number); }

}  // namespace

const std::atomic<int>& CatchStopSignals() {
  struct sigaction action {};
  action.sa_handler = OnStopSignal;
  // Not SA_RESTART: a blocking read or write returns, and its caller polls the flag.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited {};
    sigaction(number, nullptr, &inherited);
    // A background job of a shell without job control is started with SIGINT ignored; it stays so.
    if (inherited.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int number : {SIGPIPE, SIGXFSZ}) sigaction(number, &ignore, nullptr);
  return stop_signal;
}

void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is `fd`, since those below it are open by now.
    const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) != fd) ::_exit(2);
  }
}

}  // namespace assay::cli
