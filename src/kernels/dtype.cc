#include <array>

#include <fmt/format.h>

#include "assay/kernels.h"

#include "kernels/activations.h"

namespace assay::kernels {
namespace {

struct TypeInfo {
  std::string_view name;
  uint32_t block_size;
  uint32_t block_bytes;
};
constexpr std::array<TypeInfo, 6> kTypes = {{{"F32", 1, 4},
                                             {"F16", 1, 2},
                                             {"BF16", 1, 2},
                                             {"I32", 1, 4},
                                             {"Q8_0", 32, 34},
                                             {"Q4_0", 32, 18}}};

const TypeInfo& Info(DType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

std::string_view DTypeName(DType type) { return Info(type).name; }
uint32_t DTypeBlockSize(DType type) { return Info(type).block_size; }
uint32_t DTypeBlockBytes(DType type) { return Info(type).block_bytes; }

Result<uint64_t> RowBytes(DType type, uint64_t cols) {
  const TypeInfo& info = Info(type);
  if (cols % info.block_size != 0) {
    return Fail(ErrorCode::kInvalidArgument, "cols",
                fmt::format("A row of {} values is not a whole number of {} blocks of {}.", cols,
                            info.name, info.block_size));
  }
  return cols / info.block_size * info.block_bytes;
}

uint64_t ActivationBytes(ActivationFormat format, uint64_t rows, uint64_t cols) {
  return rows * (format == ActivationFormat::kQ8 ? QuantizedRowBytes(cols) : cols * sizeof(float));
}

}  // namespace assay::kernels
