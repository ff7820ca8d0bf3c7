// Flow: whether a stream of dispatches that was fused and put into another order computes what the
// recorded one computes, judged by the bytes that each dispatch declares to touch.
//
// It shares no code with whoever made the other order, and it needs no device: both streams are
// plain lists, so that traces can be checked with it too.
#ifndef ASSAY_FLOW_H_
#define ASSAY_FLOW_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

namespace assay::flow {

// One access of a dispatch. Allocations are told apart by a number of the caller's; ranges are
// absolute within them, so that two views of one allocation are compared by the bytes they share.
struct Touch {
  uint64_t allocation = 0;
  ByteRange range;
  Access access = Access::kRead;
  // False where the range is an upper bound: such a write may leave bytes as they were.
  bool exact = true;
};

// A dispatch as it was recorded; without touches it touches everything.
using Recorded = std::vector<Touch>;

// A step of the emitted stream: a barrier, or a dispatch that stands for one or several of the
// recorded ones.
struct Emitted {
  bool barrier = false;
  std::vector<uint32_t> parts;  // Places in the recorded stream.
  std::vector<Touch> touches;
};

// Bytes that nobody needs once the stream has run, nor when it runs again.
struct Dead {
  uint64_t allocation = 0;
  ByteRange range;
};

enum class Fault : uint8_t {
  kMissing,     // A recorded dispatch is not emitted.
  kRepeated,    // One is emitted twice.
  kUnknown,     // A step stands for no recorded dispatch.
  kReversed,    // Two dispatches that share bytes, one of them writing, come the other way round.
  kUnordered,   // They come in order, but no barrier stands between them.
  kFusedFence,  // A dispatch that touches everything is fused with another.
  kStrayRead,   // A step reads bytes whose earlier value none of its parts reads.
  kStrayWrite,  // A step writes bytes that none of its parts writes.
  kLostRead,    // A value that is no longer written is read by another dispatch.
  kLostResult,  // A value that is no longer written outlives the stream.
};
std::string_view FaultName(Fault fault);

struct Finding {
  Fault fault = Fault::kMissing;
  // Places in the recorded stream; for kUnknown the place in the emitted one. `second` is that of
  // the later dispatch of a pair, or the same as `first`.
  uint32_t first = 0;
  uint32_t second = 0;
  // The bytes; empty where the fault is not about bytes.
  uint64_t allocation = 0;
  ByteRange range;
  bool operator==(const Finding&) const = default;
};
// "unordered: recorded dispatches 3 and 7 on bytes [0, 64) of allocation 2".
std::string Describe(const Finding& finding);

// Empty when the emitted stream is a legal form of the recorded one: every recorded dispatch is
// emitted once; wherever two of them share bytes that both still touch, and one writes, they keep
// their order with a barrier between them or stand in one step; a step touches nothing that its
// parts do not; and a value that a step no longer writes is read by nobody else, and is overwritten
// before the end or lies in `dead` bytes that are written before they are first read. At most one
// finding a pair and cause.
//
// Takes time proportional to the square of the dispatches that touch one byte, times the places in
// an allocation where ranges begin and end.
std::vector<Finding> CheckOrder(std::span<const Recorded> recorded,
                                std::span<const Emitted> emitted, std::span<const Dead> dead = {});

}  // namespace assay::flow

#endif  // ASSAY_FLOW_H_
