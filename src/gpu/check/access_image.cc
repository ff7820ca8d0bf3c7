#include "gpu/check/access_image.h"

#include <algorithm>
#include <cstring>

namespace assay::gpu {
namespace {

constexpr uint64_t kAlignmentBytes = 64;

// Mixes all bits (the finalizer of SplitMix64).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Filler outside what may be written. Of the first kind it is 0, which changes a sum least. Of the
// second kind each byte makes large finite numbers of every format, which change a sum or a maximum
// most (NaN is passed over by some kernels), and goes by the byte's number among all filler, so
// that bytes copied from outside to outside do not look untouched.
class OutsideFiller {
 public:
  OutsideFiller() {
    for (uint64_t i = 0; i < kPeriod; ++i) {
      bytes_[i] = static_cast<std::byte>(0x60 + Mix(i + 1) % 28);
    }
  }
  static constexpr std::byte kPlain{0};
  std::byte At(uint64_t number) const { return bytes_[number % kPeriod]; }
  void Fill(std::byte* begin, uint64_t count, uint64_t number) const {
    ForPieces(count, number, [&](uint64_t done, const std::byte* piece, uint64_t length) {
      std::memcpy(begin + done, piece, length);
      return true;
    });
  }
  bool Matches(const std::byte* begin, uint64_t count, uint64_t number) const {
    return ForPieces(count, number, [&](uint64_t done, const std::byte* piece, uint64_t length) {
      return std::memcmp(begin + done, piece, length) == 0;
    });
  }

 private:
  // A prime, which no distance between rows or buffers divides.
  static constexpr uint64_t kPeriod = 4099;
  // visit(bytes done, their filler, length) until it returns false.
  template <typename Visit>
  bool ForPieces(uint64_t count, uint64_t number, const Visit& visit) const {
    for (uint64_t done = 0; done < count;) {
      const uint64_t at = (number + done) % kPeriod;
      const uint64_t length = std::min(count - done, kPeriod - at);
      if (!visit(done, bytes_.data() + at, length)) return false;
      done += length;
    }
    return true;
  }

  std::array<std::byte, kPeriod> bytes_{};
};

const OutsideFiller& Outside() {
  static const OutsideFiller filler;
  return filler;
}

// Filler where results belong, which goes by the byte's number among all filler of the dispatch: a
// byte that is copied from another place, of any image, does not look untouched in both runs but
// for one time in 65,280. The two kinds differ in every byte.
class ResultFiller {
 public:
  std::byte At(uint64_t number, bool varied) {
    if (number / 8 != group_) {
      group_ = number / 8;
      plain_ = Mix(group_ * 2 + 1);
      step_ = Mix(group_ * 2 + 2);
    }
    const auto shift = number % 8 * 8;
    const uint64_t plain = plain_ >> shift & 0xFF;
    return static_cast<std::byte>(varied ? plain + 1 + (step_ >> shift & 0xFF) % 255 : plain);
  }

 private:
  uint64_t group_ = UINT64_MAX;
  uint64_t plain_ = 0;
  uint64_t step_ = 0;
};

bool AllEqual(const std::byte* bytes, uint64_t count, std::byte value) {
  // Each byte equals its neighbour, and the first the value.
  return count == 0 ||
         (*bytes == value && (count == 1 || std::memcmp(bytes, bytes + 1, count - 1) == 0));
}

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

void AccessImage::Start(const BoundBytes& any, ByteRange covered) {
  allocation_ = any.allocation;
  allocation_bytes_ = any.allocation_bytes;
  label_ = any.label;
  const uint64_t first = covered.begin / kAlignmentBytes * kAlignmentBytes;
  origin_ = static_cast<int64_t>(first) - static_cast<int64_t>(kMarginBytes);
  size_ = RoundUp(covered.end - first + 2 * kMarginBytes, GuardedMemory::PageBytes());
  bounds_.clear();
}

Status AccessImage::Finish(uint64_t* filler_bytes) {
  std::vector<uint64_t> edges = {0, size_};
  for (const Bound& bound : bounds_) {
    edges.push_back(OffsetOf(bound.range.begin));
    edges.push_back(OffsetOf(bound.range.end));
  }
  std::ranges::sort(edges);
  segments_.clear();
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    Segment segment{edges[i], edges[i + 1]};
    if (segment.begin == segment.end) continue;
    for (const Bound& bound : bounds_) {
      if (segment.begin < OffsetOf(bound.range.begin)) continue;
      if (segment.end > OffsetOf(bound.range.end)) continue;
      segment.readable = segment.readable || Reads(bound.access);
      segment.writable = segment.writable || Writes(bound.access);
    }
    segment.first_filler = *filler_bytes;
    if (!segment.readable) *filler_bytes += segment.end - segment.begin;
    segments_.push_back(segment);
  }
  for (GuardedMemory& copy : copies_) ASSAY_TRY(copy.Resize(size_));
  return {};
}

void AccessImage::Fill(int copy, FillerRange filler) {
  std::byte* const bytes = Copy(copy);
  for (const Segment& segment : segments_) {
    if (segment.readable) {
      std::memcpy(bytes + segment.begin, Real(segment.begin), segment.end - segment.begin);
      continue;
    }
    // Of the segment, [begin, varied), [varied, plain) and [plain, end).
    const auto edge = [&](uint64_t number) {
      const uint64_t end = segment.first_filler + (segment.end - segment.begin);
      return segment.begin + std::clamp(number, segment.first_filler, end) - segment.first_filler;
    };
    const uint64_t varied = edge(filler.vary_begin);
    const uint64_t plain = std::max(varied, edge(filler.vary_end));
    const auto fill = [&](uint64_t begin, uint64_t end, bool vary) {
      if (!segment.writable) {
        if (vary) {
          Outside().Fill(bytes + begin, end - begin, segment.first_filler + begin - segment.begin);
        } else {
          std::fill(bytes + begin, bytes + end, OutsideFiller::kPlain);
        }
        return;
      }
      ResultFiller results;
      for (uint64_t i = begin; i < end; ++i) {
        bytes[i] = results.At(segment.first_filler + (i - segment.begin), vary);
      }
    };
    fill(segment.begin, varied, false);
    fill(varied, plain, true);
    fill(plain, segment.end, false);
  }
}

ByteRange AccessImage::UndeclaredWrites() const {
  const std::byte* const first = Copy(kFirstCopy);
  const std::byte* const second = Copy(kSecondCopy);
  for (const Segment& segment : segments_) {
    if (segment.writable) continue;
    const uint64_t count = segment.end - segment.begin;
    const bool untouched =
        segment.readable
            ? std::memcmp(first + segment.begin, Real(segment.begin), count) == 0 &&
                  std::memcmp(second + segment.begin, Real(segment.begin), count) == 0
            : AllEqual(first + segment.begin, count, OutsideFiller::kPlain) &&
                  Outside().Matches(second + segment.begin, count, segment.first_filler);
    if (untouched) continue;
    ByteRange changed;
    for (uint64_t i = segment.begin; i < segment.end; ++i) {
      const bool same =
          segment.readable
              ? first[i] == *Real(i) && second[i] == *Real(i)
              : first[i] == OutsideFiller::kPlain &&
                    second[i] == Outside().At(segment.first_filler + i - segment.begin);
      if (same) continue;
      if (changed.empty()) changed.begin = i;
      changed.end = i + 1;
    }
    return changed;
  }
  return {};
}

bool AccessImage::ResultsDiffer(int copy, FillerRange filler) const {
  const std::byte* const first = Copy(kFirstCopy);
  const std::byte* const other = Copy(copy);
  for (const Segment& segment : segments_) {
    if (!segment.writable) continue;
    const uint64_t count = segment.end - segment.begin;
    if (std::memcmp(first + segment.begin, other + segment.begin, count) == 0) continue;
    if (segment.readable) return true;
    ResultFiller plain;
    ResultFiller other_filler;
    for (uint64_t i = segment.begin; i < segment.end; ++i) {
      if (first[i] == other[i]) continue;
      const uint64_t number = segment.first_filler + (i - segment.begin);
      const bool varied = filler.vary_begin <= number && number < filler.vary_end;
      const bool untouched =
          first[i] == plain.At(number, false) && other[i] == other_filler.At(number, varied);
      if (!untouched) return true;
    }
  }
  return false;
}

void AccessImage::Adopt() const {
  const std::byte* const first = Copy(kFirstCopy);
  const std::byte* const second = Copy(kSecondCopy);
  for (const Segment& segment : segments_) {
    if (!segment.writable) continue;
    const uint64_t count = segment.end - segment.begin;
    if (std::memcmp(first + segment.begin, second + segment.begin, count) == 0) {
      std::memcpy(Real(segment.begin), first + segment.begin, count);
      continue;
    }
    for (uint64_t i = segment.begin; i < segment.end; ++i) {
      if (first[i] == second[i]) *Real(i) = first[i];
    }
  }
}

std::optional<int64_t> AccessImage::Locate(int copy, const std::byte* address) const {
  const auto offset = copies_[static_cast<size_t>(copy)].OffsetOf(address);
  if (!offset) return std::nullopt;
  return *offset + origin_;
}

void AccessImage::AllowGuardReads(int copy, bool allowed) {
  copies_[static_cast<size_t>(copy)].AllowReads(allowed);
}

// --- SideMemory

Status SideMemory::Resize(uint64_t size_bytes) {
  size_bytes_ = size_bytes;
  whole_bytes_ = RoundUp(size_bytes + 2 * kMarginBytes, GuardedMemory::PageBytes());
  return memory_.Resize(whole_bytes_);
}

void SideMemory::Fill(std::byte filler) {
  std::fill(memory_.data(), memory_.data() + whole_bytes_, filler);
}

std::optional<SideMemory::Spill> SideMemory::FindSpill(std::byte filler) const {
  const uint64_t end = kMarginBytes + size_bytes_;
  if (AllEqual(memory_.data(), kMarginBytes, filler) &&
      AllEqual(memory_.data() + end, whole_bytes_ - end, filler)) {
    return std::nullopt;
  }
  std::optional<Spill> spill;
  for (uint64_t i = 0; i < whole_bytes_; ++i) {
    if ((kMarginBytes <= i && i < end) || memory_.data()[i] == filler) continue;
    const int64_t offset = static_cast<int64_t>(i) - static_cast<int64_t>(kMarginBytes);
    if (!spill) spill = Spill{offset, offset};
    spill->end = offset + 1;
  }
  return spill;
}

std::optional<int64_t> SideMemory::Locate(const std::byte* address) const {
  const auto offset = memory_.OffsetOf(address);
  if (!offset) return std::nullopt;
  return *offset - static_cast<int64_t>(kMarginBytes);
}

}  // namespace assay::gpu
