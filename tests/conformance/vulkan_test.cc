// What is particular to the vulkan backend: limits, shaders, devices, drivers that are not there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_devices.h"

#include "gpu/backend.h"
#include "gpu/vulkan/instance.h"
#include "gpu/vulkan/physical_device.h"
#include "gpu/vulkan/spirv_kernel.h"
#include "support/temp_folder.h"
#include "test_shaders/kBumpShader.h"
#include "test_shaders/kHalveShader.h"
#include "test_shaders/kScaleShader.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Bump;
using testing::MakeBuffer;
using testing::TestDispatch;
using testing::View;

class VulkanTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { device_ = testing::MakeDevice(GetParam()); }

  // A kernel of one binding made of `shader`; everything passed must outlive the test's device.
  Result<KernelId> Add(std::string_view name, const SpirvKernel& shader,
                       Extent3 workgroup = {testing::kWorkgroupElements, 1, 1},
                       uint32_t constant_bytes = 0, uint32_t bindings = 1) {
    codes_.push_back(
        std::make_unique<KernelCode>(KernelCode{kSpirvCodeFormat, &shader, sizeof(SpirvKernel)}));
    ASSAY_TRY(device_->kernels().Add({.name = name,
                                      .workgroup = workgroup,
                                      .binding_count = bindings,
                                      .constant_bytes = constant_bytes,
                                      .source_digest = "7e57",
                                      .code = std::span(codes_.back().get(), 1)}));
    return device_->kernels().Get(name);
  }

  std::vector<std::unique_ptr<KernelCode>> codes_;
  std::unique_ptr<Device> device_;
};
INSTANTIATE_TEST_SUITE_P(Variants, VulkanTest, ::testing::ValuesIn(testing::VariantsOf("vulkan")),
                         testing::BackendTestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanTest);

TEST_P(VulkanTest, E4_ViewsMayBeginAtAnyWord) {
  constexpr uint64_t kWords = 80;
  const Buffer buffer = MakeBuffer(*device_, kWords * 4 + 3);
  const auto session = device_->CreateSession().value();
  std::vector<uint32_t> wanted(kWords);
  for (uint64_t first = 0; first < 40; ++first) {
    ASSERT_THAT(session->Dispatch(Bump(*device_, View(buffer, first * 4, 33 * 4)).get()),
                Succeeds());
    for (uint64_t i = first; i < first + 33; ++i) ++wanted[i];
  }
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device_, View(buffer, 0, kWords * 4)), wanted);
}

TEST_P(VulkanTest, ABindingOverTheLimitIsRefusedWithBothNumbers) {
  const uint64_t limit = device_->info().max_binding_bytes;
  // A GPU's limit is near 4 GiB; the buffer has to be made.
  if (limit + 64 > device_->info().max_buffer_bytes) return;
  const Buffer buffer = MakeBuffer(*device_, limit + 64);
  const auto session = device_->CreateSession().value();
  EXPECT_THAT(
      session->Dispatch(Bump(*device_, View(buffer, 0, limit + 4)).get()),
      FailsWith(ErrorCode::kInvalidArgument, std::to_string(limit + 4) + " bytes) of kernel"));
  // What rounding adds counts as well.
  TestDispatch bump = Bump(*device_, View(buffer, 4, limit));
  bump.fields().grid = {1, 1, 1};
  const Status rounded = session->Dispatch(bump.get());
  EXPECT_THAT(rounded, FailsWith(ErrorCode::kUnsupported, std::to_string(limit + 4)));
  EXPECT_THAT(rounded, FailsWith(ErrorCode::kUnsupported, "limit (" + std::to_string(limit)));
}

TEST_P(VulkanTest, ABufferOverTheLimitIsRefusedWithBothNumbers) {
  const uint64_t limit = device_->info().max_buffer_bytes;
  const auto made = device_->CreateBuffer({.size_bytes = limit + 1, .label = "all", .digest = {}});
  EXPECT_THAT(made, FailsWith(ErrorCode::kUnsupported, std::to_string(limit + 1)));
  EXPECT_THAT(made, FailsWith(ErrorCode::kUnsupported, std::to_string(limit) + " bytes)"));
}

TEST_P(VulkanTest, AGridOverTheLimitIsRefused) {
  const Buffer buffer = MakeBuffer(*device_, 256);
  TestDispatch bump = Bump(*device_, buffer.All());
  bump.fields().grid = {1, 65536, 1};
  EXPECT_THAT(device_->CreateSession().value()->Dispatch(bump.get()),
              FailsWith(ErrorCode::kUnsupported, "The grid (1, 65536, 1) of kernel \"bump\""));
}

TEST_P(VulkanTest, HostMemoryCannotBeImported) {
  const std::vector<std::byte> bytes(64);
  EXPECT_THAT(device_->ImportHostMemory({.size_bytes = 64, .label = "file", .digest = {}}, bytes),
              FailsWith(ErrorCode::kUnsupported, "\"file\""));
}

TEST_P(VulkanTest, SpecializationConstantsReachTheShaderAndTheDigest) {
  static constexpr std::array<uint32_t, 1> kThree = {3};
  SpirvKernel shader = testing::kScaleShader;
  shader.specialization = kThree;
  const KernelId scale = Add("scale", shader).value();
  const Buffer buffer = MakeBuffer(*device_, 12);
  const std::vector<uint32_t> words = {1, 5, 7};
  ASSERT_THAT(device_->Write(buffer.All(), std::as_bytes(std::span(words))), Succeeds());
  const auto session = device_->CreateSession().value();
  ASSERT_THAT(session->Dispatch(TestDispatch(scale, {{buffer.All(), Access::kReadWrite}}, 1).get()),
              Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device_, buffer.All()), (std::vector<uint32_t>{3, 15, 21}));

  const auto backend = testing::MakeVariant(GetParam()).value();
  const auto digest = [&](const SpirvKernel& code) {
    const KernelCode entry{kSpirvCodeFormat, &code, sizeof(code)};
    return backend
        ->CreateKernel({.name = "scale",
                        .workgroup = {testing::kWorkgroupElements, 1, 1},
                        .binding_count = 1,
                        .source_digest = "7e57",
                        .code = std::span(&entry, 1)})
        .value()
        ->info()
        .digest;
  };
  EXPECT_EQ(digest(shader), digest(shader));
  EXPECT_NE(digest(shader), digest(testing::kScaleShader));
  EXPECT_NE(digest(shader), digest(testing::kBumpShader));
}

TEST_P(VulkanTest, AShaderThatTheDeviceCannotRunIsRefused) {
  const bool half =
      std::ranges::find(device_->info().features, "float16") != device_->info().features.end();
  const Result<KernelId> halve = Add("halve", testing::kHalveShader);
  if (half) {
    EXPECT_THAT(halve, Succeeds());
  } else {
    EXPECT_THAT(
        halve, FailsWith(ErrorCode::kUnsupported,
                         "the SPIR-V capability Float16, for which the optional path \"float16\""));
  }
  EXPECT_THAT(
      Add("wide", testing::kBumpShader, {32, 1, 1}),
      FailsWith(ErrorCode::kKernelCompile, "has workgroups of (64, 1, 1), not of (32, 1, 1)"));
  const uint32_t most = device_->info().max_constant_bytes;
  EXPECT_THAT(Add("heavy", testing::kBumpShader, {64, 1, 1}, most),
              FailsWith(ErrorCode::kUnsupported,
                        "bytes of push constants (" + std::to_string(most + 4) + ")"));
}

TEST_P(VulkanTest, BrokenCodeIsRefused) {
  const bool from_source = testing::OptionsOf(GetParam()).vulkan.kernels_from_source;
  SpirvKernel broken = testing::kBumpShader;
  if (from_source) {
    broken.source = "#version 460\nvoid main() { not glsl }\n";
    EXPECT_THAT(Add("broken", broken), FailsWith(ErrorCode::kKernelCompile, "broken:2: error"));
    SpirvKernel lost = testing::kBumpShader;
    lost.includes = {};
    EXPECT_THAT(Add("lost", lost),
                FailsWith(ErrorCode::kKernelCompile,
                          "no embedded file is called \"tests/conformance/shaders/views.glsl\""));
    return;
  }
  const std::vector<uint32_t> text(8, 0x6c67736c);
  broken.words = text;
  EXPECT_THAT(Add("broken", broken), FailsWith(ErrorCode::kKernelCompile, "is not a module"));
  SpirvKernel cut = testing::kBumpShader;
  cut.words = cut.words.first(6);
  EXPECT_THAT(Add("cut", cut), FailsWith(ErrorCode::kKernelCompile, "is cut short"));
}

// --- Devices

class VulkanDevicesTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Variants, VulkanDevicesTest,
                         ::testing::ValuesIn(testing::VariantsOf("vulkan")),
                         testing::BackendTestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanDevicesTest);

TEST_P(VulkanDevicesTest, ADeviceIsChosenByNumberOrName) {
  const std::vector<DeviceListing> devices = ListDevices("vulkan").value();
  ASSERT_FALSE(devices.empty());
  BackendOptions options = testing::OptionsOf(GetParam());
  for (const DeviceListing& device : devices) {
    options.vulkan.device = std::to_string(device.number);
    EXPECT_EQ(MakeBackend("vulkan", options).value()->info().name, device.info.name);
  }
  std::string part = devices[0].info.name.substr(1, 3);
  for (char& c : part) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  options.vulkan.device = part;
  EXPECT_EQ(MakeBackend("vulkan", options).value()->info().name, devices[0].info.name);
  // The name as it is shown, with the driver.
  options.vulkan.device = devices[0].info.name;
  EXPECT_EQ(MakeBackend("vulkan", options).value()->info().name, devices[0].info.name);
  // As `assay devices` begins its line, alone or with the name.
  options.vulkan.device = "vulkan " + std::to_string(devices.back().number);
  EXPECT_EQ(MakeBackend("vulkan", options).value()->info().name, devices.back().info.name);
  options.vulkan.device += ": " + devices.back().info.name;
  EXPECT_EQ(MakeBackend("vulkan", options).value()->info().name, devices.back().info.name);
  options.vulkan.device = "vulkan 0: another";
  EXPECT_THAT(MakeBackend("vulkan", options),
              FailsWith(ErrorCode::kNotFound, "a name with \"vulkan 0: another\"; there are: 0"));
  options.vulkan.device = "vulkan " + std::to_string(devices.size());
  EXPECT_THAT(MakeBackend("vulkan", options),
              FailsWith(ErrorCode::kNotFound,
                        "the number " + std::to_string(devices.size()) + "; there are: 0"));
  options.vulkan.device = "no such device";
  EXPECT_THAT(MakeBackend("vulkan", options), FailsWith(ErrorCode::kNotFound, "there are: 0 \""));
  options.vulkan.device = std::to_string(devices.size());
  EXPECT_THAT(MakeBackend("vulkan", options), FailsWith(ErrorCode::kNotFound, "there are: 0 \""));
}

TEST_P(VulkanDevicesTest, TheDriverSaysWhatMemoryThereIs) {
  const auto instance = vulkan::Instance::Create(nullptr).value();
  const auto listed = ListDevices("vulkan").value();
  const auto devices = vulkan::FindDevices(*instance).value();
  ASSERT_EQ(devices.size(), listed.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceMemory memory = vulkan::DriverMemory(*instance, devices[i]);
    EXPECT_GT(memory.total_bytes, 0U);
    EXPECT_EQ(memory.total_bytes, listed[i].memory_bytes);
    EXPECT_EQ(memory.free_bytes.has_value(), devices[i].memory_budget);
    EXPECT_LE(memory.free_bytes.value_or(0), memory.total_bytes);
  }
  const DeviceMemory used = MakeBackend("vulkan", testing::OptionsOf(GetParam())).value()->memory();
  EXPECT_GT(used.total_bytes, 0U);
  // The processor's memory is what the system promises.
  EXPECT_EQ(used.overcommits, listed[0].type == "cpu");
}

TEST_P(VulkanDevicesTest, WhatIsTurnedOffIsNotInUse) {
  const BackendOptions options = testing::OptionsOf(GetParam());
  const DeviceInfo info = MakeBackend("vulkan", options).value()->info();
  for (const std::string& disabled : options.vulkan.disabled) {
    EXPECT_EQ(std::ranges::count(info.features, disabled), 0) << disabled;
  }
}

TEST_P(VulkanDevicesTest, E1_ADeviceWithMemoryOfItsOwnOverlapsEncoding) {
  const DeviceInfo info = MakeBackend("vulkan", testing::OptionsOf(GetParam())).value()->info();
  EXPECT_EQ(info.overlaps_encoding, std::ranges::count(info.features, "unified-memory") == 0);
}

// Sets a variable of the environment while it lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_P(VulkanDevicesTest, WithoutADriverTheErrorNamesTheVariableThatHidesThem) {
  const ScopedVariable old_name("VK_ICD_FILENAMES", "/nonexistent/old.json");
  EXPECT_THAT(MakeBackend("vulkan", testing::OptionsOf(GetParam())),
              FailsWith(ErrorCode::kDevice,
                        "\"/nonexistent/old.json\" alone, since the variable "
                        "VK_ICD_FILENAMES says so"));
  const ScopedVariable name("VK_DRIVER_FILES", "/nonexistent/new.json");
  const std::string part = "\"/nonexistent/new.json\" alone, since the variable VK_DRIVER_FILES";
  EXPECT_THAT(MakeBackend("vulkan", testing::OptionsOf(GetParam())),
              FailsWith(ErrorCode::kDevice, part));
  EXPECT_THAT(ListDevices("vulkan"), FailsWith(ErrorCode::kDevice, part));
}

TEST_P(VulkanDevicesTest, EachVariableThatHidesDriversIsNamedWithItsValue) {
  const BackendOptions options = testing::OptionsOf(GetParam());
  {
    const ScopedVariable disable("VK_LOADER_DRIVERS_DISABLE", "*.json");
    const std::string part =
        "leaves out the drivers whose .json file matches \"*.json\", since the variable "
        "VK_LOADER_DRIVERS_DISABLE says so: unset it";
    EXPECT_THAT(MakeBackend("vulkan", options), FailsWith(ErrorCode::kDevice, part));
    EXPECT_THAT(ListDevices("vulkan"), FailsWith(ErrorCode::kDevice, part));
    const ScopedVariable files("VK_DRIVER_FILES", "/nonexistent/new.json");
    EXPECT_THAT(MakeBackend("vulkan", options), FailsWith(ErrorCode::kDevice, part));
    EXPECT_THAT(MakeBackend("vulkan", options),
                FailsWith(ErrorCode::kDevice, "the variable VK_DRIVER_FILES says so"));
    EXPECT_THAT(MakeBackend("vulkan", options),
                FailsWith(ErrorCode::kDevice, "with VK_LOADER_DEBUG=error to see"));
  }
  const ScopedVariable select("VK_LOADER_DRIVERS_SELECT", "no-such-driver");
  EXPECT_THAT(MakeBackend("vulkan", options),
              FailsWith(ErrorCode::kDevice,
                        "no drivers but those whose .json file matches \"no-such-driver\", since "
                        "the variable VK_LOADER_DRIVERS_SELECT says so: unset it"));
}

TEST_P(VulkanDevicesTest, ADeviceThatIsNotThereMayBeHidden) {
  const ScopedVariable disable("VK_LOADER_DRIVERS_DISABLE", "no-such-driver");
  BackendOptions options = testing::OptionsOf(GetParam());
  options.vulkan.device = "no such device";
  EXPECT_THAT(MakeBackend("vulkan", options),
              FailsWith(ErrorCode::kNotFound, "the variable VK_LOADER_DRIVERS_DISABLE says so"));
}

TEST_P(VulkanDevicesTest, ADamagedLayerFileIsNoOldLoader) {
  const TempFolder folder;
  const std::filesystem::path layers = folder.path() / "vulkan" / "implicit_layer.d";
  std::filesystem::create_directories(layers);
  std::ofstream(layers / "damaged.json") << "{ \"layer\": ";
  const ScopedVariable data("XDG_DATA_HOME", folder.path().c_str());
  const auto backend = MakeBackend("vulkan", testing::OptionsOf(GetParam()));
  // Later loaders go on without a layer that they cannot parse.
  if (!backend) {
    EXPECT_THAT(backend, FailsWith(ErrorCode::kDevice, "a layer is damaged"));
  }
}

TEST_P(VulkanDevicesTest, ADamagedDriverFileIsToldFromMemoryThatIsShort) {
  const TempFolder folder;
  const std::string path = (folder.path() / "damaged.json").string();
  std::ofstream(path) << "{ \"ICD\": ";
  for (const char* const name : {"VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES"}) {
    const ScopedVariable files(name, path.c_str());
    const auto backend = MakeBackend("vulkan", testing::OptionsOf(GetParam()));
    // Later loaders go on without an added file that they cannot parse.
    if (backend && std::string_view(name) == "VK_ADD_DRIVER_FILES") continue;
    const std::string part = "\"" + path + "\"";
    EXPECT_THAT(backend, FailsWith(ErrorCode::kDevice, part));
    const std::string variable = "the variable " + std::string(name) + " says so";
    EXPECT_THAT(backend, FailsWith(ErrorCode::kDevice, variable));
  }
}

}  // namespace
}  // namespace assay::gpu
