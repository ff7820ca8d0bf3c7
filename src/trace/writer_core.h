// What a TraceWriter and its command buffers share.
//
// An event is an Item: a line (for a command buffer, several) with holes where the names of buffers
// and kernels go. An item of the session's thread is put at once. An item of a job is kept until
// the load has ended, when its buffers have numbers, and put in job order. Putting an item fills
// its holes.
#ifndef ASSAY_SRC_TRACE_WRITER_CORE_H_
#define ASSAY_SRC_TRACE_WRITER_CORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/trace.h"

#include "trace/format.h"
#include "trace/line_file.h"
#include "trace/names.h"

namespace assay::trace {

// A pipeline, shared by all keys of the same content.
struct KernelEntry {
  std::string body;            // The line behind `kernel kN`.
  std::optional<KernelId> id;  // From its first use on.
};

// Where a name goes: before text[at]. One of the two is set.
struct Hole {
  size_t at = 0;
  BufferNamer::SlotRef buffer = nullptr;
  std::shared_ptr<KernelEntry> kernel = nullptr;
};

struct Item {
  enum class Kind : uint8_t {
    kBuffer,  // A buffer is made; `buffer` is its slot.
    kFree,    // A buffer ends; left out where its line was.
    kUse,     // Any other lines.
  };
  Kind kind = Kind::kUse;
  BufferNamer::SlotRef buffer = nullptr;
  std::string text;  // With its newlines.
  std::vector<Hole> holes = {};
  uint64_t lines = 1;
};

// What keys stood for when they were last looked up, so that a dispatch like an earlier one takes
// no lock. An entry is good only in the epoch it was made in.
template <size_t kEntries>
class NumberCache final {
 public:
  std::optional<uint64_t> Find(uint64_t key, uint64_t epoch) const {
    const Entry& entry = entries_[IndexOf(key)];
    if (entry.key != key || entry.epoch != epoch) return std::nullopt;
    return entry.number;
  }
  void Set(uint64_t key, uint64_t epoch, uint64_t number) {
    entries_[IndexOf(key)] = {key, epoch, number};
  }

 private:
  struct Entry {
    uint64_t key = 0;
    uint64_t epoch = 0;  // Epochs begin at 1.
    uint64_t number = 0;
  };
  static_assert((kEntries & (kEntries - 1)) == 0);
  // Fibonacci hashing: keys are addresses, whose low bits are alike.
  static size_t IndexOf(uint64_t key) { return (key * 0x9E3779B97F4A7C15U) >> 40 & (kEntries - 1); }
  std::array<Entry, kEntries> entries_{};
};

// The lines of one command buffer from `begin` on, and what is needed to write them fast. Reused
// for later command buffers with its memory and its caches.
struct GatheredCommands {
  TextBuffer text;
  std::vector<Hole> holes;
  uint64_t lines = 0;
  std::optional<Error> error;
  NumberCache<1024> buffers;
  NumberCache<64> kernels;
};

// Thread-safe.
class WriterCore final : public LoadObserver {
 public:
  WriterCore(std::unique_ptr<LineFile> file, int version)
      : names_(version), file_(std::move(file)) {}

  void BufferMade(uint64_t key, const BufferRecord& record);
  void BufferFreed(uint64_t key);
  void HostAccess(std::string_view word, uint64_t key, ByteRange range);
  void KernelMade(uint64_t key, const KernelRecord& record);
  void Wait();
  Status Close();
  // Drops the file if Close has not been called.
  void Abandon();

  uint64_t OnLoadBegin(size_t job_count) override;
  void OnJobBegin(uint64_t load, size_t job) override;
  void OnJobEnd(uint64_t load, size_t job, bool ok) override;
  void OnLoadEnd(uint64_t load) override;

  std::unique_ptr<GatheredCommands> Begin();
  void Dispatch(GatheredCommands* commands, const DispatchRecord& record);
  void Barrier(GatheredCommands* commands);
  void Commit(std::unique_ptr<GatheredCommands> commands);
  void Recycle(std::unique_ptr<GatheredCommands> commands);

 private:
  // A buffer or a kernel for a dispatch: its number, or a hole to be filled later, or neither when
  // the key stands for nothing.
  struct Lookup {
    std::optional<uint64_t> number;
    Hole hole;
  };
  Lookup FindBuffer(uint64_t key);
  Lookup FindKernel(uint64_t key);
  char* PutBuffer(GatheredCommands* commands, char* p, const DispatchRecord::Binding& binding,
                  uint64_t epoch, const char* start);
  char* PutKernel(GatheredCommands* commands, char* p, uint64_t key, uint64_t epoch,
                  const char* start);

  // The rest is called with the mutex held.
  bool Open() const { return file_ != nullptr && file_->ok(); }
  // Keeps, puts or refuses what the calling thread does at `place`.
  void Route(const Place& place, Item item);
  void Put(const Item& item);
  std::string_view FillHoles(const Item& item);
  BufferId NameForUse(const BufferNamer::Slot& buffer);
  void NumberKernel(KernelEntry* kernel);
  void Refuse(Refusal reason) { ++refused_events_[static_cast<size_t>(reason)]; }
  bool CheckLine(std::string_view what, const std::string& body);

  std::mutex mutex_;  // Guards all below but epoch_.
  NameTable names_;
  std::unique_ptr<LineFile> file_;  // Null once closed.
  Status close_status_;
  std::unordered_map<uint64_t, std::shared_ptr<KernelEntry>> kernels_;
  std::unordered_map<std::string, std::shared_ptr<KernelEntry>> kernels_by_body_;
  uint32_t next_kernel_ = 0;
  std::map<size_t, std::vector<Item>> job_items_;
  std::array<uint64_t, kRefusalCount> refused_events_{};
  TextBuffer filled_;
  std::vector<std::unique_ptr<GatheredCommands>> spare_commands_;

  // Rises when a key may come to stand for something else.
  std::atomic<uint64_t> epoch_{1};
};

}  // namespace assay::trace

#endif  // ASSAY_SRC_TRACE_WRITER_CORE_H_
