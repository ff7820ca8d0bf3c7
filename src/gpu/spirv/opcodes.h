// The instructions of SPIR-V: which words of one are ids, and what kind of work it is.
#ifndef ASSAY_GPU_SPIRV_OPCODES_H_
#define ASSAY_GPU_SPIRV_OPCODES_H_

#include <cstdint>
#include <string_view>

namespace assay::gpu::spirv {

enum class InstructionClass : uint8_t {
  kDebug,      // Says something of the source alone.
  kStructure,  // Frames functions and blocks; does nothing by itself.
  kAddress,    // Makes an address.
  kArithmetic,
  kAtomic,
  kBarrier,
  kCall,
  kComposite,  // Takes vectors and structures apart and puts them together.
  kControl,    // Jumps, joins, ends.
  kConversion,
  kImage,
  kLogic,  // Compares and selects.
  kMath,   // An instruction of an extended set: exp, fma.
  kMemory,
  kOther,
  kSubgroup,
  kCount,
};

// "arithmetic", "memory"; empty for the classes that are not counted.
std::string_view ClassName(InstructionClass instruction_class);

struct Opcode {
  uint32_t number = 0;
  InstructionClass instruction_class = InstructionClass::kOther;
  // The words behind the first, a letter each: t the result's type, r the result, i an id, n a
  // number, s a string; m numbers of a memory access and ids where its bits ask for them; o an
  // opcode and its operands. At the end, for any number: * ids, + numbers, p pairs of an id and a
  // number, S pairs of a number as wide as the selector and an id.
  std::string_view operands;
};

// Null for a number that no shader has.
const Opcode* FindOpcode(uint32_t number);

}  // namespace assay::gpu::spirv

#endif  // ASSAY_GPU_SPIRV_OPCODES_H_
