#include "trace/sink.h"

#include <utility>

#include <fmt/format.h>
#include <zstd.h>

#include "base/file.h"

namespace assay::trace {
namespace {

// Traces repeat themselves so much that the fastest level already shrinks them thirty-fold.
constexpr int kCompressionLevel = 1;

class FileSink final : public Sink {
 public:
  explicit FileSink(AtomicFile file) : file_(std::move(file)) {}
  Status Write(std::string_view bytes) override { return file_.Write(bytes); }
  Status Commit() override { return file_.Commit(); }

 private:
  AtomicFile file_;
};

class StringSink final : public Sink {
 public:
  explicit StringSink(std::string* out) : out_(out) {}
  Status Write(std::string_view bytes) override {
    out_->append(bytes);
    return {};
  }
  Status Commit() override { return {}; }

 private:
  std::string* out_;
};

struct FreeCCtx {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

class ZstdSink final : public Sink {
 public:
  ZstdSink(std::unique_ptr<Sink> inner, std::unique_ptr<ZSTD_CCtx, FreeCCtx> context)
      : inner_(std::move(inner)), context_(std::move(context)), out_(ZSTD_CStreamOutSize(), '\0') {}

  Status Write(std::string_view bytes) override { return Compress(bytes, ZSTD_e_continue); }
  Status Commit() override {
    ASSAY_TRY(Compress({}, ZSTD_e_end));
    return inner_->Commit();
  }

 private:
  Status Compress(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (ZSTD_isError(left)) {
        return Fail(ErrorCode::kInternal, "",
                    fmt::format("Compression failed: {}.", ZSTD_getErrorName(left)));
      }
      if (out.pos > 0) ASSAY_TRY(inner_->Write({out_.data(), out.pos}));
      const bool done = directive == ZSTD_e_end ? left == 0 : in.pos == in.size;
      if (done) return {};
    }
  }

  std::unique_ptr<Sink> inner_;
  std::unique_ptr<ZSTD_CCtx, FreeCCtx> context_;
  std::string out_;
};

}  // namespace

Result<std::unique_ptr<Sink>> MakeFileSink(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, FileCache::kBypass));
  return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(file)));
}

std::unique_ptr<Sink> MakeStringSink(std::string* out) { return std::make_unique<StringSink>(out); }

Result<std::unique_ptr<Sink>> MakeZstdSink(std::unique_ptr<Sink> inner) {
  std::unique_ptr<ZSTD_CCtx, FreeCCtx> context(ZSTD_createCCtx());
  if (context == nullptr) {
    return Fail(ErrorCode::kAllocation, "", "There is no memory for a compressor.");
  }
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  return std::unique_ptr<Sink>(std::make_unique<ZstdSink>(std::move(inner), std::move(context)));
}

Result<std::unique_ptr<Sink>> MakePathSink(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Sink> file, MakeFileSink(path));
  if (!path.ends_with(".zst")) return file;
  return MakeZstdSink(std::move(file));
}

}  // namespace assay::trace
