// The reader of a file of counts: what it takes, it writes and takes again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "prove/counts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto counts = assay::prove::ParseCountsJson(text, "counts.json");
  if (!counts) {
    if (counts.error().code() != assay::ErrorCode::kFormat) std::abort();
    return 0;
  }
  const auto again =
      assay::prove::ParseCountsJson(assay::prove::FormatCountsJson(*counts), "counts.json");
  if (!again || *again != *counts) std::abort();
  return 0;
}
