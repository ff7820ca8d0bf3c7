#include "cli/output.h"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace assay::cli {
namespace {
constexpr size_t kFlushBytes = size_t{64} << 10;
}  // namespace

void Output::Write(std::string_view text) {
  if (error_ != 0) return;
  if (!text.empty()) mid_line_ = text.back() != '\n';
  pending_ += text;
  if (pending_.size() >= kFlushBytes) Flush();
}

void Output::Flush() {
  if (error_ == 0 && !pending_.empty()) error_ = WriteAll(pending_);
  pending_.clear();
}

int FdOutput::WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return errno;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace assay::cli
