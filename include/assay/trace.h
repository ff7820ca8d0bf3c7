// Trace: the text record of everything a program encoded, the same bytes on every run
// (docs/trace-format.md).
//
// The library knows nothing of devices or models: whoever records calls TraceWriter, whoever
// examines calls TraceReader.
//
//   auto writer = trace::TraceWriter::Create("out.trace", options).value();
//   writer->BufferMade(key, {.size_bytes = 4096, .kind = BufferKind::kScratch});
//   writer->CommandBuffer(events); ... ; ASSAY_TRY(writer->Close());
#ifndef ASSAY_TRACE_H_
#define ASSAY_TRACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "assay/base.h"

namespace assay::trace {

// The version written by default, and the older one that numbers buffers in order of creation (T8).
inline constexpr int kCurrentVersion = 2;
inline constexpr int kCreationOrderVersion = 1;

struct BufferTag;
struct KernelTag;
// The n of a buffer's name `#n`.
using BufferId = StrongId<BufferTag, uint64_t>;
// The value that stands for a buffer without a deterministic place, written `#?`; only in refused
// traces.
inline constexpr BufferId kUnnamedBuffer{UINT64_MAX};
// The N of a kernel's name `kN`.
using KernelId = StrongId<KernelTag, uint32_t>;

// Why a buffer has no deterministic place (T7). The word in the file is RefusalName().
enum class Refusal : uint8_t {
  kOffThread,   // Made on a thread other than the session's, outside a load.
  kOutsideJob,  // Made during a load, by no job of it.
  kNestedLoad,  // Made in a load that was begun inside another.
  kStaleJob,    // Made by a job whose load has ended.
};
inline constexpr size_t kRefusalCount = 4;
std::string_view RefusalName(Refusal refusal);
std::optional<Refusal> ParseRefusal(std::string_view text);

// One binding of a dispatch, in binding order. `exact` is false when the bytes are only an upper
// bound of what the kernel touches (written with a trailing `?`), so that a checker can tell
// certain from possible.
struct BufferAccess {
  Access access = Access::kRead;
  BufferId buffer = {};
  ByteRange range = {};
  bool exact = true;
  bool operator==(const BufferAccess&) const = default;
};

// The events, in the terms of docs/trace-format.md. One line of the file each.
struct MetaEvent {
  std::string key = {};
  std::string value = {};
  bool operator==(const MetaEvent&) const = default;
};
struct BufferEvent {
  BufferId buffer = {};
  uint64_t size_bytes = 0;
  BufferKind kind = BufferKind::kOther;
  std::string label = {};   // Empty: none.
  std::string digest = {};  // Of the contents, lower-case hex; empty: none.
  bool operator==(const BufferEvent&) const = default;
};
struct FreeEvent {
  BufferId buffer = {};
  bool operator==(const FreeEvent&) const = default;
};
struct KernelEvent {
  KernelId kernel = {};
  std::string name = {};
  std::string digest = {};  // Of the code and its specialisation, lower-case hex.
  Extent3 workgroup = {};
  std::string spec = {};      // Specialisation as "name=value,..." sorted by name; empty: none.
  uint32_t shared_bytes = 0;  // Static shared memory.
  bool operator==(const KernelEvent&) const = default;
};
struct BeginEvent {
  bool operator==(const BeginEvent&) const = default;
};
struct DispatchEvent {
  KernelId kernel = {};
  Extent3 grid = {};
  uint32_t shared_bytes = 0;  // Dynamic shared memory.
  std::vector<std::byte> args = {};
  std::vector<BufferAccess> accesses = {};
  bool operator==(const DispatchEvent&) const = default;
};
struct BarrierEvent {
  bool operator==(const BarrierEvent&) const = default;
};
struct CommitEvent {
  bool operator==(const CommitEvent&) const = default;
};
struct WaitEvent {
  bool operator==(const WaitEvent&) const = default;
};
struct HostWriteEvent {
  BufferId buffer = {};
  ByteRange range = {};
  bool operator==(const HostWriteEvent&) const = default;
};
struct HostReadEvent {
  BufferId buffer = {};
  ByteRange range = {};
  bool operator==(const HostReadEvent&) const = default;
};
struct RefusedEvent {
  Refusal reason = Refusal::kOffThread;
  uint64_t count = 0;
  bool operator==(const RefusedEvent&) const = default;
};

// Adding an event: src/trace/events.def, then every std::visit fails to compile until it handles
// it.
using Event =
    std::variant<MetaEvent, BufferEvent, FreeEvent, KernelEvent, BeginEvent, DispatchEvent,
                 BarrierEvent, CommitEvent, WaitEvent, HostWriteEvent, HostReadEvent, RefusedEvent>;

// The line of `event` in the file, without the newline.
std::string FormatEvent(const Event& event);
// The reverse. Errors: kFormat, naming the column.
Result<Event> ParseEvent(std::string_view line);

// --- Names
// -----------------------------------------------------------------------------------------------------------

// Gives buffers their deterministic numbers (T3..T8). A buffer is known by `key`, a value unique
// among the buffers alive (an address, a handle): a key that comes again after BufferMade names the
// newer buffer. Thread-safe.
class BufferNamer final : public LoadObserver {
 public:
  // The constructing thread is the session's own.
  explicit BufferNamer(int version = kCurrentVersion);
  ~BufferNamer() override;
  BufferNamer(const BufferNamer&) = delete;
  BufferNamer& operator=(const BufferNamer&) = delete;

  // A slot that holds the number once it is settled: at once outside a load, at the load's end for
  // a buffer made in one.
  class Slot;
  using SlotRef = std::shared_ptr<const Slot>;

  SlotRef Made(uint64_t key);
  // The slot of the buffer alive under `key`; null when there is none.
  SlotRef Find(uint64_t key) const;
  void Freed(uint64_t key);

  // The number, kUnnamedBuffer for a refused buffer, nullopt while its load runs or when its job
  // failed (T5).
  static std::optional<BufferId> NumberOf(const SlotRef& slot);

  uint64_t OnLoadBegin(size_t job_count) override;
  void OnJobBegin(uint64_t load, size_t job) override;
  void OnJobEnd(uint64_t load, size_t job, bool ok) override;
  void OnLoadEnd(uint64_t load) override;

  // Buffers without a place, by reason.
  std::array<uint64_t, kRefusalCount> refusals() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- Writing
// ---------------------------------------------------------------------------------------------------------

struct WriterOptions {
  int version = kCurrentVersion;
  // Facts that are the same on every run; no time, place, thread or machine.
  std::map<std::string, std::string> meta = {};
};

// What a dispatch looks like to the writer: everything borrowed for the call. Buffers are named by
// key.
struct DispatchRecord {
  struct Binding {
    uint64_t buffer_key = 0;
    ByteRange range = {};
    Access access = Access::kRead;
    bool exact = true;
  };
  uint64_t kernel_key = 0;
  Extent3 grid = {};
  uint32_t shared_bytes = 0;
  std::span<const std::byte> args = {};
  std::span<const Binding> bindings = {};
};

struct BufferRecord {
  uint64_t size_bytes = 0;
  BufferKind kind = BufferKind::kOther;
  std::string_view label = {};
  std::string_view digest = {};
};

struct KernelRecord {
  std::string_view name = {};
  std::string_view digest = {};
  Extent3 workgroup = {};
  std::string_view spec = {};
  uint32_t shared_bytes = 0;
};

class Sink;  // src/trace/sink.h

// Writes one trace. The first failure sticks and Close() returns it; the destructor abandons a
// trace that was not closed. The file appears under its name only when Close() succeeds: it is
// written beside it and renamed, so an older file stays whole when the disk fills up. A name that
// ends in `.zst` is compressed on the way. Digesting, compressing and writing are done by a thread
// of the writer's own, which begins when the first block is full.
//
// Threads: every call may come from any thread, but for Close; each open command buffer is used by
// one thread at a time. What is called inside a job of a load is put in job order when the load
// ends, and left out with its job (T5). What the session's own thread (the one that created the
// writer) calls in no job is put where it comes. A call from anywhere else has no deterministic
// place: it leaves no line and counts as refused (T7), as does a use of a buffer that has no name
// when the use is put, which is then written `#?`.
class TraceWriter final {
 public:
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& path,
                                                     const WriterOptions& options);
  // Writes to a string owned by the caller, which must outlive the writer.
  static Result<std::unique_ptr<TraceWriter>> CreateInMemory(std::string* out,
                                                             const WriterOptions& options);
  // Writes to any sink, in blocks of `block_bytes`.
  static Result<std::unique_ptr<TraceWriter>> CreateOver(std::unique_ptr<Sink> sink,
                                                         const WriterOptions& options,
                                                         size_t block_bytes);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // The load scopes; hand it to InOrder.
  LoadObserver* load_observer();

  // A key stands for one buffer from BufferMade to BufferFreed, or to the next BufferMade with it.
  // A key that stands for none is an error that Close() returns.
  void BufferMade(uint64_t key, const BufferRecord& record);
  void BufferFreed(uint64_t key);
  void HostWrite(uint64_t key, ByteRange range);
  void HostRead(uint64_t key, ByteRange range);
  // Declares the pipeline behind `key`. Its line stands before the first command buffer that uses
  // it; pipelines of the same content are one, whoever made them first.
  void KernelMade(uint64_t key, const KernelRecord& record);

  // The events of one command buffer, gathered apart and written together at Commit. One thread.
  // Steps that say nearly the same, as those of a decode do, say it again: Repeat keeps the events
  // of the last commit, and only those that differ are replaced.
  class CommandBuffer {
   public:
    ~CommandBuffer();
    void Dispatch(const DispatchRecord& record);
    void Barrier();

    // Begins again after a commit, with no events.
    void Restart();
    // The same with the events of the last commit where it returns true; false where they cannot be
    // kept, since nothing was committed or a key may stand for something else now.
    bool Repeat();
    // Event `index` of those kept, counted from 0, which is a dispatch, becomes `record`, which has
    // as many bindings and constant bytes.
    void Replace(size_t index, const DispatchRecord& record);
    // Faster, where only the constant bytes from `first` on differ, or the range of one binding;
    // the latter is false, with nothing done, when the new range takes another number of
    // characters.
    void ReplaceArgs(size_t index, size_t first, std::span<const std::byte> bytes);
    bool ReplaceRange(size_t index, size_t binding, ByteRange range);

   private:
    friend class TraceWriter;
    struct State;
    explicit CommandBuffer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  std::unique_ptr<CommandBuffer> BeginCommandBuffer();
  // Writes begin, the events and commit. Afterwards Restart or
  // Repeat begins again. A command buffer that is
  // destroyed without it leaves no line.
  void Commit(CommandBuffer& command_buffer);
  void Wait();

  // Writes the refusals and the end line, and moves the file to its name. Further calls are
  // ignored; a further Close() returns the same. Error kInvalidArgument while a load runs.
  Status Close();

 private:
  struct State;
  explicit TraceWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Replaces the `end` line of the trace at `path`, or adds one where there is none, after checking
// every other line (for cases written by hand). `stop` is ReaderLimits'; the file is then as it
// was.
Status Seal(const std::string& path, const std::function<bool()>& stop = {});

// --- Reading
// ---------------------------------------------------------------------------------------------------------

struct ReaderLimits {
  uint64_t max_line_bytes = 1 << 20;        // A longer line is refused.
  uint64_t max_bytes = uint64_t{64} << 30;  // Of text, after decompression.
  // Asked at the first event and now and then behind it; once it says true, the reading ends with
  // kCancelled. Empty: never.
  std::function<bool()> stop = {};
};

// Reads a trace, plain or `.zst` (told by content), in bounded memory. One thread.
//
// An event is delivered before the digest is known, so what was built from them counts only once
// Next() has returned nullopt: that, and only that, says that the file was whole (T12).
class TraceReader final {
 public:
  static Result<std::unique_ptr<TraceReader>> Open(const std::string& path,
                                                   const ReaderLimits& limits = {});
  // `text` (plain or zstd) must outlive the reader; `name` is used in messages.
  static Result<std::unique_ptr<TraceReader>> FromMemory(std::string_view text, std::string name,
                                                         const ReaderLimits& limits = {});
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  int version() const;
  const std::string& name() const;
  // The next event; nullopt after the last, when count and digest have been checked. Errors:
  // kFormat with the line number (from 1), kUnsupported for another version, kIo. Beyond the
  // grammar it checks that names are declared before use and once, that begin and commit pair, and
  // that accesses have begin <= end.
  Result<std::optional<Event>> Next();
  // Reads all that is left and checks it as Next() does, several times as fast, since it makes no
  // events. It succeeds only where Next() would have returned nullopt in the end, and fails with
  // the error that Next() would have returned, or with kCancelled once `stop`, asked now and then,
  // says so.
  Status CheckRest(const std::function<bool()>& stop = {});
  // The line number of the event last returned, and that line's text, valid until the following
  // Next().
  uint64_t line_number() const;
  std::string_view line() const;
  // The refusals read so far; complete once Next() has returned nullopt.
  const std::vector<RefusedEvent>& refusals() const;

 private:
  struct State;
  explicit TraceReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_H_
