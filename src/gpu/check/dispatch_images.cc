#include "gpu/check/dispatch_images.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu {

Status DispatchImages::Make(std::span<const BoundBytes> bindings) {
  bindings_ = bindings;
  // By allocation and place, so that bindings of one image stand together.
  std::vector<size_t> order(bindings_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::pair(bindings_[a].allocation, bindings_[a].range.begin) <
           std::pair(bindings_[b].allocation, bindings_[b].range.begin);
  });
  image_of_binding_.assign(bindings_.size(), 0);
  count_ = 0;
  filler_bytes_ = 0;
  for (size_t i = 0; i < order.size();) {
    const BoundBytes& first = bindings_[order[i]];
    ByteRange covered = first.range;
    size_t end = i + 1;
    for (; end < order.size(); ++end) {
      const BoundBytes& next = bindings_[order[end]];
      if (next.allocation != first.allocation) break;
      if (next.range.begin > covered.end + 2 * kMarginBytes) break;
      covered.end = std::max(covered.end, next.range.end);
    }
    if (count_ == images_.size()) images_.push_back(std::make_unique<AccessImage>());
    AccessImage& image = *images_[count_];
    image.Start(first, covered);
    for (; i < end; ++i) {
      image.AddBinding(bindings_[order[i]]);
      image_of_binding_[order[i]] = count_;
    }
    ASSAY_TRY(image.Finish(&filler_bytes_));
    ++count_;
  }
  return {};
}

void DispatchImages::Fill(int copy, FillerRange filler) {
  for (size_t i = 0; i < count_; ++i) images_[i]->Fill(copy, filler);
}

bool DispatchImages::ResultsDiffer(int copy, FillerRange filler) const {
  return std::any_of(images_.begin(), images_.begin() + static_cast<ptrdiff_t>(count_),
                     [&](const std::unique_ptr<AccessImage>& image) {
                       return image->ResultsDiffer(copy, filler);
                     });
}

std::optional<std::string> DispatchImages::UndeclaredWrite() const {
  for (size_t i = 0; i < count_; ++i) {
    const AccessImage& image = *images_[i];
    const ByteRange written = image.UndeclaredWrites();
    if (written.empty()) continue;
    return FalseAccess(image, image.AllocationOffset(written.begin),
                       image.AllocationOffset(written.end), Access::kWrite);
  }
  return std::nullopt;
}

void DispatchImages::Adopt() const {
  for (size_t i = 0; i < count_; ++i) images_[i]->Adopt();
}

std::optional<std::string> DispatchImages::AccessAt(int copy, const std::byte* address,
                                                    Access access) const {
  for (size_t i = 0; i < count_; ++i) {
    if (const auto offset = images_[i]->Locate(copy, address)) {
      return FalseAccess(*images_[i], *offset, *offset + 1, access);
    }
  }
  return std::nullopt;
}

void DispatchImages::AllowGuardReads(int copy, bool allowed) {
  for (size_t i = 0; i < count_; ++i) images_[i]->AllowGuardReads(copy, allowed);
}

std::string DispatchImages::UndeclaredRead(const std::function<bool(FillerRange)>& matters) const {
  // The shortest prefix of the filler that changes a result ends with the first byte that matters.
  uint64_t without = 0;
  uint64_t with = filler_bytes_;
  while (with - without > 1) {
    const uint64_t middle = without + (with - without) / 2;
    (matters({0, middle}) ? with : without) = middle;
  }
  const uint64_t first = with - 1;
  for (size_t i = 0; i < count_; ++i) {
    const AccessImage& image = *images_[i];
    for (const AccessImage::Segment& segment : image.segments()) {
      const uint64_t end = segment.first_filler + (segment.end - segment.begin);
      if (segment.readable || first < segment.first_filler || first >= end) continue;
      // The shortest suffix of the segment that changes a result begins with its last such byte.
      uint64_t last = first;
      uint64_t behind = end;
      while (behind - last > 1) {
        const uint64_t middle = last + (behind - last) / 2;
        (matters({middle, end}) ? last : behind) = middle;
      }
      const int64_t shift =
          image.AllocationOffset(segment.begin) - static_cast<int64_t>(segment.first_filler);
      return FalseAccess(image, static_cast<int64_t>(first) + shift,
                         static_cast<int64_t>(last) + 1 + shift, Access::kRead);
    }
  }
  return "reads bytes that it does not declare";
}

std::string DispatchImages::FalseAccess(const AccessImage& image, int64_t begin, int64_t end,
                                        Access access) const {
  // How far binding `i` lies from the first byte; 0 when it holds it.
  const auto distance = [&](size_t i) -> int64_t {
    const auto range_begin = static_cast<int64_t>(bindings_[i].range.begin);
    const auto range_end = static_cast<int64_t>(bindings_[i].range.end);
    return begin < range_begin ? range_begin - begin : std::max<int64_t>(begin - range_end + 1, 0);
  };
  size_t nearest = bindings_.size();
  for (size_t i = 0; i < bindings_.size(); ++i) {
    if (bindings_[i].allocation != image.allocation()) continue;
    if (nearest == bindings_.size() || distance(i) < distance(nearest)) nearest = i;
  }
  const BoundBytes& binding = bindings_[nearest];
  const std::string where =
      distance(nearest) == 0
          ? fmt::format("which binding {} declares as {}", nearest, AccessName(binding.access))
          : fmt::format("outside its nearest binding {} [{}, {})", nearest, binding.range.begin,
                        binding.range.end);
  const auto allocation_end = static_cast<int64_t>(image.allocation_bytes());
  const std::string size = begin < 0 || end > allocation_end
                               ? fmt::format("; the buffer has {} bytes", allocation_end)
                               : "";
  return fmt::format("{} bytes [{}, {}) of buffer \"{}\", {}{}",
                     access == Access::kRead ? "reads" : "writes", begin, end, image.label(), where,
                     size);
}

}  // namespace assay::gpu
