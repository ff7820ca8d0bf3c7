#include "gpu/cpu/access_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gpu/backend.h"

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
    for (const CpuDispatch& dispatch : list.DispatchesOf(group)) {
      if (cancelled_ && cancelled_()) return Fail(StoppedError());
      ASSAY_TRY(RunDispatch(dispatch));
    }
  }
  return {};
}

Status AccessChecker::RunDispatch(const CpuDispatch& dispatch) {
  dispatch_ = &dispatch;
  ASSAY_TRY(images_.Make(list_->BindingsOf(dispatch)));
  ASSAY_TRY(shared_.Resize(dispatch.shared_bytes));
  ASSAY_TRY(constants_.Resize(dispatch.constant_bytes));
  const Conditions first;
  const Conditions second{{0, images_.filler_bytes()}, true, true, true};
  if (const auto ended = RunOn(kFirstCopy, first)) return Fail(FarAccess(*ended));
  ASSAY_TRY(CheckSides(first));
  // What only other filler leads astray was led there by filler.
  if (RunOn(kSecondCopy, second)) return Fail(FindUndeclaredRead());
  ASSAY_TRY(CheckSides(second));
  if (const auto written = images_.UndeclaredWrite()) return Fail(Wrong(*written));
  if (images_.ResultsDiffer(kSecondCopy, second.filler)) return Fail(FindUndeclaredRead());
  images_.Adopt();
  return {};
}

// --- Runs

struct AccessChecker::RunContext {
  const CpuDispatch* dispatch;
  CpuKernelArgs args;
  std::byte shared_filler;
  bool reversed;
};

std::optional<const std::byte*> AccessChecker::RunOn(int copy, const Conditions& conditions) {
  images_.Fill(copy, conditions.filler);
  std::vector<std::byte*> pointers;
  for (size_t i = 0; i < images_.bindings().size(); ++i) {
    pointers.push_back(images_.BytesOf(copy, i));
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
    return RunOn(kProbeCopy, conditions) || images_.ResultsDiffer(kProbeCopy, conditions.filler);
  };
  const auto filler_matters = [&](FillerRange filler) {
    Conditions conditions;
    conditions.filler = filler;
    return matters(conditions);
  };
  Conditions shared;
  shared.other_shared = true;
  Conditions constants;
  constants.other_constants = true;
  Conditions reversed;
  reversed.reversed = true;
  if (matters({})) return Wrong("does not give the same result twice");
  if (!filler_matters({0, images_.filler_bytes()})) {
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
  return Wrong(images_.UndeclaredRead(filler_matters));
}

void AccessChecker::AllowGuardReads(bool allowed) {
  images_.AllowGuardReads(kProbeCopy, allowed);
  shared_.AllowGuardReads(allowed);
  constants_.AllowGuardReads(allowed);
}

Error AccessChecker::FarAccess(const std::byte* address) {
  // A read goes through where guards may be read; a write still ends the run.
  AllowGuardReads(true);
  const bool wrote = RunOn(kProbeCopy, {}).has_value();
  AllowGuardReads(false);
  const Access access = wrote ? Access::kWrite : Access::kRead;
  if (const auto text = images_.AccessAt(kFirstCopy, address, access)) return Wrong(*text);
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

Error AccessChecker::Wrong(std::string_view what) const {
  return Error(ErrorCode::kInvalidArgument, std::string(dispatch_->kernel_name),
               fmt::format("Dispatch {} of command buffer {}, kernel \"{}\", {}.",
                           dispatch_->number, number_, dispatch_->kernel_name, what));
}

}  // namespace assay::gpu
