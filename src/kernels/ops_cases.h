// One small call of every operation, on views inside larger buffers, for tests that hold for all of
// them: declared access, any number of threads.
#ifndef ASSAY_KERNELS_OPS_CASES_H_
#define ASSAY_KERNELS_OPS_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "assay/gpu.h"
#include "assay/kernels.h"

#include "kernels/testing.h"

namespace assay::kernels::testing {

// Makes the operands of a case: each a view with a margin on both sides in a buffer of its own,
// filled with valid values. The margins are all ones.
class Operands {
 public:
  static constexpr uint64_t kMargin = 192;

  Operands(gpu::Device* device, uint64_t seed) : device_(device), random_(seed) {}

  gpu::BufferView Bytes(const std::vector<std::byte>& bytes, uint64_t offset = 4);
  template <typename T>
  gpu::BufferView Values(const std::vector<T>& values, uint64_t offset = 4) {
    const auto* begin = reinterpret_cast<const std::byte*>(values.data());
    return Bytes({begin, begin + values.size() * sizeof(T)}, offset);
  }
  // An f32 matrix of random values.
  Matrix F32(uint32_t rows, uint32_t cols);
  // A weight matrix in the device's layout, aligned to 2 bytes alone.
  Matrix Weights(DType type, uint32_t rows, uint32_t cols);
  // A cache whose values are of `type`.
  Matrix Cache(DType type, uint32_t rows, uint32_t cols);
  Activations Input(ActivationFormat format, uint32_t rows, uint32_t cols);
  // An output, filled with garbage.
  Activations Output(ActivationFormat format, uint32_t rows, uint32_t cols);
  gpu::BufferView Garbage(uint64_t bytes);
  // Garbage and zeros; nothing where `bytes` says so.
  AttentionRoom Room(const AttentionRoomBytes& bytes);
  std::vector<int32_t> Ids(uint32_t count, uint32_t limit);

  const std::vector<gpu::Buffer>& buffers() const { return buffers_; }

 private:
  gpu::Device* device_;
  Random random_;
  std::vector<gpu::Buffer> buffers_;
};

struct OpCase {
  std::string name;
  // Encodes the op once.
  std::function<Status(Ops& ops, gpu::Session& session, Operands& operands)> encode;
};

// Every operation in every form that has code of its own.
std::vector<OpCase> AllOpCases();

}  // namespace assay::kernels::testing

#endif  // ASSAY_KERNELS_OPS_CASES_H_
