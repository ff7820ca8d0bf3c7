#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay {
namespace {

// Closes on every way out of a function.
class FdCloser {
 public:
  explicit FdCloser(int fd) : fd_(fd) {}
  ~FdCloser() { ::close(fd_); }
  FdCloser(const FdCloser&) = delete;
  FdCloser& operator=(const FdCloser&) = delete;

 private:
  int fd_;
};

std::string Reason(int error_number) { return std::strerror(error_number); }

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error_number = errno;
    return Fail(error_number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
                fmt::format("Cannot open \"{}\": {}.", path, Reason(error_number)));
  }
  const FdCloser closer(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return Fail(ErrorCode::kIo, path,
                fmt::format("Cannot examine \"{}\": {}.", path, Reason(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorCode::kIo, path, fmt::format("\"{}\" is not a regular file.", path));
  }
  MappedFile file;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    return Fail(
        ErrorCode::kIo, path,
        fmt::format("Cannot map \"{}\" ({} bytes): {}.", path, info.st_size, Reason(errno)));
  }
  file.data_ = static_cast<const std::byte*>(data);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<AtomicFile> AtomicFile::Create(const std::string& path, FileCache cache) {
  std::string temporary = path + ".partial-XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) {
    return Fail(ErrorCode::kIo, path,
                fmt::format("Cannot create a file beside \"{}\": {}.", path, Reason(errno)));
  }
  const bool direct =
      cache == FileCache::kBypass && ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_DIRECT) == 0;
  return AtomicFile(path, std::move(temporary), fd, direct);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      fd_(std::exchange(other.fd_, -1)),
      direct_(other.direct_),
      first_error_(other.first_error_) {}

AtomicFile::~AtomicFile() { Abandon(); }

void AtomicFile::Abandon() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_path_.c_str());
}

Status AtomicFile::Stuck(std::string_view doing, int error_number) {
  if (first_error_ == 0) first_error_ = error_number;
  return Fail(ErrorCode::kIo, path_,
              fmt::format("Cannot {} \"{}\": {}. What stood under that name before is unchanged.",
                          doing, path_, Reason(first_error_)));
}

void AtomicFile::LeaveDirect() {
  direct_ = false;
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_DIRECT);
}

Status AtomicFile::Write(std::string_view bytes) {
  if (first_error_ != 0) return Stuck("write", first_error_);
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (direct_ && (address | bytes.size()) % kBlockAlignment != 0) LeaveDirect();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && direct_) {
      // A stricter alignment, or the odd rest of a write that was cut short.
      LeaveDirect();
      continue;
    }
    if (written < 0) return Stuck("write", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status AtomicFile::Commit() {
  if (fd_ < 0)
    return Fail(ErrorCode::kInternal, path_, fmt::format("\"{}\" was committed before.", path_));
  Status status;
  // mkostemp makes the file private; a trace is an ordinary file. The umask can only be read by
  // setting it.
  const mode_t mask = ::umask(022);
  ::umask(mask);
  if (first_error_ != 0) {
    status = Stuck("write", first_error_);
  } else if (::fchmod(fd_, 0666 & ~mask) != 0 || ::fsync(fd_) != 0) {
    status = Stuck("finish", errno);
  } else if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    status = Stuck("rename a file to", errno);
  } else {
    ::close(std::exchange(fd_, -1));
    return {};
  }
  Abandon();
  return status;
}

Result<std::string> ReadFile(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return std::string(file.text());
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  ASSAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ASSAY_TRY(file.Write(bytes));
  return file.Commit();
}

}  // namespace assay
