// What a model, or a cache, needs of a device's memory, and how to say that it is not there.
#ifndef ASSAY_LLM_MEMORY_NEED_H_
#define ASSAY_LLM_MEMORY_NEED_H_

#include <cstdint>
#include <string>
#include <utility>

#include "assay/base.h"
#include "assay/gpu.h"

namespace assay::llm {

// Thread-compatible.
class MemoryNeed final {
 public:
  // `what` begins a sentence: "The weights of \"m.gguf\"". What is free counts from here.
  MemoryNeed(const gpu::Device& device, std::string what, uint64_t needed_bytes)
      : memory_(device.memory()),
        device_(device.info().name),
        what_(std::move(what)),
        needed_bytes_(needed_bytes) {}

  // Error kAllocation where the device would promise what it has not, and the program would be
  // ended for it later.
  Status Check() const;

  // `error`, when it is of code kAllocation, with what is needed in all and what was free.
  Error Explain(Error error) const;

 private:
  // "The weights of \"m.gguf\" take 13.1 MiB of memory, and the device \"cpu (2 threads)\" has
  // 24105.0 MiB, of which 2.0 MiB are free."
  // With `before`, of an earlier moment.
  std::string Sentence(bool before) const;

  gpu::DeviceMemory memory_;
  std::string device_;
  std::string what_;
  uint64_t needed_bytes_;
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_MEMORY_NEED_H_
