#include "tests/conformance/executing_backends.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "gpu/backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ASSAY_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ASSAY_SANITIZED 1
#endif
#endif
#ifdef ASSAY_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Backends that lack a trait, each with its reason.
struct Exclusion {
  std::string_view backend;
  Trait lacks;
  bool applies;
  std::string_view reason;
};
constexpr std::array kExclusions = {
    Exclusion{"null", Trait::kExecutes, true, "runs nothing, so that every buffer stays zero"},
    Exclusion{"vulkan", Trait::kRunsHere, kSanitized,
              "drivers are not instrumented: the sanitizers see memory that a driver hands over, "
              "its threads and what it keeps to the end as faults"},
    Exclusion{"vulkan", Trait::kRunsTogether, true,
              "a driver may run dispatches one after another where nothing orders them, and all "
              "sessions share one queue"},
    Exclusion{"vulkan", Trait::kLimitsBuffers, true,
              "a device may have room for the largest buffer that its driver allows"},
};

}  // namespace

std::vector<std::string> BackendsWith(Trait trait) {
  std::vector<std::string> names = BackendNames();
  for (const Exclusion& exclusion : kExclusions) {
    // Every other trait is one of results.
    const bool asked = exclusion.lacks == trait || exclusion.lacks == Trait::kRunsHere ||
                       (exclusion.lacks == Trait::kExecutes && trait != Trait::kRunsHere);
    if (asked && exclusion.applies) std::erase(names, exclusion.backend);
  }
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
