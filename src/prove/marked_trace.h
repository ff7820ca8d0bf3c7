// A trace whose events carry marks: equal marks in two traces stand for the same event, whatever
// numbers its names have.
#ifndef ASSAY_PROVE_MARKED_TRACE_H_
#define ASSAY_PROVE_MARKED_TRACE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/trace.h"

#include "prove/order_check.h"

namespace assay::prove {

// In a mark a buffer is the n-th one declared so, and a kernel is its name, workgroup and
// specialisation, whatever its code. One thread.
class MarkedTrace final {
 public:
  static Result<MarkedTrace> Open(const std::string& path);

  // False at the end.
  Result<bool> Next();
  uint64_t line() const { return reader_->line_number(); }
  std::string_view text() const { return reader_->line(); }
  const trace::Event& event() const { return *event_; }
  Mark mark() const;
  // Of a dispatch.
  const std::vector<MarkedAccess>& accesses() const { return accesses_; }
  std::string KernelName(const trace::DispatchEvent& dispatch) const;

 private:
  Mark MarkOfBuffer(trace::BufferId id) const;
  std::string Describe(const trace::BufferEvent& event);
  std::string Describe(const trace::KernelEvent& event);
  std::string Describe(const trace::DispatchEvent& event);
  std::string Describe(const trace::FreeEvent& event) const;
  std::string Describe(const trace::HostWriteEvent& event) const;
  std::string Describe(const trace::HostReadEvent& event) const;
  template <typename Other>
  std::string Describe(const Other& event) const {
    return FormatEvent(event);
  }
  std::string DescribeUse(std::string_view verb, trace::BufferId buffer, ByteRange range) const;

  std::unique_ptr<trace::TraceReader> reader_;
  std::optional<trace::Event> event_;
  std::string text_;
  std::vector<MarkedAccess> accesses_;
  std::map<std::string, uint64_t> declared_;
  std::unordered_map<trace::BufferId, Mark> buffers_;
  std::unordered_map<trace::KernelId, std::string> kernels_, kernel_names_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_MARKED_TRACE_H_
