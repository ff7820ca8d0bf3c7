#include "prove/file_lock.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::prove {

Result<FileLock> FileLock::Open(const std::string& path) { return OpenAs(path, O_RDWR | O_CREAT); }

Result<FileLock> FileLock::OpenFolder(const std::string& path) {
  return OpenAs(path, O_RDONLY | O_DIRECTORY);
}

Result<FileLock> FileLock::OpenAs(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd >= 0) return FileLock(path, fd);
  return Fail(ErrorCode::kIo, path,
              fmt::format("Cannot open \"{}\" to lock it: {}.", path,
                          std::system_category().message(errno)));
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<bool> FileLock::Try(int how) {
  while (::flock(fd_, how | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    return Fail(
        ErrorCode::kIo, path_,
        fmt::format("Cannot lock \"{}\": {}.", path_, std::system_category().message(errno)));
  }
  return true;
}

Result<bool> FileLock::TryExclusive() { return Try(LOCK_EX); }
Result<bool> FileLock::TryShared() { return Try(LOCK_SH); }

bool FileLock::Stands() const {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

void FileLock::WriteHolder() const {
  const std::string text = fmt::format("{}\n", ::getpid());
  // A number that cannot be written is one that others cannot name, and no more.
  if (::ftruncate(fd_, 0) == 0) {
    static_cast<void>(::pwrite(fd_, text.data(), text.size(), 0) < 0);
  }
}

int64_t FileLock::Holder() const {
  std::array<char, 24> text{};
  const ssize_t count = ::pread(fd_, text.data(), text.size(), 0);
  int64_t pid = 0;
  if (count > 0) std::from_chars(text.data(), text.data() + count, pid);
  return pid;
}

}  // namespace assay::prove
