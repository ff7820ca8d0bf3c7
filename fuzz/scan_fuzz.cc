// The reader of kernel scans: there is one form of every scan, so what it takes are the bytes that
// the writer makes of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "assay/prove.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scan = assay::prove::ParseScan(text, "kernels.scan");
  if (!scan) return 0;
  if (assay::prove::FormatScan(*scan) != text) std::abort();
  const auto same = assay::prove::CompareScans(*scan, *scan);
  const bool identical = same.verdict == assay::compare::Verdict::kIdentical;
  if (identical != scan->failed.empty()) std::abort();
  return 0;
}
