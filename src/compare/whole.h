// Whether traces are whole (T12) and whether two of them are the same bytes, at memory speed: the
// end line's count and digest are checked, and nothing is parsed.
#ifndef ASSAY_COMPARE_WHOLE_H_
#define ASSAY_COMPARE_WHOLE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "assay/base.h"

#include "base/hash.h"
#include "compare/input.h"

namespace assay::compare {

struct WholeFacts {
  int version = 0;
  uint64_t lines = 0;  // Before the end line, the first line included: what the end line counts.
  std::string digest;
  // A line may say that buffers were refused; only reading the lines tells.
  bool maybe_refused = false;
};

// Takes the text of a trace in blocks.
class WholeChecker final {
 public:
  void Feed(std::string_view block);
  // After the last block: the facts, or nullopt when the text is no whole trace.
  std::optional<WholeFacts> Finish();

 private:
  void TakeHead(std::string_view block);
  void Account(std::string_view text, size_t size);

  std::string head_;     // The first bytes of the text.
  std::string pending_;  // The last bytes, not yet counted or digested: the end line is among them.
  uint64_t newlines_ = 0;
  bool maybe_refused_ = false;
  Hasher hasher_;
};

struct BothWhole {
  bool same_bytes = false;
  // nullopt: not whole.
  std::optional<WholeFacts> a, b;
};

// Reads the trace line by line and says why it proves nothing: it cannot be read, is cut short,
// breaks the format, or holds refused buffers. nullopt when it is whole and refuses nothing.
// `dropped`, unless null, ends the reading when it becomes true.
std::optional<std::string> WhyRefused(const Input& input,
                                      const std::atomic<bool>* dropped = nullptr);

// WhyRefused on a thread of its own, beside a comparison of bytes that may make it needless.
// Borrows the input. Used by one thread.
class SideReading final {
 public:
  explicit SideReading(const Input& input) : input_(input) {}
  ~SideReading() { Drop(); }
  SideReading(const SideReading&) = delete;
  SideReading& operator=(const SideReading&) = delete;

  // Begins, unless it has begun.
  void Start();
  // The result is not needed: returns once nothing is read any more.
  void Drop();
  // Of WhyRefused. Reads here when the reading has not begun or has no thread.
  std::optional<std::string> Result();

 private:
  const Input& input_;
  std::atomic<bool> dropped_{false};
  std::optional<std::string> why_;  // Written by the thread.
  std::thread thread_;
};

// `reading_a` is started when the traces begin with the same bytes and there are many of them, and
// dropped at the first difference. Errors: what opening or reading fails with.
Result<BothWhole> CheckBothWhole(const Input& a, const Input& b, SideReading* reading_a);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_WHOLE_H_
