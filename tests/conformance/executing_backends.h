// Which backends the conformance suite runs on.
#ifndef ASSAY_TESTS_CONFORMANCE_EXECUTING_BACKENDS_H_
#define ASSAY_TESTS_CONFORMANCE_EXECUTING_BACKENDS_H_

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"

namespace assay::gpu::testing {

// Those of BackendNames() whose results can be checked, by the exclusions in the .cc file.
std::vector<std::string> ExecutingBackends();

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
