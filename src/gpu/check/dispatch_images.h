// DispatchImages: all the images (access_image.h) of one dispatch, and what they say about it. The
// same for every backend; how a dispatch runs on them is the backend's.
#ifndef ASSAY_GPU_CHECK_DISPATCH_IMAGES_H_
#define ASSAY_GPU_CHECK_DISPATCH_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/base.h"

#include "gpu/check/access_image.h"
#include "gpu/check/bound_bytes.h"

namespace assay::gpu {

// One thread. Texts are what follows a dispatch's name in an error: "writes bytes [0, 4) of ...".
class DispatchImages final {
 public:
  DispatchImages() = default;
  DispatchImages(const DispatchImages&) = delete;
  DispatchImages& operator=(const DispatchImages&) = delete;

  // Those of a dispatch with these bindings, which must stay until the next Make. Error
  // kAllocation.
  Status Make(std::span<const BoundBytes> bindings);

  size_t count() const { return count_; }
  const AccessImage& image(size_t i) const { return *images_[i]; }
  size_t image_of_binding(size_t binding) const { return image_of_binding_[binding]; }
  std::span<const BoundBytes> bindings() const { return bindings_; }
  // In all images.
  uint64_t filler_bytes() const { return filler_bytes_; }
  std::byte* BytesOf(int copy, size_t binding) const {
    return image(image_of_binding_[binding]).BytesAt(copy, bindings_[binding].range.begin);
  }

  void Fill(int copy, FillerRange filler);
  bool ResultsDiffer(int copy, FillerRange filler) const;
  // Of the first two runs; nothing when all that they wrote was declared.
  std::optional<std::string> UndeclaredWrite() const;
  // What a dispatch reads undeclared, of which other filler changes the results: `matters` runs it
  // with the filler of those numbers varied.
  std::string UndeclaredRead(const std::function<bool(FillerRange)>& matters) const;
  void Adopt() const;

  // The access to an address of a copy or its guards; nothing when it is none of an image's.
  std::optional<std::string> AccessAt(int copy, const std::byte* address, Access access) const;
  void AllowGuardReads(int copy, bool allowed);

 private:
  std::string FalseAccess(const AccessImage& image, int64_t begin, int64_t end,
                          Access access) const;

  std::span<const BoundBytes> bindings_;
  uint64_t filler_bytes_ = 0;
  size_t count_ = 0;  // Of the dispatch; the others are spare.
  std::vector<std::unique_ptr<AccessImage>> images_;
  std::vector<size_t> image_of_binding_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CHECK_DISPATCH_IMAGES_H_
