#include "tests/conformance/executing_backends.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "gpu/backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu::testing {
namespace {

// Backends for which a check of results says nothing, each with its reason.
struct Exclusion {
  std::string_view backend;
  std::string_view reason;
};
constexpr std::array kExclusions = {
    Exclusion{"null", "runs nothing, so that every buffer stays zero"},
};

}  // namespace

std::vector<std::string> ExecutingBackends() {
  std::vector<std::string> names = BackendNames();
  for (const Exclusion& exclusion : kExclusions) std::erase(names, exclusion.backend);
  return names;
}

std::unique_ptr<Device> MakeDevice(const std::string& backend, const BackendOptions& options,
                                   const DeviceOptions& device_options) {
  auto made = MakeBackend(backend, options);
  EXPECT_TRUE(made) << made.error().ToString();
  if (!made) return nullptr;
  return MakeDevice(*std::move(made), device_options);
}

std::unique_ptr<Device> MakeDevice(std::unique_ptr<Backend> backend,
                                   const DeviceOptions& device_options) {
  auto device = Device::Create(std::move(backend), device_options);
  EXPECT_TRUE(device) << device.error().ToString();
  if (!device) return nullptr;
  RegisterTestKernels(**device);
  return *std::move(device);
}

}  // namespace assay::gpu::testing
