// What a test may watch and break inside a vulkan backend.
#ifndef ASSAY_GPU_VULKAN_HOOKS_H_
#define ASSAY_GPU_VULKAN_HOOKS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace assay::gpu::vulkan {

// Vulkan objects and pieces of device memory; all of them are gone when the backend is.
struct LiveObjects {
  std::atomic<int64_t> created{0};
  std::atomic<int64_t> alive{0};
};

struct Hooks {
  std::shared_ptr<LiveObjects> live = std::make_shared<LiveObjects>();
  // Called before each Vulkan function that can fail, from any thread; a result other than 0 (a
  // VkResult) stands in for the call. Null: never.
  std::function<int32_t(std::string_view function)> inject;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_HOOKS_H_
