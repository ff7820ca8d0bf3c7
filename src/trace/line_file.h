// The lines of a trace on their way to a sink: cut into blocks of one size, counted and digested,
// and ended by the line that says both.
#ifndef ASSAY_TRACE_LINE_FILE_H_
#define ASSAY_TRACE_LINE_FILE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "assay/base.h"

#include "base/hash.h"
#include "trace/sink.h"

namespace assay::trace {

inline constexpr size_t kBlockBytes = size_t{1} << 20;

// The first failure sticks: nothing is written after it and Finish returns it. Full blocks are
// digested and written by a thread of its own, which begins with the first of them; the sink is
// called by one thread at a time. One caller at a time; ok() from any thread.
class LineFile final {
 public:
  explicit LineFile(std::unique_ptr<Sink> sink, size_t block_bytes = kBlockBytes);
  // Waits for a block on its way; what is not finished is abandoned with the sink.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Takes whole lines, each with its newline.
  void Append(std::string_view text, uint64_t lines);
  void Fail(Error error);
  // The same, where there is no memory for an error.
  void FailForMemory() noexcept;
  bool ok() const { return ok_.load(std::memory_order_acquire); }

  // Writes the end line and commits the sink. Call it once, last.
  Status Finish();

 private:
  // Aligned, so that a file may be written past the system's cache.
  struct FreeBlock {
    void operator()(char* block) const;
  };
  using BlockPointer = std::unique_ptr<char[], FreeBlock>;
  static BlockPointer MakeBlock(size_t bytes);

  void Buffer(std::string_view text);
  void WriteFullBlock();
  void Write(std::string_view bytes);
  void RunWriter();
  void StopWriter();

  std::unique_ptr<Sink> sink_;
  const size_t block_bytes_;
  BlockPointer block_;  // Being filled.
  size_t filled_ = 0;
  uint64_t lines_ = 0;
  Hasher hasher_;  // Used by the writer thread while it runs.
  std::thread writer_;

  std::mutex mutex_;
  std::condition_variable changed_;  // Of the members from here on, which the mutex guards.
  BlockPointer handed_over_;
  bool block_waits_ = false;  // handed_over_ is full and not yet written.
  bool stop_ = false;
  Status status_;
  std::atomic<bool> out_of_memory_{false};  // What Finish makes an error of.
  std::atomic<bool> ok_{true};              // Whether nothing has failed.
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_LINE_FILE_H_
