#include "gpu/cpu/access_check.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu {
namespace {

constexpr std::byte SideFiller(bool other) { return other ? std::byte{0x7B} : std::byte{0}; }

}  // namespace

Status AccessChecker::Run(const CommandList& list, uint64_t number) {
  list_ = &list;
  number_ = number;
  FaultTrap trap;
  trap_ = &trap;
  for (const CpuGroup& group : list.groups()) {
    for (const CpuDispatch& dispatch : list.DispatchesOf(group)) ASSAY_TRY(RunDispatch(dispatch));
  }
  return {};
}

Status AccessChecker::RunDispatch(const CpuDispatch& dispatch) {
  dispatch_ = &dispatch;
  bindings_ = list_->BindingsOf(dispatch);
  ASSAY_TRY(MakeImages());
  const Conditions first;
  const Conditions second{{0, filler_bytes_}, true, true, true};
  if (const auto ended = RunOn(kFirstCopy, first)) return Fail(FarAccess(*ended));
  ASSAY_TRY(CheckSides(first));
  // What only other filler leads astray was led there by filler.
  if (RunOn(kSecondCopy, second)) return Fail(FindUndeclaredRead());
  ASSAY_TRY(CheckSides(second));
  ASSAY_TRY(CheckWrites());
  if (ResultsDiffer(kSecondCopy, second)) return Fail(FindUndeclaredRead());
  for (size_t i = 0; i < image_count_; ++i) images_[i]->Adopt();
  return {};
}

Status AccessChecker::MakeImages() {
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
    if (image_count_ == images_.size()) images_.push_back(std::make_unique<AccessImage>());
    AccessImage& image = *images_[image_count_];
    image.Start(first, covered);
    for (; i < end; ++i) {
      image.AddBinding(bindings_[order[i]]);
      image_of_binding_[order[i]] = image_count_;
    }
    ASSAY_TRY(image.Finish(&filler_bytes_));
    ++image_count_;
  }
  ASSAY_TRY(shared_.Resize(dispatch_->shared_bytes));
  return constants_.Resize(dispatch_->constant_bytes);
}

// --- Runs

struct AccessChecker::RunContext {
  const CpuDispatch* dispatch;
  CpuKernelArgs args;
  std::byte shared_filler;
  bool reversed;
};

std::optional<const std::byte*> AccessChecker::RunOn(int copy, const Conditions& conditions) {
  for (size_t i = 0; i < image_count_; ++i) images_[i]->Fill(copy, conditions.filler);
  std::vector<std::byte*> pointers;
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const AccessImage& image = *images_[image_of_binding_[i]];
    pointers.push_back(image.BytesAt(copy, bindings_[i].range.begin));
  }
  CpuKernelArgs args = list_->ArgsOf(*dispatch_, {shared_.bytes(), shared_.size_bytes()});
  constants_.Fill(SideFiller(conditions.other_constants));
  std::copy_n(args.constants, dispatch_->constant_bytes, constants_.bytes());
  args.constants = constants_.bytes();
  args.bindings = pointers.data();
  shared_.Fill(SideFiller(conditions.other_shared));
  RunContext context{dispatch_, args, SideFiller(conditions.other_shared), conditions.reversed};
  return trap_->Run(
      [](void* borrowed) {
        const auto& run = *static_cast<const RunContext*>(borrowed);
        const uint32_t count = run.dispatch->workgroups;
        for (uint32_t i = 0; i < count; ++i) {
          // A workgroup may not find what another one left.
          std::ranges::fill(run.args.shared, run.shared_filler);
          RunWorkgroups(*run.dispatch, run.args, run.reversed ? count - 1 - i : i, 1);
        }
      },
      &context);
}

bool AccessChecker::ResultsDiffer(int copy, const Conditions& conditions) const {
  return std::any_of(images_.begin(), images_.begin() + static_cast<ptrdiff_t>(image_count_),
                     [&](const std::unique_ptr<AccessImage>& image) {
                       return image->ResultsDiffer(copy, conditions.filler);
                     });
}

Status AccessChecker::CheckWrites() const {
  for (size_t i = 0; i < image_count_; ++i) {
    const AccessImage& image = *images_[i];
    const ByteRange written = image.UndeclaredWrites();
    if (written.empty()) continue;
    return Fail(FalseAccess(image, image.AllocationOffset(written.begin),
                            image.AllocationOffset(written.end), Access::kWrite));
  }
  return {};
}

Status AccessChecker::CheckSides(const Conditions& conditions) const {
  if (const auto spill = shared_.FindSpill(SideFiller(conditions.other_shared))) {
    return Fail(Wrong(fmt::format("writes bytes [{}, {}) of its shared memory of {} bytes",
                                  spill->begin, spill->end, shared_.size_bytes())));
  }
  const CpuKernelArgs args = list_->ArgsOf(*dispatch_, {shared_.bytes(), shared_.size_bytes()});
  if (constants_.FindSpill(SideFiller(conditions.other_constants)) ||
      !std::equal(args.constants, args.constants + dispatch_->constant_bytes, constants_.bytes())) {
    return Fail(Wrong("writes to its constants or beside them"));
  }
  return {};
}

// --- What is wrong

Error AccessChecker::FindUndeclaredRead() {
  const auto matters = [&](const Conditions& conditions) {
    return RunOn(kProbeCopy, conditions) || ResultsDiffer(kProbeCopy, conditions);
  };
  const auto filler_matters = [&](uint64_t begin, uint64_t end) {
    Conditions conditions;
    conditions.filler = {begin, end};
    return matters(conditions);
  };
  Conditions shared;
  shared.other_shared = true;
  Conditions constants;
  constants.other_constants = true;
  Conditions reversed;
  reversed.reversed = true;
  if (matters({})) return Wrong("does not give the same result twice");
  if (!filler_matters(0, filler_bytes_)) {
    if (matters(shared)) return Wrong("reads shared memory that its workgroup has not written");
    if (matters(constants)) {
      return Wrong(fmt::format("reads beside its {} bytes of constants", constants_.size_bytes()));
    }
    if (matters(reversed)) {
      return Wrong(
          "gives another result when its workgroups run in the reverse order: they touch each "
          "other's bytes, which nothing orders");
    }
    return Wrong("gives another result over other bytes that it does not declare");
  }
  // The shortest prefix of the filler that changes a result ends with the first byte that matters.
  uint64_t without = 0;
  uint64_t with = filler_bytes_;
  while (with - without > 1) {
    const uint64_t middle = without + (with - without) / 2;
    (filler_matters(0, middle) ? with : without) = middle;
  }
  const uint64_t first = with - 1;
  for (size_t i = 0; i < image_count_; ++i) {
    const AccessImage& image = *images_[i];
    for (const AccessImage::Segment& segment : image.segments()) {
      const uint64_t end = segment.first_filler + (segment.end - segment.begin);
      if (segment.readable || first < segment.first_filler || first >= end) continue;
      // The shortest suffix of the segment that changes a result begins with its last such byte.
      uint64_t last = first;
      uint64_t behind = end;
      while (behind - last > 1) {
        const uint64_t middle = last + (behind - last) / 2;
        (filler_matters(middle, end) ? last : behind) = middle;
      }
      const int64_t shift =
          image.AllocationOffset(segment.begin) - static_cast<int64_t>(segment.first_filler);
      return FalseAccess(image, static_cast<int64_t>(first) + shift,
                         static_cast<int64_t>(last) + 1 + shift, Access::kRead);
    }
  }
  return Wrong("reads bytes that it does not declare");
}

void AccessChecker::AllowGuardReads(bool allowed) {
  for (size_t i = 0; i < image_count_; ++i) images_[i]->AllowGuardReads(kProbeCopy, allowed);
  shared_.AllowGuardReads(allowed);
  constants_.AllowGuardReads(allowed);
}

Error AccessChecker::FarAccess(const std::byte* address) {
  // A read goes through where guards may be read; a write still ends the run.
  AllowGuardReads(true);
  const bool wrote = RunOn(kProbeCopy, {}).has_value();
  AllowGuardReads(false);
  const Access access = wrote ? Access::kWrite : Access::kRead;
  for (size_t i = 0; i < image_count_; ++i) {
    if (const auto offset = images_[i]->Locate(kFirstCopy, address)) {
      return FalseAccess(*images_[i], *offset, *offset + 1, access);
    }
  }
  for (const auto& [side, name] :
       {std::pair(&shared_, "its shared memory"), std::pair(&constants_, "its constants")}) {
    if (const auto offset = side->Locate(address)) {
      return Wrong(fmt::format("{} byte {} of {} of {} bytes", wrote ? "writes" : "reads", *offset,
                               name, side->size_bytes()));
    }
  }
  return Wrong(fmt::format("touches memory further than {} bytes from all that it binds",
                           GuardedMemory::kGuardBytes));
}

Error AccessChecker::FalseAccess(const AccessImage& image, int64_t begin, int64_t end,
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
  const CpuBinding& binding = bindings_[nearest];
  const std::string where =
      distance(nearest) == 0
          ? fmt::format("which binding {} declares as {}", nearest, AccessName(binding.access))
          : fmt::format("outside its nearest binding {} [{}, {})", nearest, binding.range.begin,
                        binding.range.end);
  const auto allocation_end = static_cast<int64_t>(image.allocation_bytes());
  const std::string size = begin < 0 || end > allocation_end
                               ? fmt::format("; the buffer has {} bytes", allocation_end)
                               : "";
  return Wrong(fmt::format("{} bytes [{}, {}) of buffer \"{}\", {}{}",
                           access == Access::kRead ? "reads" : "writes", begin, end, image.label(),
                           where, size));
}

Error AccessChecker::Wrong(std::string_view what) const {
  return Error(ErrorCode::kInvalidArgument, std::string(dispatch_->kernel_name),
               fmt::format("Dispatch {} of command buffer {}, kernel \"{}\", {}.",
                           dispatch_->number, number_, dispatch_->kernel_name, what));
}

}  // namespace assay::gpu
