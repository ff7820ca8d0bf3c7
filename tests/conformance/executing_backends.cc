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

// Backends with some of their optional paths turned off, so that every suite runs both sides.
struct Variant {
  std::string_view name;
  std::string_view backend;
  std::string_view disabled;  // Separated by commas.
  bool from_source = false;
};
constexpr std::array kVariants = {
    Variant{"cpu", "cpu", ""},
    Variant{"vulkan", "vulkan", ""},
    Variant{"vulkan_pools", "vulkan", "push-descriptors"},
    Variant{"vulkan_fences", "vulkan", "timeline-semaphores"},
    Variant{"vulkan_staging", "vulkan", "unified-memory"},
    Variant{"vulkan_source", "vulkan", "", true},
    Variant{"vulkan_plain", "vulkan",
            "push-descriptors,timeline-semaphores,unified-memory,mapped-host-buffers,subgroup-size,"
            "8-bit-storage,"
            "16-bit-storage,float16,int8,integer-dot,cooperative-matrix"},
    Variant{"null", "null", ""},
};

const Variant* Find(std::string_view name) {
  return std::ranges::find(kVariants, name, &Variant::name);
}

bool Lacks(std::string_view backend, Trait trait) {
  return std::ranges::any_of(kExclusions, [&](const Exclusion& exclusion) {
    // Who does not run, or whose results say nothing, has no trait of results either.
    const bool asked = exclusion.lacks == trait || exclusion.lacks == Trait::kRunsHere ||
                       (exclusion.lacks == Trait::kExecutes && trait != Trait::kRunsHere);
    return exclusion.backend == backend && exclusion.applies && asked;
  });
}

}  // namespace

std::vector<std::string> BackendsWith(Trait trait) {
  std::vector<std::string> names;
  for (const std::string& backend : BackendNames()) {
    if (Lacks(backend, trait)) continue;
    const size_t before = names.size();
    for (const Variant& variant : kVariants) {
      if (variant.backend == backend) names.emplace_back(variant.name);
    }
    // A backend without a row is run as it is.
    if (names.size() == before) names.push_back(backend);
  }
  return names;
}

std::vector<std::string> VariantsOf(std::string_view backend) {
  std::vector<std::string> names;
  for (const std::string& name : RunnableBackends()) {
    const Variant* const variant = Find(name);
    if (variant != kVariants.end() && variant->backend == backend) names.push_back(name);
  }
  return names;
}

std::vector<std::string> PlainBackends() {
  std::vector<std::string> names = BackendNames();
  std::erase_if(names, [](const std::string& name) { return Lacks(name, Trait::kExecutes); });
  return names;
}

std::vector<std::string> SpirvBackends() {
  std::vector<std::string> names = PlainBackends();
  std::erase_if(names, [](const std::string& name) { return name != "vulkan"; });
  return names;
}

BackendOptions OptionsOf(const std::string& variant, BackendOptions options) {
  const Variant* const row = Find(variant);
  if (row == kVariants.end()) return options;
  for (std::string_view rest = row->disabled; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    options.vulkan.disabled.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  options.vulkan.kernels_from_source |= row->from_source;
  return options;
}

Result<std::unique_ptr<Backend>> MakeVariant(const std::string& variant,
                                             const BackendOptions& options) {
  const Variant* const row = Find(variant);
  return MakeBackend(row == kVariants.end() ? variant : row->backend, OptionsOf(variant, options));
}

std::unique_ptr<Device> MakeDevice(const std::string& variant, const BackendOptions& options,
                                   const DeviceOptions& device_options) {
  auto made = MakeVariant(variant, options);
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
