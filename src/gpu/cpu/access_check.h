// Proves that a dispatch touches what it declares and nothing else (E6).
#ifndef ASSAY_GPU_CPU_ACCESS_CHECK_H_
#define ASSAY_GPU_CPU_ACCESS_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assay/base.h"

#include "gpu/check/access_image.h"
#include "gpu/check/dispatch_images.h"
#include "gpu/cpu/command_list.h"
#include "gpu/cpu/fault_trap.h"

namespace assay::gpu {

// Runs command lists on the calling thread, one dispatch after another, and each dispatch on copies
// of what it binds (access_image.h). A copy holds the declared readable bytes; all others, also
// those around the bindings as far as kMarginBytes, hold filler, and behind them lie guards.
//
// Every dispatch runs twice, the second time over other filler and with its workgroups in the
// reverse order.
//
//   Writes: filler, or a byte declared read-only, that has changed was written undeclared.
//   Reads: results that differ were made from bytes that were not declared readable; which ones,
//   further runs find out by bisection. Shared memory, which each workgroup must write before it
//   reads it, and what follows the constants are checked in the same way.
//   Both, further away: the access ends the run, with its address.
//
// Only bytes declared writable go back to the buffers, and only when all of that holds, so that a
// false declaration harms nothing. docs/runtime.md says what is not seen.
class AccessChecker final {
 public:
  // `cancelled`, where there is one, is asked before each dispatch.
  explicit AccessChecker(std::function<bool()> cancelled = {}) : cancelled_(std::move(cancelled)) {}
  AccessChecker(const AccessChecker&) = delete;
  AccessChecker& operator=(const AccessChecker&) = delete;

  // Error kInvalidArgument at the first false declaration, naming dispatch, kernel, binding, buffer
  // and bytes; what follows it in the list does not run. Error kAllocation without the memory to
  // check in; kCancelled. `number` is the command buffer's in its queue, from 1.
  Status Run(const CommandList& list, uint64_t number);

 private:
  // How one run of the dispatch differs from the first; nothing of it may change a result.
  struct Conditions {
    FillerRange filler;
    bool other_shared = false;
    bool other_constants = false;  // What lies around them.
    bool reversed = false;         // The last workgroup first.
  };
  struct RunContext;

  Status RunDispatch(const CpuDispatch& dispatch);
  // Returns the address at which a run ended that left the guards' reach or met them.
  std::optional<const std::byte*> RunOn(int copy, const Conditions& conditions);
  // Of shared memory and constants, after a run under those conditions.
  Status CheckSides(const Conditions& conditions) const;
  // The error of a dispatch whose results depend on what the runs have apart.
  Error FindUndeclaredRead();
  // The error of the first run, which ended at `address`.
  Error FarAccess(const std::byte* address);
  void AllowGuardReads(bool allowed);
  // "Dispatch 3 of command buffer 1, kernel "add", WHAT."
  Error Wrong(std::string_view what) const;

  const std::function<bool()> cancelled_;
  const CommandList* list_ = nullptr;
  uint64_t number_ = 0;
  FaultTrap* trap_ = nullptr;
  const CpuDispatch* dispatch_ = nullptr;
  DispatchImages images_;
  SideMemory shared_;
  SideMemory constants_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_ACCESS_CHECK_H_
