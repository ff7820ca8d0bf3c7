// How much memory the system has left for this program.
#ifndef ASSAY_BASE_HOST_MEMORY_H_
#define ASSAY_BASE_HOST_MEMORY_H_

#include <cstdint>

namespace assay {

// At the moment of asking; other programs take and give.
struct HostMemory {
  // Of the machine, or the address space that the program may have, whichever is less.
  uint64_t total_bytes = 0;
  // What the program can still get of it, swap space included.
  uint64_t free_bytes = 0;
  // The address space (`ulimit -v`) is what leaves the least.
  bool limited = false;
};

HostMemory ReadHostMemory();

}  // namespace assay

#endif  // ASSAY_BASE_HOST_MEMORY_H_
