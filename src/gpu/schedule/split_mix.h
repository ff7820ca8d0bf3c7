// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): the same
// numbers from the same seed on every machine.
#ifndef ASSAY_GPU_SCHEDULE_SPLIT_MIX_H_
#define ASSAY_GPU_SCHEDULE_SPLIT_MIX_H_

#include <cstdint>

namespace assay::gpu {

class SplitMix final {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  // In [0, limit); `limit` is not 0 and far below 2^64, so that the remainder is as good as fair.
  uint64_t Below(uint64_t limit) { return Next() % limit; }

 private:
  uint64_t state_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SCHEDULE_SPLIT_MIX_H_
