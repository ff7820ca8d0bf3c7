#include "prove/marked_trace.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace assay::prove {
namespace {

Mark MarkOf(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

Result<MarkedTrace> MarkedTrace::Open(const std::string& path) {
  MarkedTrace result;
  ASSAY_ASSIGN_OR_RETURN(result.reader_, trace::TraceReader::Open(path));
  return result;
}

Result<bool> MarkedTrace::Next() {
  ASSAY_ASSIGN_OR_RETURN(event_, reader_->Next());
  if (!event_) return false;
  accesses_.clear();
  text_ = std::visit([this](const auto& event) { return Describe(event); }, *event_);
  return true;
}

Mark MarkedTrace::mark() const { return MarkOf(text_); }

std::string MarkedTrace::KernelName(const trace::DispatchEvent& dispatch) const {
  const auto found = kernel_names_.find(dispatch.kernel);
  return found == kernel_names_.end() ? std::string() : found->second;
}

Mark MarkedTrace::MarkOfBuffer(trace::BufferId id) const {
  const auto found = buffers_.find(id);
  return found == buffers_.end() ? 0 : found->second;
}

std::string MarkedTrace::Describe(const trace::BufferEvent& event) {
  trace::BufferEvent plain = event;
  plain.buffer = {};
  const std::string text = FormatEvent(plain);
  buffers_[event.buffer] = MarkOf(fmt::format("{} {}", text, declared_[text]++));
  return text;
}

std::string MarkedTrace::Describe(const trace::KernelEvent& event) {
  trace::KernelEvent plain = event;
  plain.kernel = {};
  plain.digest.assign(1, '0');
  kernel_names_[event.kernel] = event.name;
  return kernels_[event.kernel] = FormatEvent(plain);
}

std::string MarkedTrace::Describe(const trace::DispatchEvent& event) {
  std::string text = fmt::format("dispatch {} {},{},{} {} ", kernels_[event.kernel], event.grid.x,
                                 event.grid.y, event.grid.z, event.shared_bytes);
  for (const std::byte byte : event.args) text += fmt::format("{:02x}", static_cast<int>(byte));
  for (const trace::BufferAccess& access : event.accesses) {
    const Mark buffer = MarkOfBuffer(access.buffer);
    accesses_.push_back({buffer, access.range, access.access});
    text += fmt::format(" {}{}[{},{}){}", AccessName(access.access), buffer, access.range.begin,
                        access.range.end, access.exact ? "" : "?");
  }
  return text;
}

std::string MarkedTrace::DescribeUse(std::string_view verb, trace::BufferId buffer,
                                     ByteRange range) const {
  return fmt::format("{} {} [{},{})", verb, MarkOfBuffer(buffer), range.begin, range.end);
}

std::string MarkedTrace::Describe(const trace::FreeEvent& event) const {
  return DescribeUse("free", event.buffer, {});
}

std::string MarkedTrace::Describe(const trace::HostWriteEvent& event) const {
  return DescribeUse("write", event.buffer, event.range);
}

std::string MarkedTrace::Describe(const trace::HostReadEvent& event) const {
  return DescribeUse("read", event.buffer, event.range);
}

}  // namespace assay::prove
