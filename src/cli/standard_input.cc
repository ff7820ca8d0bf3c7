#include "cli/standard_input.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace assay::cli {

Result<std::string> ReadToEnd(const Context& context, int fd, uint64_t max_bytes) {
  // A signal that comes between the question and the wait is seen at the next turn.
  constexpr int kWaitMs = 100;
  std::string text;
  std::array<char, size_t{64} << 10> block;
  for (;;) {
    if (context.cancelled()) {
      return Fail(ErrorCode::kCancelled, "", "Stopped while standard input was read.");
    }
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kWaitMs) <= 0) continue;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) {
      return Fail(ErrorCode::kIo, "standard input",
                  fmt::format("Cannot read standard input: {}.", std::strerror(errno)));
    }
    if (got == 0) return text;
    text.append(block.data(), static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      return Fail(ErrorCode::kFormat, "standard input",
                  fmt::format("Standard input has more than {} bytes; at most that many are read.",
                              max_bytes));
    }
  }
}

}  // namespace assay::cli
