#include "cli/program.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay {
namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  }
  ~Pipe() {
    CloseWriter();
    ::close(ends[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void CloseWriter() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  // Up to `limit` bytes, fewer only at the end.
  std::string Read(size_t limit) const {
    std::string text;
    std::array<char, 4096> block;
    while (text.size() < limit) {
      const ssize_t got =
          ::read(ends[0], block.data(), std::min(block.size(), limit - text.size()));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      text.append(block.data(), static_cast<size_t>(got));
    }
    return text;
  }
};

class Child {
 public:
  // `program` is its path, `words` what stands behind it.
  Child(const char* program, const std::vector<std::string>& words, OutputTo output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    switch (output) {
      case OutputTo::kCaptured:
        posix_spawn_file_actions_adddup2(&actions, out_.ends[1], STDOUT_FILENO);
        break;
      case OutputTo::kClosed:
        posix_spawn_file_actions_addclose(&actions, STDOUT_FILENO);
        break;
      case OutputTo::kFullDevice:
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/full", O_WRONLY, 0);
        break;
    }
    posix_spawn_file_actions_adddup2(&actions, err_.ends[1], STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>(program)};
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, program, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error(std::string("cannot start ") + program);
    out_.CloseWriter();
    err_.CloseWriter();
  }

  void Signal(int number) const { ::kill(pid_, number); }
  std::string ReadOut(size_t limit) const { return out_.Read(limit); }

  ProgramResult Finish() {
    ProgramResult result;
    // Both at once, so that neither pipe fills up unread.
    std::jthread reader([&] { result.err = err_.Read(SIZE_MAX); });
    result.out = out_.Read(SIZE_MAX);
    reader.join();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

 private:
  Pipe out_, err_;
  pid_t pid_ = -1;
};

}  // namespace

ProgramResult RunAssay(const std::vector<std::string>& words, OutputTo output) {
  return Child(ASSAY_PROGRAM, words, output).Finish();
}

ProgramResult RunAssayAndInterrupt(const std::vector<std::string>& words, size_t bytes,
                                   int signal_number) {
  Child child(ASSAY_PROGRAM, words, OutputTo::kCaptured);
  const std::string begun = child.ReadOut(bytes);
  child.Signal(signal_number);
  ProgramResult result = child.Finish();
  result.out = begun + result.out;
  return result;
}

ProgramResult RunAssayUnderFileLimit(const std::vector<std::string>& words, int blocks,
                                     const std::string& out_file) {
  // The shell says ulimit and becomes the program.
  std::vector<std::string> shell = {"-c",
                                    "ulimit -f \"$1\" && [ -n \"$2\" ] && exec >\"$2\"; shift 2; "
                                    "exec \"$0\" \"$@\"",
                                    ASSAY_PROGRAM, std::to_string(blocks), out_file};
  shell.insert(shell.end(), words.begin(), words.end());
  return Child("/bin/sh", shell, OutputTo::kCaptured).Finish();
}

}  // namespace assay
