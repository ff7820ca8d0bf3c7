// Piece: some bytes of a finding, as one access of a dispatch meets them.
#ifndef ASSAY_HAZARD_PIECE_H_
#define ASSAY_HAZARD_PIECE_H_

#include <cstdint>
#include <vector>

#include "assay/base.h"
#include "assay/hazard.h"

#include "hazard/buffer_table.h"

namespace assay::hazard {

// Stands for the buffer where a dispatch that declares no accesses is one side.
inline constexpr BufferIndex kAllMemory = UINT32_MAX;

struct Piece {
  Rule rule = Rule::kReadAfterWrite;
  bool certain = true;
  uint32_t first = 0;  // Ordinal of the earlier dispatch; 0 for notes.
  BufferIndex buffer = kAllMemory;
  ByteRange range;
  bool operator==(const Piece&) const = default;
};

// Sorts by earlier dispatch, buffer, rule and place, and joins what overlaps or touches. Bytes that
// are both certain and possible are certain.
void MergePieces(std::vector<Piece>* pieces);

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_PIECE_H_
