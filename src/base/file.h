// Files: read-only mappings, and whole-or-not-at-all writing.
#ifndef ASSAY_BASE_FILE_H_
#define ASSAY_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "assay/base.h"

namespace assay {

// A regular file mapped for reading. Move-only; the bytes live as long as it does.
class MappedFile final {
 public:
  // Errors: kNotFound, kIo (a directory, no permission, ...), naming the path. An empty file maps
  // to no bytes.
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

// Writes a file that appears under its name only when Commit() succeeds: the bytes go to a file
// beside it, which is synced and renamed. Dropping it uncommitted removes that file. The first
// failure sticks. One thread at a time.
class AtomicFile final {
 public:
  // Of the address and the size of a block that can go past the cache.
  static constexpr size_t kBlockAlignment = 4096;

  // Errors: kIo, naming the path.
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
  Status Stuck(std::string_view doing, int error_number);
  void LeaveDirect();

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
  bool direct_ = false;  // Writes go past the cache; every one so far was aligned.
  int first_error_ = 0;
};

// A whole small file. Errors as MappedFile::Open.
Result<std::string> ReadFile(const std::string& path);
// AtomicFile in one call.
Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace assay

#endif  // ASSAY_BASE_FILE_H_
