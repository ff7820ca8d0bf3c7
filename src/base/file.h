// Files: the one way in which they are opened for reading, read-only mappings, and
// whole-or-not-at-all writing.
#ifndef ASSAY_BASE_FILE_H_
#define ASSAY_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "assay/base.h"

namespace assay {

// A file descriptor that is closed with it. Move-only; -1 is none.
class UniqueFd final {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// A regular file, open for reading.
struct InputFile {
  UniqueFd fd;
  uint64_t size_bytes = 0;  // When it was opened.
};
// Never waits: a pipe, a device or a directory is refused, for what is read here is read twice,
// mapped or measured, and a pipe without a writer would block for ever. Errors: kNotFound, kIo,
// naming the path.
Result<InputFile> OpenForReading(const std::string& path);

// A regular file mapped for reading. Move-only; the bytes live as long as it does.
class MappedFile final {
 public:
  // Errors: as OpenForReading; kIo. An empty file maps to no bytes.
  static Result<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Whether written bytes stay in the system's cache.
enum class FileCache : uint8_t {
  kKeep,
  // Aligned blocks go past it where the file system can do that: for long streams, which would push
  // out of it what is needed, and which cost the most where memory has to be found for them.
  kBypass,
};

// Why a write failed, to stand behind a colon; past the limit of `ulimit -f` with that limit.
std::string WriteFailure(int error_number);

// Writes a file that appears under its name only when Commit() succeeds: the bytes go to a file
// beside it, which is synced and renamed. Dropping it uncommitted removes that file. The first
// failure sticks. One thread at a time.
//
// A symbolic link is followed: the file it leads to is the one that is replaced, and the link
// stays. What is replaced hands on its mode, and its owner and group where the system allows it;
// its other hard links keep the older bytes, since a rename is what makes it whole or not at all.
class AtomicFile final {
 public:
  // Of the address and the size of a block that can go past the cache.
  static constexpr size_t kBlockAlignment = 4096;

  // Errors: kIo, naming the path: what stands there is no regular file, or the folder takes none.
  static Result<AtomicFile> Create(const std::string& path, FileCache cache = FileCache::kKeep);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Write(std::string_view bytes);
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd, bool direct)
      : path_(std::move(path)),
        temporary_path_(std::move(temporary_path)),
        fd_(fd),
        direct_(direct) {}
  void Abandon();
  // Gives the file the mode and owner of what it replaces. 0, or -1 with errno.
  int TakeOverMode() const;
  Status Stuck(std::string_view doing, int error_number);
  void LeaveDirect();

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
  bool direct_ = false;  // Writes go past the cache; every one so far was aligned.
  int first_error_ = 0;
};

// A whole small file. Errors: as MappedFile::Open; kFormat when it has more than `max_bytes`, of
// which nothing is read then.
inline constexpr uint64_t kSmallFileBytes = uint64_t{64} << 20;
Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes = kSmallFileBytes);
// AtomicFile in one call.
Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace assay

#endif  // ASSAY_BASE_FILE_H_
