// Which backends the conformance suite runs on.
#ifndef ASSAY_TESTS_CONFORMANCE_EXECUTING_BACKENDS_H_
#define ASSAY_TESTS_CONFORMANCE_EXECUTING_BACKENDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"

namespace assay::gpu::testing {

// What a test needs of a backend.
enum class Trait : uint8_t {
  kRunsHere,       // Works in this kind of build.
  kExecutes,       // Results can be checked.
  kRunsTogether,   // Dispatches that nothing orders, and command buffers of two sessions, make
                   // progress at the same time.
  kLimitsBuffers,  // A buffer of the largest size that it names is more than there is.
};

// Those of BackendNames() that have the trait, and run here, by the exclusions in the .cc file.
std::vector<std::string> BackendsWith(Trait trait);
inline std::vector<std::string> RunnableBackends() { return BackendsWith(Trait::kRunsHere); }
inline std::vector<std::string> ExecutingBackends() { return BackendsWith(Trait::kExecutes); }

// A device with the test kernels; failure is a test failure.
std::unique_ptr<Device> MakeDevice(const std::string& backend, const BackendOptions& options = {},
                                   const DeviceOptions& device_options = {});

// The same over a backend that the test has made.
std::unique_ptr<Device> MakeDevice(std::unique_ptr<Backend> backend,
                                   const DeviceOptions& device_options = {});

inline std::string BackendTestName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace assay::gpu::testing

#endif  // ASSAY_TESTS_CONFORMANCE_EXECUTING_BACKENDS_H_
