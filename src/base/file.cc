#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay {
namespace {

std::string Reason(int error_number) { return std::strerror(error_number); }

std::string_view KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

tl::unexpected<Error> NotRegular(const std::string& path, mode_t mode) {
  return Fail(ErrorCode::kIo, path,
              fmt::format("\"{}\" is {}, not a regular file{}.", path, KindName(mode),
                          S_ISFIFO(mode) ? "; write its bytes to a file and name that" : ""));
}

// Where `path` leads once every symbolic link at its end is followed, whether or not something
// stands there.
Result<std::string> FollowLinks(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // As Linux follows.
  fs::path at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code failure;
    if (!fs::is_symlink(fs::symlink_status(at, failure))) return at.string();
    const fs::path target = fs::read_symlink(at, failure);
    if (failure) break;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return Fail(ErrorCode::kIo, path,
              fmt::format("\"{}\" is a symbolic link that leads nowhere or in a circle.", path));
}

}  // namespace

std::string WriteFailure(int error_number) {
  rlimit limit{};
  if (error_number != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return Reason(error_number);
  }
  return fmt::format("{}, over the limit on the size of files (ulimit -f, {} bytes)",
                     Reason(error_number), limit.rlim_cur);
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<InputFile> OpenForReading(const std::string& path) {
  // O_NONBLOCK keeps a pipe from blocking here; it means nothing for a regular file.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    const int error_number = errno;
    return Fail(error_number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
                fmt::format("Cannot open \"{}\": {}.", path, Reason(error_number)));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return Fail(ErrorCode::kIo, path,
                fmt::format("Cannot examine \"{}\": {}.", path, Reason(errno)));
  }
  if (!S_ISREG(info.st_mode)) return NotRegular(path, info.st_mode);
  return InputFile{std::move(fd), static_cast<uint64_t>(info.st_size)};
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const InputFile input, OpenForReading(path));
  MappedFile file;
  file.size_ = static_cast<size_t>(input.size_bytes);
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, input.fd.get(), 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    return Fail(
        ErrorCode::kIo, path,
        fmt::format("Cannot map \"{}\" ({} bytes): {}.", path, input.size_bytes, Reason(errno)));
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
  ASSAY_ASSIGN_OR_RETURN(std::string target, FollowLinks(path));
  struct stat info {};
  // A rename would put a file in the place of a device.
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return NotRegular(path, info.st_mode);
  }
  std::string temporary = target + ".partial-XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) {
    return Fail(ErrorCode::kIo, path,
                fmt::format("Cannot create a file beside \"{}\": {}.", target, Reason(errno)));
  }
  const bool direct =
      cache == FileCache::kBypass && ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_DIRECT) == 0;
  return AtomicFile(std::move(target), std::move(temporary), fd, direct);
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
                          doing, path_, WriteFailure(first_error_)));
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

int AtomicFile::TakeOverMode() const {
  struct stat old {};
  if (::stat(path_.c_str(), &old) != 0) {
    // mkostemp makes the file private; a new file is an ordinary one. The umask can only be read by
    // setting it.
    const mode_t mask = ::umask(022);
    ::umask(mask);
    return ::fchmod(fd_, 0666 & ~mask);
  }
  // First, for a change of owner clears bits of the mode. Only root may give a file away.
  [[maybe_unused]] const int ignored = ::fchown(fd_, old.st_uid, old.st_gid);
  return ::fchmod(fd_, old.st_mode & 07777);
}

Status AtomicFile::Commit() {
  if (fd_ < 0)
    return Fail(ErrorCode::kInternal, path_, fmt::format("\"{}\" was committed before.", path_));
  Status status;
  if (first_error_ != 0) {
    status = Stuck("write", first_error_);
  } else if (TakeOverMode() != 0 || ::fsync(fd_) != 0) {
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

Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  ASSAY_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > max_bytes) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" has {} bytes; at most {} are read.", path, file.bytes().size(),
                            max_bytes));
  }
  return std::string(file.text());
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  ASSAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ASSAY_TRY(file.Write(bytes));
  return file.Commit();
}

}  // namespace assay
