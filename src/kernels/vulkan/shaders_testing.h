// What the tests of shaders share: a device with its operations, operands at any offset, and runs
// that must leave everything beside their outputs as it is.
#ifndef ASSAY_KERNELS_VULKAN_SHADERS_TESTING_H_
#define ASSAY_KERNELS_VULKAN_SHADERS_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/kernels.h"

#include "gpu/backend.h"
#include "kernels/ops_cases.h"
#include "kernels/testing.h"

namespace assay::kernels::testing {

// On one backend.
class Shaders : public ::testing::Test {
 protected:
  void Start(const std::string& name) {
    auto backend = gpu::MakeBackend(name);
    ASSERT_TRUE(backend.has_value()) << backend.error().ToString();
    device_ = gpu::Device::Create(std::move(*backend)).value();
    ops_ = Ops::Create(device_.get()).value();
    session_ = device_->CreateSession().value();
    o_ = std::make_unique<Operands>(device_.get(), 90);
  }

  Matrix Weights(const Encoded& weights, DType type, uint32_t rows, uint32_t cols,
                 uint64_t offset) {
    std::vector<std::byte> bytes = weights.bytes;
    if (ops_->PacksWeights(type)) PackWeights(type, rows, cols, bytes);
    return {o_->Bytes(bytes, offset), type, rows, cols};
  }
  Matrix F32(const std::vector<float>& values, uint32_t cols, uint64_t offset = 4) {
    return {o_->Values(values, offset), DType::kF32, static_cast<uint32_t>(values.size() / cols),
            cols};
  }
  Activations Input(const std::vector<float>& values, uint32_t cols, uint64_t offset = 4) {
    const Matrix x = F32(values, cols, offset);
    return {x.view, ActivationFormat::kF32, x.rows, x.cols};
  }
  Activations OutputOf(uint32_t rows, uint32_t cols) {
    return o_->Output(ActivationFormat::kF32, rows, cols);
  }
  static Matrix AsMatrix(const Activations& x) { return {x.view, DType::kF32, x.rows, x.cols}; }

  // Runs what `encoded` says, and expects that nothing around `written` changes.
  void Run(const Status& encoded, const std::vector<gpu::BufferView>& written) {
    ASSERT_TRUE(encoded.has_value()) << encoded.error().ToString();
    std::vector<std::vector<std::byte>> before;
    for (const gpu::BufferView& view : written) before.push_back(Whole(view));
    ASSERT_TRUE(session_->Commit().has_value());
    const Status done = session_->Wait();
    ASSERT_TRUE(done.has_value()) << done.error().ToString();
    for (size_t i = 0; i < written.size(); ++i) {
      const std::vector<std::byte> after = Whole(written[i]);
      const ByteRange range = written[i].range();
      for (size_t j = 0; j < after.size(); ++j) {
        if (j >= range.begin && j < range.end) continue;
        ASSERT_EQ(after[j], before[i][j]) << "byte " << j << " beside output " << i;
      }
    }
  }
  std::vector<std::byte> Whole(const gpu::BufferView& view) {
    std::vector<std::byte> bytes(view.buffer().size_bytes());
    EXPECT_TRUE(device_->Read(view.buffer().All(), bytes).has_value());
    return bytes;
  }
  template <typename T>
  std::vector<T> Read(const gpu::BufferView& view) {
    std::vector<T> values(view.size_bytes() / sizeof(T));
    EXPECT_TRUE(device_->Read(view, std::as_writable_bytes(std::span(values))).has_value());
    return values;
  }

  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<gpu::Session> session_;
  std::unique_ptr<Operands> o_;
};

}  // namespace assay::kernels::testing

#endif  // ASSAY_KERNELS_VULKAN_SHADERS_TESTING_H_
