// What a TraceWriter and its command buffers share.
//
// An event is an Item: a line (for a command buffer, several) with holes where the names of buffers
// and kernels go. An item of the session's thread is put at once. An item of a job is kept until
// the load has ended, when its buffers have numbers, and put in job order. Putting an item fills
// its holes.
#ifndef ASSAY_TRACE_WRITER_CORE_H_
#define ASSAY_TRACE_WRITER_CORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// What keys stood for when they were last looked up, as text, so that a dispatch like an earlier
// one takes no lock. An open table with linear probing; it holds for one epoch.
class NameCache final {
 public:
  // Puts the name of `key` at `p`, where 16 bytes must be free; null when it is not known.
  char* Put(char* p, uint64_t key, uint64_t epoch) const {
    if (epoch != epoch_) return nullptr;
    for (size_t i = IndexOf(key); entries_[i].length != 0; i = (i + 1) & (entries_.size() - 1)) {
      if (entries_[i].key != key) continue;
      std::memcpy(p, entries_[i].text.data(), sizeof entries_[i].text);
      return p + entries_[i].length;
    }
    return nullptr;
  }
  // `key` must not be known. A name of more than 15 bytes is not kept.
  void Set(uint64_t key, uint64_t epoch, std::string_view name);

 private:
  struct Entry {
    uint64_t key = 0;
    std::array<char, 15> text{};
    uint8_t length = 0;  // 0: the entry is free.
  };
  // Fibonacci hashing: keys are addresses, whose low bits are alike.
  size_t IndexOf(uint64_t key) const {
    return (key * 0x9E3779B97F4A7C15U) >> 32 & (entries_.size() - 1);
  }
  void Insert(const Entry& entry);

  uint64_t epoch_ = 0;  // Epochs begin at 1.
  size_t used_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(64);  // A power of two, at most half used.
};

// The lines of one command buffer, from `begin` to `commit`, and what is needed to write them fast
// and to change some of them.
struct GatheredCommands {
  // The line of a dispatch or of a barrier begins at text[begin]; the hex of its constant bytes, if
  // there are any, at text[begin + args_at], and the range of its binding i at
  // text[begin + ranges_at[first_range + i]].
  struct Event {
    size_t begin = 0;
    size_t args_at = 0;
    size_t first_range = 0;
  };

  TextBuffer text;
  std::vector<Event> events;
  std::vector<size_t> ranges_at;
  std::vector<Hole> holes;
  std::optional<Error> error;
  // While all names in the text were found in this epoch; 0 when they were not, or when a line has
  // a hole.
  uint64_t epoch = 0;
  bool committed = false;  // The text ends in `commit`.
  NameCache buffers;
  NameCache kernels;
  TextBuffer line;  // Room for one.
};

// Thread-safe.
class WriterCore final : public LoadObserver {
 public:
  WriterCore(std::unique_ptr<LineFile> file, int version)
      : names_(version), file_(std::move(file)) {}

  void BufferMade(uint64_t key, const BufferRecord& record);
  // Destructors of buffers come here: where there is no memory for the event, the trace fails.
  void BufferFreed(uint64_t key) noexcept;
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
  void Clear(GatheredCommands* commands) const;
  bool Repeat(GatheredCommands* commands);
  void Replace(GatheredCommands* commands, size_t index, const DispatchRecord& record);
  void ReplaceArgs(GatheredCommands* commands, size_t index, size_t first,
                   std::span<const std::byte> bytes);
  bool ReplaceRange(GatheredCommands* commands, size_t index, size_t binding, ByteRange range);
  void Commit(GatheredCommands* commands);
  void Recycle(std::unique_ptr<GatheredCommands> commands);

 private:
  // Writes the line of `record`, which is `event`'s, at `start`, where it has room, and returns its
  // end. Event and ranges_at learn where its parts stand.
  const char* FormatDispatch(GatheredCommands* commands, GatheredCommands::Event* event,
                             char* start, const DispatchRecord& record);
  // Writes the name of a key that is not cached, or leaves a hole for it, or sets the error of a
  // key that stands for nothing. `text_at` is the place of `p` in commands->text.
  char* LookUpBuffer(GatheredCommands* commands, char* p, uint64_t key, uint64_t epoch,
                     size_t text_at);
  char* LookUpKernel(GatheredCommands* commands, char* p, uint64_t key, uint64_t epoch,
                     size_t text_at);

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

#endif  // ASSAY_TRACE_WRITER_CORE_H_
