// Base: errors, results, byte ranges, strong ids and the words that the runtime and the trace
// share.
//
// Everything here is a value type without hidden state. Nothing in it touches a device, a file or a
// thread.
#ifndef ASSAY_BASE_H_
#define ASSAY_BASE_H_

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace assay {

// What kind of thing failed. A caller may branch on it; the text is for people.
enum class ErrorCode : uint8_t {
  kInvalidArgument,  // The caller passed a value outside its documented limits.
  kFormat,         // Bytes from outside (model, trace, config) break their format or are cut short.
  kUnsupported,    // Well formed, but this build, backend or version does not handle it.
  kAllocation,     // Memory, on the host or the device, is exhausted.
  kDevice,         // The device was lost or reported a failure of its own.
  kKernelUnknown,  // No kernel of that name is registered.
  kKernelCompile,  // A kernel's code was refused by the backend.
  kCommandBuffer,  // A call that the command buffer's state does not allow.
  kNotFound,       // A named file, tensor, key or buffer does not exist.
  kIo,             // The operating system refused a read or a write.
  kCancelled,      // The user asked to stop.
  kInternal,       // A fault of Assay's own.
};

// "invalid-argument", "format", ...: the stable word for `code`, used in JSON output and in tests.
std::string_view ErrorCodeName(ErrorCode code);

// A failure: its code, the name of what failed (a buffer's label, a kernel, a path; may be empty),
// and a full sentence that gives the value and the limit. While() adds what was being done,
// innermost first.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string subject, std::string message)
      : code_(code), subject_(std::move(subject)), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& subject() const { return subject_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }

  Error&& While(std::string what) && {
    context_.push_back(std::move(what));
    return std::move(*this);
  }

  // Adds a sentence to the message: what else is known, or what to do.
  Error&& Add(std::string_view sentence) && {
    message_.append(" ").append(sentence);
    return std::move(*this);
  }

  // "message - while reading tensor x - while loading model.gguf": one line, without a newline.
  std::string ToString() const;

 private:
  ErrorCode code_;
  std::string subject_;
  std::string message_;
  std::vector<std::string> context_;
};

// A value or an Error. The library throws nothing across its border.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};
using Status = Result<void>;

// Makes the error side of a Result: `return Fail(ErrorCode::kIo, path, "...")`.
inline tl::unexpected<Error> Fail(ErrorCode code, std::string subject, std::string message) {
  return tl::unexpected<Error>(Error(code, std::move(subject), std::move(message)));
}
inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

#define ASSAY_CONCAT_INNER_(a, b) a##b
#define ASSAY_CONCAT_(a, b) ASSAY_CONCAT_INNER_(a, b)

// Returns the error of `expr` from the enclosing function, if it has one.
#define ASSAY_TRY(expr)                                                                 \
  do {                                                                                  \
    auto assay_try_result_ = (expr);                                                    \
    if (!assay_try_result_) return ::assay::Fail(std::move(assay_try_result_).error()); \
  } while (0)

// The same, and says what was being done: ASSAY_TRY_WHILE(Load(f), fmt::format("reading {}",
// path)).
#define ASSAY_TRY_WHILE(expr, what)                                           \
  do {                                                                        \
    auto assay_try_result_ = (expr);                                          \
    if (!assay_try_result_)                                                   \
      return ::assay::Fail(std::move(assay_try_result_).error().While(what)); \
  } while (0)

// Declares or assigns `lhs` from the value of `expr`, or returns its error.
#define ASSAY_ASSIGN_OR_RETURN(lhs, expr) \
  ASSAY_ASSIGN_OR_RETURN_INNER_(ASSAY_CONCAT_(assay_result_, __LINE__), lhs, expr)
#define ASSAY_ASSIGN_OR_RETURN_INNER_(result, lhs, expr)        \
  auto result = (expr);                                         \
  if (!result) return ::assay::Fail(std::move(result).error()); \
  lhs = std::move(*result)

// The one range rule of the program (E4): half-open bytes [begin, end) of one allocation. Touching
// ranges do not overlap; an empty range overlaps nothing, itself included.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  constexpr uint64_t size() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool Overlaps(const ByteRange& other) const {
    return !empty() && !other.empty() && begin < other.end && other.begin < end;
  }
  constexpr bool Contains(const ByteRange& other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  // The shared bytes; empty when there are none.
  constexpr ByteRange Intersect(const ByteRange& other) const {
    const ByteRange both{std::max(begin, other.begin), std::min(end, other.end)};
    return both.empty() ? ByteRange{} : both;
  }
  constexpr auto operator<=>(const ByteRange&) const = default;
};

// How a dispatch, or the host, touches a range.
enum class Access : uint8_t {
  kRead,       // Reads only.
  kWrite,      // Writes only; the old contents are not needed.
  kReadWrite,  // Reads and writes.
};
constexpr bool Reads(Access access) { return access != Access::kWrite; }
constexpr bool Writes(Access access) { return access != Access::kRead; }
// True when two accesses to overlapping bytes must be ordered: at least one of them writes.
constexpr bool Conflicts(Access a, Access b) { return Writes(a) || Writes(b); }

// "r", "w" or "rw".
std::string_view AccessName(Access access);
std::optional<Access> ParseAccess(std::string_view text);

// What a buffer holds; recorded in the trace, and the device may place it accordingly.
enum class BufferKind : uint8_t {
  kWeight,      // Model weights: written once, read for ever.
  kKv,          // Key/value cache.
  kActivation,  // Intermediate results that outlive one dispatch.
  kScratch,     // Work space of one operation.
  kHost,        // Inputs and outputs that the host reads or writes at every step.
  kOther,       // None of these.
};
std::string_view BufferKindName(BufferKind kind);
std::optional<BufferKind> ParseBufferKind(std::string_view text);

// Counts in three dimensions: workgroups of a grid, invocations of a workgroup.
struct Extent3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  constexpr uint64_t Count() const { return uint64_t{x} * y * z; }
  constexpr auto operator<=>(const Extent3&) const = default;
};

// An integer that cannot be mistaken for another: struct KernelTag; using KernelId =
// StrongId<KernelTag>.
template <typename Tag, typename Rep = uint32_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Rep value_ = 0;
};

// Watches parallel loads: the recorder uses it to give buffers that several threads make a place
// that does not depend on the threads (T4). All calls of one load come between its OnLoadBegin and
// OnLoadEnd; OnJobBegin and OnJobEnd come on the thread that runs the job, the other two on the
// thread that called InOrder. Loads may nest or overlap, so every call says which load it means.
class LoadObserver {
 public:
  virtual ~LoadObserver() = default;
  // Returns the value that stands for this load in the other calls.
  virtual uint64_t OnLoadBegin(size_t job_count) = 0;
  virtual void OnJobBegin(uint64_t load, size_t job) = 0;
  // `ok` is false when the job failed or threw.
  virtual void OnJobEnd(uint64_t load, size_t job, bool ok) = 0;
  virtual void OnLoadEnd(uint64_t load) = 0;
};

// Runs jobs 0..job_count-1 on up to `threads` threads (the caller's included), telling `observer`
// (may be null). Every job whose number lies below the lowest failing one has run; higher ones may
// have been skipped. Returns the error of the lowest failing job. An exception that a job throws
// ends the load (T6) and is thrown on to the caller.
Status InOrder(size_t job_count, int threads, LoadObserver* observer,
               const std::function<Status(size_t job)>& run_job);

}  // namespace assay

template <typename Tag, typename Rep>
struct std::hash<assay::StrongId<Tag, Rep>> {
  size_t operator()(const assay::StrongId<Tag, Rep>& id) const {
    return std::hash<Rep>()(id.value());
  }
};

#endif  // ASSAY_BASE_H_
