#include "prove/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::prove {
namespace {

constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::seconds kGrace{2};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string Why(int error_number) { return std::system_category().message(error_number); }

std::string ReadAll(const Descriptor& file) {
  std::string text;
  char block[1 << 16];
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file.get(), block, sizeof(block), at);
    if (count <= 0) return text;
    text.append(block, static_cast<size_t>(count));
    at += count;
  }
}

std::vector<std::string> Environment(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::ranges::any_of(
        options.environment, [name](const auto& added) { return added.first == name; });
    const bool unset = std::ranges::count(options.unset, name) > 0;
    if (!replaced && !unset) result.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) result.push_back(name + '=' + value);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The settings of one posix_spawn.
class SpawnSettings {
 public:
  SpawnSettings(const std::string& folder, int out, int err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setpgroup(&attributes_, 0);
    // What this program ignores or catches the other one has as it comes.
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ})
      sigaddset(&signals, number);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// True once the leader of the group has ended; it is left to be reaped, so that its number stays
// the group's.
bool WaitFor(pid_t leader, const Descriptor& handle, std::chrono::milliseconds how_long) {
  pollfd event{.fd = handle.get(), .events = POLLIN, .revents = 0};
  ::poll(&event, 1, static_cast<int>(how_long.count()));
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(leader), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == leader;
}

// Asks the group to end, and gives it time to.
void AskToEnd(pid_t leader, const Descriptor& handle) {
  ::kill(-leader, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kGrace;
  while (std::chrono::steady_clock::now() < until) {
    if (WaitFor(leader, handle, kPoll)) return;
  }
}

// A small process that kills the group when this one ends without saying so, SIGKILL included. It
// reads a pipe whose other end only this process has, so that the end of the one is the end of the
// other.
class Watcher final {
 public:
  explicit Watcher(pid_t group) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const Descriptor reader(ends[0]);
    writer_ = ends[1];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, reader.get(), STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A group of its own, which no signal to this one's reaches.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<std::string> words = {"sh", "-c", "read -r said || kill -s KILL -- -$0",
                                      fmt::format("{}", group)};
    if (::posix_spawn(&pid_, "/bin/sh", &actions, &attributes, Pointers(words).data(), environ) !=
        0) {
      pid_ = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  ~Watcher() {
    if (writer_ < 0) return;
    static_cast<void>(::write(writer_, "\n", 1) < 0);
    ::close(writer_);
    while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  int writer_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

Result<ProcessResult> RunProcess(const std::vector<std::string>& words,
                                 const ProcessOptions& options) {
  const bool logged = !options.log.empty();
  const Descriptor out(
      logged ? ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
             : ::memfd_create("out", MFD_CLOEXEC));
  const Descriptor err(logged ? ::fcntl(out.get(), F_DUPFD_CLOEXEC, 3)
                              : ::memfd_create("err", MFD_CLOEXEC));
  if (!out.ok() || !err.ok()) {
    return Fail(ErrorCode::kIo, options.log,
                fmt::format("Cannot write the output of \"{}\" to \"{}\": {}.", words.front(),
                            options.log, Why(errno)));
  }
  std::vector<std::string> arguments = words;
  std::vector<std::string> environment = Environment(options);
  const SpawnSettings settings(options.folder, out.get(), err.get());
  pid_t leader = 0;
  if (::access(options.folder.c_str(), X_OK) != 0) {
    return Fail(
        ErrorCode::kIo, options.folder,
        fmt::format("Cannot run \"{}\" in \"{}\": {}.", words.front(), options.folder, Why(errno)));
  }
  const int failed =
      ::posix_spawnp(&leader, words.front().c_str(), settings.actions(), settings.attributes(),
                     Pointers(arguments).data(), Pointers(environment).data());
  if (failed != 0) {
    return Fail(failed == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, words.front(),
                fmt::format("Cannot start \"{}\" in \"{}\": {}.", words.front(), options.folder,
                            Why(failed)));
  }
  // Until the leader has been reaped: from then on its number may be another group's.
  std::optional<Watcher> watcher(std::in_place, leader);
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0)));
  const auto began = std::chrono::steady_clock::now();
  ProcessResult result;
  bool stopped = false;
  while (!WaitFor(leader, handle, kPoll)) {
    stopped = options.stop && options.stop();
    result.timed_out =
        options.time_limit && std::chrono::steady_clock::now() - began >= *options.time_limit;
    if (!stopped && !result.timed_out) continue;
    AskToEnd(leader, handle);
    break;
  }
  // What is left of the group would write into folders that are about to go.
  ::kill(-leader, SIGKILL);
  watcher.reset();
  int status = 0;
  while (::waitpid(leader, &status, 0) < 0 && errno == EINTR) {
  }
  if (stopped) {
    return Fail(ErrorCode::kCancelled, words.front(),
                fmt::format("\"{}\" was stopped.", words.front()));
  }
  result.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (!logged) {
    result.out = ReadAll(out);
    result.err = ReadAll(err);
  }
  return result;
}

std::string ShellQuote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + '\'';
}

}  // namespace assay::prove
