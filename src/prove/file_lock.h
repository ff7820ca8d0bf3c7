// A lock that a file stands for, between processes; gone with the process that holds it.
#ifndef ASSAY_PROVE_FILE_LOCK_H_
#define ASSAY_PROVE_FILE_LOCK_H_

#include <cstdint>
#include <string>

#include "assay/base.h"

namespace assay::prove {

// Open or nothing; what it holds ends with it. One thread.
class FileLock final {
 public:
  FileLock() = default;
  // The file is made where it is missing. Nothing is locked yet. kIo.
  static Result<FileLock> Open(const std::string& path);
  // A folder that is there, in which nothing is made; it takes no holder's number. kIo.
  static Result<FileLock> OpenFolder(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // False when somebody else holds it in a way that excludes this one. kIo.
  Result<bool> TryExclusive();
  Result<bool> TryShared();
  // False once the file was removed or replaced: then the lock means nothing.
  bool Stands() const;

  // Whoever holds it exclusively leaves the number of its process for others to name.
  void WriteHolder() const;
  // 0 where nobody left one.
  int64_t Holder() const;

 private:
  static Result<FileLock> OpenAs(const std::string& path, int flags);
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<bool> Try(int how);

  std::string path_;
  int fd_ = -1;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_FILE_LOCK_H_
