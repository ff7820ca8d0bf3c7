#include "gpu/cpu/access_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr uint64_t kAlignmentBytes = 64;

// Copies of a dispatch's bytes: of the two runs that are compared, and of those that look closer.
constexpr int kFirst = 0;
constexpr int kSecond = 1;
constexpr int kProbe = 2;
constexpr size_t kCopies = 3;

constexpr std::byte kSharedFiller{0};
constexpr std::byte kVariedSharedFiller{0x41};

// Filler of the first kind; that of the second kind differs in every byte. Where results belong it
// depends on the place, so that a byte copied from one undeclared place to another does not look
// untouched. Elsewhere it is 0, the safest value for a kernel that takes it for an index.
std::byte Filler(bool writable, uint64_t offset) {
  if (!writable) return std::byte{0};
  return static_cast<std::byte>((offset * 0x9E3779B97F4A7C15u) >> 56);
}
std::byte Varied(std::byte filler, bool writable) {
  // The complement of 0 is a NaN, which some kernels skip.
  return writable ? ~filler : std::byte{0x41};
}

class AlignedBytes {
 public:
  std::byte* Reserve(uint64_t size_bytes) {
    if (size_bytes > size_bytes_) {
      bytes_.reset(static_cast<std::byte*>(::operator new(size_bytes, kAlignment)));
      size_bytes_ = size_bytes;
    }
    return bytes_.get();
  }
  std::byte* get() const { return bytes_.get(); }

 private:
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  std::unique_ptr<std::byte, Delete> bytes_;
  uint64_t size_bytes_ = 0;
};

}  // namespace

// Bindings of one allocation that lie close together, with a margin on both sides. Offsets are from
// the image's first byte.
class AccessChecker::Image {
 public:
  // Bytes of one class.
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool readable = false;
    bool writable = false;
    uint64_t first_filler = 0;  // Of all filler bytes of the dispatch, when not readable.
  };

  // `covered` is the hull of the bindings in it.
  void Start(const CpuBinding& any, ByteRange covered) {
    allocation_ = any.allocation;
    label_ = any.label;
    const uint64_t first = covered.begin / kAlignmentBytes * kAlignmentBytes;
    origin_ = static_cast<int64_t>(first) - static_cast<int64_t>(kMarginBytes);
    size_ = covered.end - first + 2 * kMarginBytes;
    ranges_.clear();
  }
  void AddBinding(const CpuBinding& binding) { ranges_.push_back({binding.range, binding.access}); }

  // Cuts the image into segments; `filler_bytes` counts on.
  void Finish(uint64_t* filler_bytes) {
    std::vector<uint64_t> edges = {0, size_};
    for (const Bound& bound : ranges_) {
      edges.push_back(OffsetOf(bound.range.begin));
      edges.push_back(OffsetOf(bound.range.end));
    }
    std::ranges::sort(edges);
    segments_.clear();
    for (size_t i = 0; i + 1 < edges.size(); ++i) {
      Segment segment{edges[i], edges[i + 1]};
      if (segment.begin == segment.end) continue;
      for (const Bound& bound : ranges_) {
        if (segment.begin < OffsetOf(bound.range.begin)) continue;
        if (segment.end > OffsetOf(bound.range.end)) continue;
        segment.readable = segment.readable || Reads(bound.access);
        segment.writable = segment.writable || Writes(bound.access);
      }
      segment.first_filler = *filler_bytes;
      if (!segment.readable) *filler_bytes += segment.end - segment.begin;
      segments_.push_back(segment);
    }
  }

  void Fill(int copy, uint64_t vary_begin, uint64_t vary_end) {
    std::byte* const bytes = copies_[static_cast<size_t>(copy)].Reserve(size_);
    for (const Segment& segment : segments_) {
      if (segment.readable) {
        std::memcpy(bytes + segment.begin, Real(segment.begin), segment.end - segment.begin);
        continue;
      }
      for (uint64_t i = segment.begin; i < segment.end; ++i) {
        const uint64_t number = segment.first_filler + (i - segment.begin);
        const bool varied = vary_begin <= number && number < vary_end;
        bytes[i] = FillerAt(segment, i, varied);
      }
    }
  }

  // The hull of the bytes that either of the first two runs changed, in the first segment where
  // that was not declared; empty where there is none. The second run varied all filler, so a value
  // that happens to equal the filler of one run differs from that of the other.
  ByteRange UndeclaredWrites() const {
    for (const Segment& segment : segments_) {
      if (segment.writable) continue;
      ByteRange changed;
      for (uint64_t i = segment.begin; i < segment.end; ++i) {
        const bool same = segment.readable
                              ? Copy(kFirst)[i] == *Real(i) && Copy(kSecond)[i] == *Real(i)
                              : Copy(kFirst)[i] == FillerAt(segment, i, false) &&
                                    Copy(kSecond)[i] == FillerAt(segment, i, true);
        if (same) continue;
        if (changed.empty()) changed.begin = i;
        changed.end = i + 1;
      }
      if (!changed.empty()) return changed;
    }
    return {};
  }

  // True when a declared result of `copy` is not that of the first copy. A byte that holds its
  // filler in both was not written.
  bool ResultsDiffer(int copy, uint64_t vary_begin, uint64_t vary_end) const {
    const std::byte* const first = Copy(kFirst);
    const std::byte* const other = Copy(copy);
    for (const Segment& segment : segments_) {
      if (!segment.writable) continue;
      for (uint64_t i = segment.begin; i < segment.end; ++i) {
        if (first[i] == other[i]) continue;
        if (segment.readable) return true;
        const uint64_t number = segment.first_filler + (i - segment.begin);
        const bool varied = vary_begin <= number && number < vary_end;
        const bool untouched =
            first[i] == FillerAt(segment, i, false) && other[i] == FillerAt(segment, i, varied);
        if (!untouched) return true;
      }
    }
    return false;
  }

  // Takes the results of the first copy into the buffer, but for the bytes that were not written:
  // those on which the two copies still differ.
  void Adopt() const {
    for (const Segment& segment : segments_) {
      if (!segment.writable) continue;
      for (uint64_t i = segment.begin; i < segment.end; ++i) {
        if (Copy(kFirst)[i] == Copy(kSecond)[i]) *Real(i) = Copy(kFirst)[i];
      }
    }
  }

  // Where the kernel finds byte `offset` of the allocation.
  std::byte* BytesAt(int copy, uint64_t offset) const { return Copy(copy) + OffsetOf(offset); }
  uint64_t OffsetOf(uint64_t allocation_offset) const {
    return static_cast<uint64_t>(static_cast<int64_t>(allocation_offset) - origin_);
  }
  // May lie outside the allocation.
  int64_t AllocationOffset(uint64_t offset) const { return static_cast<int64_t>(offset) + origin_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::byte* allocation() const { return allocation_; }
  const std::string& label() const { return *label_; }

 private:
  struct Bound {
    ByteRange range;
    Access access;
  };
  static std::byte FillerAt(const Segment& segment, uint64_t offset, bool varied) {
    const std::byte filler = Filler(segment.writable, offset);
    return varied ? Varied(filler, segment.writable) : filler;
  }
  std::byte* Copy(int copy) const { return copies_[static_cast<size_t>(copy)].get(); }
  std::byte* Real(uint64_t offset) const { return allocation_ + AllocationOffset(offset); }

  std::byte* allocation_ = nullptr;
  const std::string* label_ = nullptr;
  int64_t origin_ = 0;  // Offset in the allocation of the image's first byte.
  uint64_t size_ = 0;
  std::vector<Bound> ranges_;
  std::vector<Segment> segments_;
  std::array<AlignedBytes, kCopies> copies_;
};

AccessChecker::AccessChecker() = default;
AccessChecker::~AccessChecker() = default;

Status AccessChecker::Run(const CommandList& list, std::span<std::byte> scratch) {
  list_ = &list;
  scratch_ = scratch;
  for (const CpuGroup& group : list.groups()) {
    for (const CpuDispatch& dispatch : list.DispatchesOf(group)) ASSAY_TRY(RunDispatch(dispatch));
  }
  return {};
}

Status AccessChecker::RunDispatch(const CpuDispatch& dispatch) {
  dispatch_ = &dispatch;
  bindings_ = list_->BindingsOf(dispatch);
  MakeImages();
  RunOn(kFirst, 0, 0, kSharedFiller);
  RunOn(kSecond, 0, filler_bytes_, kVariedSharedFiller);
  ASSAY_TRY(CheckWrites());
  if (ResultsDiffer(kSecond, 0, filler_bytes_)) return Fail(FindUndeclaredRead());
  for (size_t i = 0; i < image_count_; ++i) images_[i]->Adopt();
  return {};
}

void AccessChecker::MakeImages() {
  // By allocation and place, so that bindings of one image stand together.
  std::vector<size_t> order(bindings_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::pair(bindings_[a].allocation, bindings_[a].range.begin) <
           std::pair(bindings_[b].allocation, bindings_[b].range.begin);
  });
  image_of_binding_.assign(bindings_.size(), 0);
  image_count_ = 0;
  filler_bytes_ = 0;
  for (size_t i = 0; i < order.size();) {
    const CpuBinding& first = bindings_[order[i]];
    ByteRange covered = first.range;
    size_t end = i + 1;
    for (; end < order.size(); ++end) {
      const CpuBinding& next = bindings_[order[end]];
      if (next.allocation != first.allocation) break;
      if (next.range.begin > covered.end + 2 * kMarginBytes) break;
      covered.end = std::max(covered.end, next.range.end);
    }
    if (image_count_ == images_.size()) images_.push_back(std::make_unique<Image>());
    Image& image = *images_[image_count_];
    image.Start(first, covered);
    for (; i < end; ++i) {
      image.AddBinding(bindings_[order[i]]);
      image_of_binding_[order[i]] = image_count_;
    }
    image.Finish(&filler_bytes_);
    ++image_count_;
  }
}

void AccessChecker::RunOn(int copy, uint64_t vary_begin, uint64_t vary_end, std::byte shared) {
  for (size_t i = 0; i < image_count_; ++i) images_[i]->Fill(copy, vary_begin, vary_end);
  std::vector<std::byte*> pointers;
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Image& image = *images_[image_of_binding_[i]];
    pointers.push_back(image.BytesAt(copy, bindings_[i].range.begin));
  }
  CpuKernelArgs args = list_->ArgsOf(*dispatch_, scratch_);
  args.bindings = pointers.data();
  std::ranges::fill(args.shared, shared);
  RunWorkgroups(*dispatch_, args, 0, dispatch_->workgroups);
}

bool AccessChecker::ResultsDiffer(int copy, uint64_t vary_begin, uint64_t vary_end) const {
  return std::any_of(images_.begin(), images_.begin() + static_cast<ptrdiff_t>(image_count_),
                     [&](const std::unique_ptr<Image>& image) {
                       return image->ResultsDiffer(copy, vary_begin, vary_end);
                     });
}

Status AccessChecker::CheckWrites() const {
  for (size_t i = 0; i < image_count_; ++i) {
    const ByteRange written = images_[i]->UndeclaredWrites();
    if (!written.empty()) {
      return Fail(FalseAccess(*images_[i], written.begin, written.end, Access::kWrite));
    }
  }
  return {};
}

Error AccessChecker::FindUndeclaredRead() {
  const auto matters = [&](uint64_t begin, uint64_t end) {
    RunOn(kProbe, begin, end, kSharedFiller);
    return ResultsDiffer(kProbe, begin, end);
  };
  const auto fail = [&](std::string_view what) {
    return Error(ErrorCode::kInvalidArgument, std::string(dispatch_->kernel_name),
                 fmt::format("Kernel \"{}\" {}.", dispatch_->kernel_name, what));
  };
  if (matters(0, 0)) return fail("does not give the same result twice");
  if (!matters(0, filler_bytes_)) return fail("reads shared memory before it writes it");
  // The shortest prefix of the filler that changes a result ends with the first byte that matters.
  uint64_t without = 0;
  uint64_t with = filler_bytes_;
  while (with - without > 1) {
    const uint64_t middle = without + (with - without) / 2;
    (matters(0, middle) ? with : without) = middle;
  }
  const uint64_t first = with - 1;
  for (size_t i = 0; i < image_count_; ++i) {
    for (const Image::Segment& segment : images_[i]->segments()) {
      const uint64_t end = segment.first_filler + (segment.end - segment.begin);
      if (segment.readable || first < segment.first_filler || first >= end) continue;
      // The shortest suffix of the segment that changes a result begins with its last such byte.
      uint64_t last = first;
      uint64_t behind = end;
      while (behind - last > 1) {
        const uint64_t middle = last + (behind - last) / 2;
        (matters(middle, end) ? last : behind) = middle;
      }
      const uint64_t shift = segment.begin - segment.first_filler;
      return FalseAccess(*images_[i], first + shift, last + 1 + shift, Access::kRead);
    }
  }
  return fail("reads bytes that it does not declare");
}

Error AccessChecker::FalseAccess(const Image& image, uint64_t begin, uint64_t end,
                                 Access access) const {
  const int64_t first = image.AllocationOffset(begin);
  // How far binding `i` lies from the first byte; 0 when it holds it.
  const auto distance = [&](size_t i) -> int64_t {
    const auto range_begin = static_cast<int64_t>(bindings_[i].range.begin);
    const auto range_end = static_cast<int64_t>(bindings_[i].range.end);
    return first < range_begin ? range_begin - first : std::max<int64_t>(first - range_end + 1, 0);
  };
  size_t nearest = bindings_.size();
  for (size_t i = 0; i < bindings_.size(); ++i) {
    if (bindings_[i].allocation != image.allocation()) continue;
    if (nearest == bindings_.size() || distance(i) < distance(nearest)) nearest = i;
  }
  const CpuBinding& binding = bindings_[nearest];
  const std::string what =
      fmt::format("Kernel \"{}\" {} bytes [{}, {}) of buffer \"{}\"", dispatch_->kernel_name,
                  access == Access::kRead ? "reads" : "writes", first, image.AllocationOffset(end),
                  image.label());
  const std::string where =
      distance(nearest) == 0
          ? fmt::format("which binding {} declares as {}", nearest, AccessName(binding.access))
          : fmt::format("outside its nearest binding {} [{}, {})", nearest, binding.range.begin,
                        binding.range.end);
  return Error(ErrorCode::kInvalidArgument, std::string(dispatch_->kernel_name),
               fmt::format("{}, {}.", what, where));
}

}  // namespace assay::gpu
