#include "llm/gguf/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace assay::gguf {

Result<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path,
                                                     PreadFunction pread_function) {
  ASSAY_ASSIGN_OR_RETURN(InputFile file, OpenForReading(path));
  std::unique_ptr<ByteSource> source(new ByteSource(path));
  source->pread_ = pread_function != nullptr ? pread_function : ::pread;
  const auto size = static_cast<size_t>(file.size_bytes);
  void* data = MAP_FAILED;
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  source->fd_ = std::move(file.fd);
  if (size == 0) return source;
  if (data == MAP_FAILED) {
    return Fail(ErrorCode::kIo, path,
                fmt::format("Cannot map \"{}\" ({} bytes): {}.", path, size, std::strerror(errno)));
  }
  source->bytes_ = {static_cast<const std::byte*>(data), size};
  return source;
}

std::unique_ptr<ByteSource> ByteSource::Borrow(std::span<const std::byte> bytes, std::string name) {
  std::unique_ptr<ByteSource> source(new ByteSource(std::move(name)));
  source->bytes_ = bytes;
  return source;
}

ByteSource::~ByteSource() {
  if (fd_.get() < 0 || bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Status ByteSource::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size() || out.size() > size() - offset) {
    return Fail(ErrorCode::kIo, name_,
                fmt::format("Bytes [{}, {}+{}) lie outside \"{}\" ({} bytes).", offset, offset,
                            out.size(), name_, size()));
  }
  if (fd_.get() < 0) {
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  // Linux moves at most 0x7ffff000 bytes a call; asking for less keeps the count in an ssize_t on
  // every system.
  constexpr size_t kMaxReadBytes = size_t{1} << 30;
  const uint64_t end = offset + out.size();
  while (!out.empty()) {
    const ssize_t got = pread_(fd_.get(), out.data(), std::min(out.size(), kMaxReadBytes),
                               static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Fail(
          ErrorCode::kIo, name_,
          fmt::format("Cannot read \"{}\" at byte {}: {}.", name_, offset, std::strerror(errno)));
    }
    if (got == 0) {
      return Fail(ErrorCode::kIo, name_,
                  fmt::format("\"{}\" ends at byte {} where bytes up to {} are needed: it had {} "
                              "bytes when it was opened and has been cut short since.",
                              name_, offset, end, size()));
    }
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

}  // namespace assay::gguf
