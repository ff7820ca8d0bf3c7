// Stage: small programs of the engine's own operations, each written once and run with and without
// the edge that its racy twin lacks.
#ifndef ASSAY_TESTS_FAULTS_STAGE_H_
#define ASSAY_TESTS_FAULTS_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/kernels.h"

namespace assay::faults {

// The fences that a program lacks, by their numbers; none by default.
struct Lost {
  uint64_t first = 1;
  uint64_t last = 0;
  // How many barriers stand at each of the others.
  int barriers = 1;
  bool Has(uint64_t fence) const { return first <= fence && fence <= last; }
};
inline constexpr Lost kNothingLost = {};
inline constexpr Lost kAllLost = {1, UINT64_MAX};

// Encodes a program into a session. The first error sticks, and Finish returns it. One thread.
class Stage final {
 public:
  // Errors: those of the device.
  static Result<std::unique_ptr<Stage>> Create(gpu::Device* device, Lost lost,
                                               gpu::BarrierMode mode = gpu::BarrierMode::kManual);

  // An f32 matrix with values that the host writes, the same on every run; they lie around 1.
  kernels::Matrix Input(std::string_view label, uint32_t rows = 1, uint32_t cols = 64);
  // One of zeros.
  kernels::Matrix Room(std::string_view label, uint32_t rows = 1, uint32_t cols = 64);
  // Rows [first, first + count) of it.
  kernels::Matrix Rows(const kernels::Matrix& matrix, uint32_t first, uint32_t count);
  // Bytes of the buffer that `matrix` is all of, as one row.
  kernels::Matrix At(const kernels::Matrix& matrix, uint64_t begin, uint64_t end);

  void Add(const kernels::Matrix& a, const kernels::Matrix& b, const kernels::Matrix& out);
  void Mul(const kernels::Matrix& a, const kernels::Matrix& b, const kernels::Matrix& out);
  void Norm(const kernels::Matrix& x, const kernels::Matrix& out);
  void MatMul(const kernels::Matrix& weights, const kernels::Matrix& x, const kernels::Matrix& out,
              const gpu::BufferView& residual = {});

  // A barrier, unless it is lost. Fences are numbered from 1.
  void Fence();
  // The end of the command buffer, unless it is lost: it counts as a fence.
  void Split();
  // A part of the result.
  void Output(const kernels::Matrix& matrix) { outputs_.push_back(matrix); }

  gpu::Session& session() { return *session_; }

  // Runs what was encoded.
  Status Finish();
  // After Finish: all outputs one after another.
  Result<std::vector<float>> Outputs();

 private:
  Stage(gpu::Device* device, Lost lost, std::unique_ptr<gpu::Session> session,
        std::unique_ptr<kernels::Ops> ops)
      : device_(device), lost_(lost), session_(std::move(session)), ops_(std::move(ops)) {}
  void Note(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }
  kernels::Matrix Make(std::string_view label, uint32_t rows, uint32_t cols);

  gpu::Device* device_;
  Lost lost_;
  uint64_t fences_ = 0;
  std::unique_ptr<gpu::Session> session_;
  std::unique_ptr<kernels::Ops> ops_;
  std::vector<kernels::Matrix> outputs_;
  // Until the end of the stage, as their command buffers need them.
  std::vector<gpu::Buffer> buffers_;
  Status status_;
};

using StageProgram = void (*)(Stage& stage);

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_STAGE_H_
