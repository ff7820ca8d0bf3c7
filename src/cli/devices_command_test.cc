#include "cli/devices_command.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "assay/gpu.h"
#include "assay/gpu_devices.h"

#include "cli/commands.h"
#include "cli/runner.h"
#include "tests/conformance/executing_backends.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;

class DevicesCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::testing::VariantsOf("vulkan").empty()) return;
    // Where drivers are excluded the loader finds none.
    for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
      setenv(name, "/nonexistent/driver.json", 1);
    }
  }

  int Run(std::vector<std::string> words) {
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = &signal_});
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }

  std::atomic<int> signal_{0};

 private:
  std::unique_ptr<StringOutput> out_;
  std::unique_ptr<StringOutput> err_;
};

TEST_F(DevicesCommandTest, EveryBackendIsListedWithItsLimits) {
  ASSERT_EQ(Run({"devices", "--json"}), 0) << err();
  const nlohmann::json listing = nlohmann::json::parse(out());
  std::vector<std::string> backends;
  for (const nlohmann::json& device : listing["devices"]) {
    if (backends.empty() || backends.back() != device["backend"]) {
      backends.push_back(device["backend"]);
      EXPECT_EQ(device["number"], 0);
    }
    EXPECT_GT(device["max_buffer_bytes"], 0U) << device;
    EXPECT_GT(device["max_binding_bytes"], 0U) << device;
    EXPECT_EQ(device["code_format"], device["backend"] == "vulkan" ? "spirv" : "cpu");
    EXPECT_EQ(device["threads"].is_null(), device["backend"] != "cpu") << device;
    EXPECT_EQ(device["subgroup_size"].is_null(), device["backend"] != "vulkan") << device;
    EXPECT_EQ(device["memory_bytes"].is_null(), device["backend"] == "null") << device;
  }
  if (!gpu::testing::VariantsOf("vulkan").empty()) {
    EXPECT_EQ(std::ranges::count(backends, "vulkan"), 1) << "no driver is no excuse here";
  }
  for (const nlohmann::json& missing : listing["missing"]) backends.push_back(missing["backend"]);
  EXPECT_THAT(backends, ::testing::UnorderedElementsAreArray(gpu::BackendNames()));
}

TEST_F(DevicesCommandTest, TheTextShowsWhatTheOtherCommandsTake) {
  ASSERT_EQ(Run({"devices"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("cpu 0: cpu ("));
  EXPECT_THAT(out(), HasSubstr("null 0: null (runs nothing)\n"));
  EXPECT_THAT(out(), HasSubstr("vulkan"));
}

TEST_F(DevicesCommandTest, AStopSignalEndsIt) {
  signal_ = SIGINT;
  EXPECT_EQ(Run({"devices"}), 130);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), "assay devices: error: Stopped before every backend was asked.\n");
}

TEST_F(DevicesCommandTest, EveryCommandRefusesADepthThatIsNamedTwice) {
  for (const char* command : {"perturb", "mutate", "bench"}) {
    EXPECT_EQ(Run({command, "--depth", "3,0,3"}), 64) << command;
    EXPECT_THAT(err(), HasSubstr("--depth names 3 twice; name each once."));
  }
}

TEST_F(DevicesCommandTest, AnArgumentTooManyIsAUsageError) {
  EXPECT_EQ(Run({"devices", "all"}), 64);
}

TEST_F(DevicesCommandTest, FlagsOfTheVulkanBackendAreRefusedWithAnother) {
  EXPECT_EQ(Run({"run", "-p", "a", "--device", "0"}), 64);
  EXPECT_THAT(err(), HasSubstr("--device is of the backend vulkan, and the backend is cpu"));
  EXPECT_EQ(Run({"run", "-p", "a", "--kernels", "source"}), 64);
  EXPECT_THAT(err(), HasSubstr("--kernels source is of the backend vulkan"));
  EXPECT_EQ(Run({"mutate", "--device", "0"}), 64);
  EXPECT_THAT(err(), HasSubstr("--device is of the backend vulkan, and the backend is cpu"));
  EXPECT_EQ(Run({"run", "-p", "a", "--kernels", "spirv"}), 64);
  EXPECT_THAT(err(), HasSubstr("--kernels spirv is of the backend vulkan"));
  EXPECT_EQ(Run({"bench", "--vulkan-disable", "float16"}), 64);
  EXPECT_THAT(err(), HasSubstr("--vulkan-disable is of the backend vulkan"));
  EXPECT_EQ(Run({"run", "-p", "a", "--cooperative-matrix"}), 64);
  EXPECT_THAT(err(), HasSubstr("--cooperative-matrix is of the backend vulkan"));
}

TEST_F(DevicesCommandTest, E12_CooperativeMatricesThatTheDeviceLacksAreRefused) {
  if (!gpu::ListDevices("vulkan")) return;
  EXPECT_EQ(Run({"run", "-p", "a", "--backend", "vulkan", "--cooperative-matrix",
                 "--vulkan-disable", "cooperative-matrix"}),
            2);
  EXPECT_THAT(err(), HasSubstr("the backend vulkan does not use the optional path "
                               "\"cooperative-matrix\" on the device \""));
}

TEST_F(DevicesCommandTest, AnUnknownDeviceOrPathIsNamedWithWhatThereIs) {
  const std::vector<std::string> vulkan = {"run", "-p", "a", "--backend", "vulkan"};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> words = vulkan;
    words.push_back(flag);
    words.push_back(value);
    return Run(words);
  };
  EXPECT_EQ(with("--vulkan-disable", "int8,float17"), 64);
  EXPECT_THAT(err(), HasSubstr("is called \"float17\"; did you mean \"float16\"?"));
  EXPECT_EQ(with("--vulkan-disable", "tea"), 64);
  EXPECT_THAT(err(), HasSubstr("\"tea\"; the known ones are: push-descriptors"));
  for (const char* const empty : {",", "int8,", ",int8", "int8,,float16"}) {
    EXPECT_EQ(with("--vulkan-disable", empty), 64) << empty;
    EXPECT_THAT(err(), HasSubstr(std::string("--vulkan-disable \"") + empty +
                                 "\" has an empty name; put one comma between two names"));
  }
  EXPECT_EQ(with("--device", "  "), 64);
  EXPECT_THAT(err(), HasSubstr("--device \"  \" names nothing"));
}

}  // namespace
}  // namespace assay::cli
