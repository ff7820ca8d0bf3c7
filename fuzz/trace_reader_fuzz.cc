// Any bytes as a trace: as the whole file, as the lines of one that ends rightly, and as the line
// of one event. Nothing may crash, what is read must be written back to the same bytes, and reading
// without making events must find the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "assay/trace.h"

#include "support/trace_text.h"

namespace {

using assay::trace::Event;
using assay::trace::ReaderLimits;

ReaderLimits Limits() { return {.max_line_bytes = 1 << 14, .max_bytes = 1 << 20, .stop = {}}; }
// The first bytes of a zstd frame.
constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";

void Require(bool holds) {
  if (!holds) std::abort();
}

// CheckRest, after `before` events read one by one, must end as reading all of them did.
void CheckQuick(std::string_view text, size_t before, const assay::Status& expected,
                const std::vector<assay::trace::RefusedEvent>& refusals) {
  auto reader = assay::trace::TraceReader::FromMemory(text, "fuzz", Limits()).value();
  for (; before > 0; --before) {
    if (const auto event = reader->Next(); !event || !*event) break;
  }
  const assay::Status quick = reader->CheckRest();
  Require(quick.has_value() == expected.has_value());
  if (!quick) Require(quick.error().ToString() == expected.error().ToString());
  if (quick) Require(reader->refusals() == refusals);
}

// Reads `text`; whatever is taken for whole must be the one text of its events.
void CheckText(std::string_view text) {
  auto reader = assay::trace::TraceReader::FromMemory(text, "fuzz", Limits());
  if (!reader) {
    Require(!reader.error().message().empty());
    return;
  }
  const auto events = assay::testing::ReadAll(reader->get());
  const assay::Status expected =
      events ? assay::Status() : assay::Status(assay::Fail(events.error()));
  for (const size_t before : {0, 1, 7}) CheckQuick(text, before, expected, (*reader)->refusals());
  if (!events) {
    Require(!events.error().message().empty());
    return;
  }
  const std::string written = assay::testing::TextOf((*reader)->version(), *events);
  if (text.starts_with(kZstdMagic)) {
    const auto again = assay::testing::ReadAll(written, Limits());
    Require(again.has_value() && *again == *events);
  } else {
    Require(written == text);
  }
}

void CheckLine(std::string_view line) {
  const auto event = assay::trace::ParseEvent(line);
  if (event) Require(assay::trace::FormatEvent(*event) == line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckText(text);
  // A search cannot guess a digest, so the lines get the right one here.
  if (!text.empty() && text.back() == '\n') CheckText(assay::testing::Sealed(text));
  CheckLine(text);
  return 0;
}
