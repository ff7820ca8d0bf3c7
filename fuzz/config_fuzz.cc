// The readers of assay.toml and of the file of a matrix: whatever the bytes, a value or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "assay/prove.h"
#include "assay/prove_matrix.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = assay::prove::ParseConfig(text, "assay.toml");
  if (!config && config.error().code() != assay::ErrorCode::kFormat) std::abort();
  if (config && (config->record_commands.empty() || config->depths.empty())) std::abort();
  const auto matrix = assay::prove::ParseMatrix(text, "matrix.toml");
  if (!matrix && matrix.error().code() != assay::ErrorCode::kFormat) std::abort();
  if (!matrix) return 0;
  // Every id leads to its own job.
  for (const assay::prove::MatrixJob& job : matrix->jobs) {
    const auto found = assay::prove::FindJob(*matrix, job.id);
    if (!found || found->depth != job.depth || found->model != job.model) std::abort();
    if (matrix->jobs.size() > 100) break;
  }
  return 0;
}
