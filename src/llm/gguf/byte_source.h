// ByteSource: the bytes of a GGUF file, on disk or borrowed from memory.
//
// A file on disk is read by pread calls, so that a file that another process cuts short gives an
// error; only bytes() touches the mapping, where that would end the program (SIGBUS).
#ifndef ASSAY_LLM_GGUF_BYTE_SOURCE_H_
#define ASSAY_LLM_GGUF_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <sys/types.h>

#include "assay/base.h"

#include "base/file.h"

namespace assay::gguf {

// Immutable; ReadAt may be called from several threads at once.
class ByteSource final {
 public:
  // The signature of pread(2), for tests of interrupted and short reads.
  using PreadFunction = ssize_t (*)(int fd, void* data, size_t size, off_t offset);

  // Errors: kNotFound, or kIo for what is no regular file or cannot be read or mapped.
  static Result<std::unique_ptr<ByteSource>> Open(const std::string& path,
                                                  PreadFunction pread_function = nullptr);
  // `bytes` must outlive the source.
  static std::unique_ptr<ByteSource> Borrow(std::span<const std::byte> bytes, std::string name);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& name() const { return name_; }
  // Of the file when it was opened.
  uint64_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Fills `out` from `offset` on. Error kIo when the bytes are not there (any more).
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;

 private:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::span<const std::byte> bytes_;
  UniqueFd fd_;  // None: borrowed bytes.
  PreadFunction pread_ = nullptr;
};

}  // namespace assay::gguf

#endif  // ASSAY_LLM_GGUF_BYTE_SOURCE_H_
