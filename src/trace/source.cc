#include "trace/source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"

namespace assay::trace {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr int kMaxWindowLog = 27;

// True for the beginning of a zstd frame, also of one to be skipped (0x184D2A5?, little-endian),
// which may stand before the data: RFC 8878, section 3.1.
bool BeginsZstd(std::string_view head) {
  if (head.size() < kMagicBytes) return false;
  if (head == "\x28\xB5\x2F\xFD") return true;
  return (static_cast<unsigned char>(head[0]) & 0xF0) == 0x50 && head.substr(1) == "\x2A\x4D\x18";
}

class FileSource final : public Source {
 public:
  FileSource(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<size_t> Read(char* out, size_t capacity) override {
    for (;;) {
      const ssize_t got = ::read(fd_.get(), out, capacity);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno == EINTR) continue;
      return Fail(ErrorCode::kIo, path_,
                  fmt::format("Cannot read \"{}\": {}.", path_, std::strerror(errno)));
    }
  }

 private:
  UniqueFd fd_;
  std::string path_;
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::string_view bytes) : left_(bytes) {}
  Result<size_t> Read(char* out, size_t capacity) override {
    const size_t taken = left_.copy(out, capacity);
    left_.remove_prefix(taken);
    return taken;
  }

 private:
  std::string_view left_;
};

// Gives a few bytes that were read ahead, then the rest.
class RejoinedSource final : public Source {
 public:
  RejoinedSource(std::string head, std::unique_ptr<Source> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}
  Result<size_t> Read(char* out, size_t capacity) override {
    if (given_ == head_.size()) return rest_->Read(out, capacity);
    const size_t taken = head_.copy(out, capacity, given_);
    given_ += taken;
    return taken;
  }

 private:
  std::string head_;
  size_t given_ = 0;
  std::unique_ptr<Source> rest_;
};

struct FreeDCtx {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdSource final : public Source {
 public:
  ZstdSource(std::unique_ptr<Source> inner, std::unique_ptr<ZSTD_DCtx, FreeDCtx> context,
             std::string name)
      : inner_(std::move(inner)),
        context_(std::move(context)),
        name_(std::move(name)),
        in_(ZSTD_DStreamInSize(), '\0') {}

  Result<size_t> Read(char* out, size_t capacity) override {
    ZSTD_outBuffer to{out, capacity, 0};
    while (to.pos == 0) {
      if (from_.pos == from_.size && !inner_ended_) {
        ASSAY_ASSIGN_OR_RETURN(const size_t got, inner_->Read(in_.data(), in_.size()));
        inner_ended_ = got == 0;
        from_ = {in_.data(), got, 0};
      }
      if (inner_ended_ && frame_ended_) return size_t{0};
      const size_t before = from_.pos;
      const size_t left = ZSTD_decompressStream(context_.get(), &to, &from_);
      if (ZSTD_isError(left)) return Damaged(ZSTD_getErrorName(left));
      if (inner_ended_ && to.pos == 0) return Damaged("it is cut short");
      // Without progress the decoder only asks for input, which says nothing about the frame.
      if (from_.pos != before || to.pos > 0) frame_ended_ = left == 0;
    }
    return to.pos;
  }

 private:
  Result<size_t> Damaged(std::string_view why) {
    return Fail(ErrorCode::kFormat, name_,
                fmt::format("The compressed data of \"{}\" is damaged: {}.", name_, why));
  }

  std::unique_ptr<Source> inner_;
  std::unique_ptr<ZSTD_DCtx, FreeDCtx> context_;
  std::string name_;
  std::string in_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  bool inner_ended_ = false;
  bool frame_ended_ = false;
};

Result<std::unique_ptr<Source>> Decompressed(std::unique_ptr<Source> inner, const std::string& name,
                                             bool* compressed) {
  std::string head(kMagicBytes, '\0');
  size_t filled = 0;
  while (filled < head.size()) {
    ASSAY_ASSIGN_OR_RETURN(const size_t got,
                           inner->Read(head.data() + filled, head.size() - filled));
    if (got == 0) break;
    filled += got;
  }
  head.resize(filled);
  const bool is_zstd = BeginsZstd(head);
  if (compressed != nullptr) *compressed = is_zstd;
  std::unique_ptr<Source> whole =
      std::make_unique<RejoinedSource>(std::move(head), std::move(inner));
  if (!is_zstd) return whole;
  std::unique_ptr<ZSTD_DCtx, FreeDCtx> context(ZSTD_createDCtx());
  if (context == nullptr) {
    return Fail(ErrorCode::kAllocation, name,
                fmt::format("There is no memory to decompress \"{}\".", name));
  }
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  return std::unique_ptr<Source>(
      std::make_unique<ZstdSource>(std::move(whole), std::move(context), name));
}

}  // namespace

Result<std::unique_ptr<Source>> OpenPathSource(const std::string& path, bool* compressed) {
  ASSAY_ASSIGN_OR_RETURN(InputFile file, OpenForReading(path));
  return Decompressed(std::make_unique<FileSource>(std::move(file.fd), path), path, compressed);
}

Result<std::unique_ptr<Source>> OpenMemorySource(std::string_view bytes, const std::string& name) {
  return Decompressed(std::make_unique<MemorySource>(bytes), name, nullptr);
}

}  // namespace assay::trace
