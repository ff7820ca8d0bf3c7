// Which backends the conformance suite runs on, and by which of their optional paths.
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

// The variants, by the table in the .cc file, of the backends that have the trait and run here: the
// name of a backend ("cpu"), or of one with some of its optional paths turned off
// ("vulkan_fences").
std::vector<std::string> BackendsWith(Trait trait);
inline std::vector<std::string> RunnableBackends() { return BackendsWith(Trait::kRunsHere); }
inline std::vector<std::string> ExecutingBackends() { return BackendsWith(Trait::kExecutes); }
// The names of BackendNames() that execute, for tests that need no variant; and those of them whose
// kernels are SPIR-V, which are none under a sanitizer.
std::vector<std::string> PlainBackends();
std::vector<std::string> SpirvBackends();

// Those that are of `backend`; none where it does not run.
std::vector<std::string> VariantsOf(std::string_view backend);

// `options` as the variant asks for.
BackendOptions OptionsOf(const std::string& variant, BackendOptions options = {});

// gpu::MakeBackend for a variant.
Result<std::unique_ptr<Backend>> MakeVariant(const std::string& variant,
                                             const BackendOptions& options = {});

// A device with the test kernels; failure is a test failure.
std::unique_ptr<Device> MakeDevice(const std::string& variant, const BackendOptions& options = {},
                                   const DeviceOptions& device_options = {});

// The same over a backend that the test has made.
std::unique_ptr<Device> MakeDevice(std::unique_ptr<Backend> backend,
                                   const DeviceOptions& device_options = {});

inline std::string BackendTestName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace assay::gpu::testing

#endif  // ASSAY_TESTS_CONFORMANCE_EXECUTING_BACKENDS_H_
