// Small kernels for the tests of the runtime, and short forms of what every test does with them.
#ifndef ASSAY_TESTS_CONFORMANCE_TEST_KERNELS_H_
#define ASSAY_TESTS_CONFORMANCE_TEST_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"

namespace assay::gpu::testing {

// Elements of float32 that one workgroup of "add" and "mul" handles.
inline constexpr uint32_t kWorkgroupElements = 64;

// Adds to the device's registry, each for the cpu and as SPIR-V:
//   add, mul   out[i] = a[i] op b[i] over float32; bindings a (r), b (r), out (w).
//   add_mul    out[i] = (a[i] + b[i]) * c[i], each rounded; bindings a, b, c (r), out (w).
//   bump       x[i] += 1 over uint32; binding x (rw).
//   meet       Adds 1 to the uint32 at the start of binding 0 (rw) and returns when it has reached
//              `constants`, so that only that many workgroups running at once get past it.
//   hold       Waits until the uint32 at the start of binding 0 (rw) is not 0, then writes 1 to
//   that
//              of binding 1 (w).
//   peek       Copies the uint32 of binding 0 (r) to binding 1 (w), then sets that of binding 2
//   (rw)
//              to 1.
//   nothing    No bindings, no constants, no effect.
//   group_sum  Each workgroup copies `kWorkgroupElements` floats into shared memory and writes
//   their
//              sum; bindings x (r), sums (w).
void RegisterTestKernels(Device& device);

// "add" and the "mul" that reads its result as the first factor, as "add_mul"; it takes no results
// of more than 1 MiB.
std::span<const FusionRule> AddMulRule();

// The id of a kernel that must exist.
KernelId Kernel(Device& device, std::string_view name);

// A buffer that must be made; its view of everything.
Buffer MakeBuffer(Device& device, uint64_t size_bytes, std::string label = "test");
BufferView View(const Buffer& buffer, uint64_t offset, uint64_t length);

// A dispatch together with what it borrows.
class TestDispatch {
 public:
  TestDispatch(KernelId kernel, std::vector<Binding> bindings, uint32_t workgroups,
               std::vector<std::byte> constants = {}, uint32_t shared_bytes = 0)
      : bindings_(std::move(bindings)), constants_(std::move(constants)) {
    dispatch_.kernel = kernel;
    dispatch_.grid = {workgroups, 1, 1};
    dispatch_.shared_bytes = shared_bytes;
  }
  Dispatch get() const {
    Dispatch dispatch = dispatch_;
    dispatch.bindings = bindings_;
    dispatch.constants = constants_;
    return dispatch;
  }
  std::vector<Binding>& bindings() { return bindings_; }
  Dispatch& fields() { return dispatch_; }

 private:
  std::vector<Binding> bindings_;
  std::vector<std::byte> constants_;
  Dispatch dispatch_;
};

// out = a op b over all elements of `out`.
TestDispatch Elementwise(Device& device, std::string_view kernel, const BufferView& a,
                         const BufferView& b, const BufferView& out);
TestDispatch Bump(Device& device, const BufferView& x);
// Returns only once `count` workgroups of "meet" with this counter run at the same time.
TestDispatch Meet(Device& device, const BufferView& counter, uint32_t count);

std::vector<std::byte> Bytes(uint32_t value);

// Host copies of float32 and uint32 buffers; failure is a test failure.
void WriteFloats(Device& device, const BufferView& view, std::span<const float> values);
std::vector<float> ReadFloats(Device& device, const BufferView& view);
std::vector<uint32_t> ReadWords(Device& device, const BufferView& view);

}  // namespace assay::gpu::testing

#endif  // ASSAY_TESTS_CONFORMANCE_TEST_KERNELS_H_
