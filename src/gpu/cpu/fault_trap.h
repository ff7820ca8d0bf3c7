// Memory faults of a kernel as return values.
#ifndef ASSAY_GPU_CPU_FAULT_TRAP_H_
#define ASSAY_GPU_CPU_FAULT_TRAP_H_

#include <cstddef>
#include <optional>

namespace assay::gpu {

// While one lives, the process has a handler for SIGSEGV. A fault of a thread inside Run ends what
// it runs; any other fault goes to whoever handled it before. Many may live at once, on any
// threads; one thread each.
class FaultTrap final {
 public:
  FaultTrap();
  ~FaultTrap();
  FaultTrap(const FaultTrap&) = delete;
  FaultTrap& operator=(const FaultTrap&) = delete;

  // Runs body(context). Returns the address whose access ended it; nothing when it came to its end.
  // A body that is ended runs no destructors, so it must hold nothing.
  std::optional<const std::byte*> Run(void (*body)(void*), void* context);

 private:
  size_t slot_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_FAULT_TRAP_H_
