#include "gpu/spirv/module.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "gpu/spirv/opcodes.h"

namespace assay::gpu::spirv {
namespace {

// Numbers of the SPIR-V specification, sections 2.3 and 3.
constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;
enum Op : uint32_t {
  kExtension = 10,
  kExtInstImport = 11,
  kExtInst = 12,
  kExecutionMode = 16,
  kTypeBool = 20,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeVector = 23,
  kTypeMatrix = 24,
  kTypeArray = 28,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstant = 43,
  kConstantComposite = 44,
  kSpecConstant = 50,
  kSpecConstantComposite = 51,
  kFunction = 54,
  kFunctionEnd = 56,
  kVariable = 59,
  kDecorate = 71,
  kExecutionModeId = 331,
};
constexpr uint32_t kModeLocalSize = 17;
constexpr uint32_t kModeLocalSizeId = 38;
constexpr uint32_t kDecorationSpecId = 1;
constexpr uint32_t kDecorationBuiltIn = 11;
constexpr uint32_t kBuiltInWorkgroupSize = 25;
constexpr uint32_t kStorageWorkgroup = 4;
constexpr uint32_t kAccessAligned = 0x2;
constexpr uint32_t kAccessIds = 0x8 | 0x10;

struct Layout {
  uint64_t bytes = 0;
  uint64_t alignment = 1;
};

uint64_t Multiply(uint64_t a, uint64_t b) {
  return b != 0 && a > std::numeric_limits<uint32_t>::max() / b ? uint64_t{1} << 62 : a * b;
}

// Goes once through the words. Nothing is allocated for an id before it appears.
class Reader {
 public:
  Reader(std::span<const uint32_t> words, std::span<const uint32_t> specialization)
      : words_(words), specialization_(specialization) {}

  Result<ModuleFacts> Read() {
    if (words_.size() > kMaxWords) {
      return Broken(0, fmt::format("has more than {} words", kMaxWords));
    }
    if (words_.size() < kHeaderWords || words_[0] != kMagic) return Broken(0, "is no module");
    // The version counts; the generator and the bound of the ids are the compiler's.
    code_.push_back(words_[1]);
    for (size_t at = kHeaderWords; at < words_.size();) {
      const uint32_t length = words_[at] >> 16;
      if (length == 0 || length > words_.size() - at) return Broken(at, "is cut short");
      ASSAY_TRY(Take(at, words_.subspan(at, length)));
      at += length;
    }
    ASSAY_TRY(Finish());
    return std::move(facts_);
  }

 private:
  static tl::unexpected<Error> Broken(size_t at, std::string_view what) {
    return Fail(ErrorCode::kFormat, "SPIR-V", fmt::format("The SPIR-V {} at word {}.", what, at));
  }

  Status Take(size_t at, std::span<const uint32_t> instruction) {
    const Opcode* const opcode = FindOpcode(instruction[0] & 0xffff);
    if (opcode == nullptr) {
      return Fail(ErrorCode::kUnsupported, "SPIR-V",
                  fmt::format("The SPIR-V has the instruction {} at word {}, which is none of a "
                              "compute shader's.",
                              instruction[0] & 0xffff, at));
    }
    if (opcode->instruction_class == InstructionClass::kDebug || SaysNothing(instruction)) {
      return {};
    }
    in_function_ |= opcode->number == kFunction;
    code_.push_back(instruction[0]);
    if (!Normalize(*opcode, instruction)) {
      return Broken(at,
                    fmt::format("has an instruction {} that is not well formed", opcode->number));
    }
    if (in_function_) {
      const std::string_view name = ClassName(opcode->instruction_class);
      if (!name.empty()) ++facts_.instructions[std::string(name)];
    } else {
      Learn(opcode->number, instruction);
    }
    in_function_ &= opcode->number != kFunctionEnd;
    return {};
  }

  // Instructions of a set that has no meaning for what is computed.
  bool SaysNothing(std::span<const uint32_t> instruction) {
    const uint32_t number = instruction[0] & 0xffff;
    if (number == kExtension && instruction.size() > 1) {
      return TextOf(instruction.subspan(1)) == "SPV_KHR_non_semantic_info";
    }
    if (number == kExtInstImport && instruction.size() > 2 &&
        TextOf(instruction.subspan(2)).starts_with("NonSemantic.")) {
      debug_sets_.insert(instruction[1]);
      return true;
    }
    return number == kExtInst && instruction.size() > 3 && debug_sets_.contains(instruction[3]);
  }

  // Up to the first zero byte.
  static std::string TextOf(std::span<const uint32_t> words) {
    std::string text;
    for (const uint32_t word : words) {
      for (uint32_t shift = 0; shift < 32; shift += 8) {
        const char byte = static_cast<char>(word >> shift & 0xff);
        if (byte == '\0') return text;
        text += byte;
      }
    }
    return text;
  }

  uint32_t Renumbered(uint32_t id) {
    return ids_.try_emplace(id, static_cast<uint32_t>(ids_.size() + 1)).first->second;
  }

  // The words of one instruction that Normalize has not taken yet.
  struct Rest {
    std::span<const uint32_t> words;
    bool empty() const { return words.empty(); }
    uint32_t Next() {
      const uint32_t word = words.front();
      words = words.subspan(1);
      return word;
    }
  };

  // Puts the operands into code_. Operands that may be left out are at the end.
  bool Normalize(const Opcode& opcode, std::span<const uint32_t> instruction) {
    Rest rest{instruction.subspan(1)};
    std::string_view operands = opcode.operands;
    // The result's type, and the selector of a switch.
    uint32_t type = 0;
    const uint32_t first_id = rest.empty() ? 0 : rest.words.front();
    while (!rest.empty()) {
      if (operands.empty()) return false;
      const char kind = operands.front();
      operands.remove_prefix(1);
      switch (kind) {
        case 't':
          type = rest.words.front();
          PushId(&rest);
          break;
        case 'r':
          if (type != 0) types_[rest.words.front()] = type;
          PushId(&rest);
          break;
        case 'i':
          PushId(&rest);
          break;
        case 'n':
          code_.push_back(rest.Next());
          break;
        case 's':
          if (!PushText(&rest)) return false;
          break;
        case 'm':
          if (!PushAccess(&rest)) return false;
          break;
        case 'o': {
          code_.push_back(rest.words.front());
          const Opcode* const inner = FindOpcode(rest.Next());
          if (inner == nullptr || !inner->operands.starts_with("tr")) return false;
          operands = inner->operands.substr(2);
          break;
        }
        case '*':
          while (!rest.empty()) PushId(&rest);
          break;
        case '+':
          while (!rest.empty()) code_.push_back(rest.Next());
          break;
        case 'p':
        case 'S':
          if (!PushPairs(kind == 'S' ? WordsOf(first_id) : 0, &rest)) return false;
          break;
        default:
          return false;
      }
    }
    return true;
  }

  void PushId(Rest* rest) { code_.push_back(Renumbered(rest->Next())); }

  bool PushText(Rest* rest) {
    while (!rest->empty()) {
      const uint32_t word = rest->Next();
      code_.push_back(word);
      // Any of the four bytes is zero.
      if (((word - 0x01010101U) & ~word & 0x80808080U) != 0) return true;
    }
    return false;
  }

  bool PushAccess(Rest* rest) {
    const uint32_t mask = rest->Next();
    code_.push_back(mask);
    if ((mask & kAccessAligned) != 0) {
      if (rest->empty()) return false;
      code_.push_back(rest->Next());
    }
    for (uint32_t bit = 0x8; bit <= 0x10; bit <<= 1) {
      if ((mask & kAccessIds & bit) == 0) continue;
      if (rest->empty()) return false;
      PushId(rest);
    }
    return true;
  }

  // Pairs of `number_words` numbers and an id; 0: an id and a number.
  bool PushPairs(size_t number_words, Rest* rest) {
    while (!rest->empty()) {
      if (rest->words.size() < std::max<size_t>(number_words, 1) + 1) return false;
      for (size_t i = 0; i < number_words; ++i) code_.push_back(rest->Next());
      PushId(rest);
      if (number_words == 0) code_.push_back(rest->Next());
    }
    return true;
  }

  // How many words a number of the type of the value `id` takes.
  size_t WordsOf(uint32_t id) const {
    const auto type = types_.find(id);
    if (type == types_.end()) return 1;
    const auto layout = layouts_.find(type->second);
    return layout != layouts_.end() && layout->second.bytes == 8 ? 2 : 1;
  }

  // Types, constants, decorations and variables, from the part in front of the functions.
  void Learn(uint32_t number, std::span<const uint32_t> i) {
    switch (number) {
      case kExecutionMode:
        if (i.size() == 6 && i[2] == kModeLocalSize) facts_.workgroup = {i[3], i[4], i[5]};
        break;
      case kExecutionModeId:
        if (i.size() == 6 && i[2] == kModeLocalSizeId) size_ids_ = {i[3], i[4], i[5]};
        break;
      case kDecorate:
        if (i.size() == 4 && i[2] == kDecorationSpecId) spec_ids_[i[1]] = i[3];
        if (i.size() == 4 && i[2] == kDecorationBuiltIn && i[3] == kBuiltInWorkgroupSize) {
          size_composite_ = i[1];
        }
        break;
      case kConstant:
      case kSpecConstant:
        if (i.size() >= 4) LearnConstant(i[2], i[3]);
        break;
      case kConstantComposite:
      case kSpecConstantComposite:
        if (i.size() == 6 && i[2] == size_composite_) size_ids_ = {i[3], i[4], i[5]};
        break;
      case kVariable:
        if (i.size() >= 4 && i[3] == kStorageWorkgroup) shared_types_.push_back(i[1]);
        break;
      default:
        LearnType(number, i);
        break;
    }
  }

  void LearnConstant(uint32_t id, uint32_t value) {
    const auto spec = spec_ids_.find(id);
    if (spec != spec_ids_.end() && spec->second < specialization_.size()) {
      value = specialization_[spec->second];
    }
    values_[id] = value;
  }

  void LearnType(uint32_t number, std::span<const uint32_t> i) {
    if (i.size() < 2) return;
    const uint32_t id = i[1];
    switch (number) {
      case kTypeBool:
        layouts_[id] = {4, 4};
        break;
      case kTypeInt:
      case kTypeFloat:
        if (i.size() >= 3) layouts_[id] = {i[2] / 8, std::max(i[2] / 8, 1U)};
        break;
      case kTypeVector:
      case kTypeMatrix:
        if (i.size() == 4) LearnArray(id, i[2], i[3]);
        break;
      case kTypeArray:
        if (i.size() == 4) {
          if (const auto count = values_.find(i[3]); count != values_.end()) {
            LearnArray(id, i[2], count->second);
          }
        }
        break;
      case kTypeStruct:
        LearnStruct(id, i.subspan(2));
        break;
      case kTypePointer:
        if (i.size() == 4) pointees_[id] = i[3];
        break;
      default:
        break;
    }
  }

  void LearnArray(uint32_t id, uint32_t element, uint32_t count) {
    const auto found = layouts_.find(element);
    if (found == layouts_.end()) return;
    const Layout layout = found->second;
    layouts_[id] = {Multiply(layout.bytes, count), layout.alignment};
  }

  void LearnStruct(uint32_t id, std::span<const uint32_t> members) {
    Layout whole;
    const auto align = [&](uint64_t alignment) {
      whole.bytes = (whole.bytes + alignment - 1) / alignment * alignment;
    };
    for (const uint32_t member : members) {
      const auto found = layouts_.find(member);
      if (found == layouts_.end()) return;
      align(found->second.alignment);
      whole.bytes = std::min(whole.bytes + found->second.bytes, uint64_t{1} << 62);
      whole.alignment = std::max(whole.alignment, found->second.alignment);
    }
    align(whole.alignment);
    layouts_[id] = whole;
  }

  Status Finish() {
    if (size_ids_) {
      std::array<uint32_t, 3> size = {};
      for (size_t i = 0; i < size.size(); ++i) {
        const auto value = values_.find((*size_ids_)[i]);
        if (value == values_.end()) {
          return Fail(ErrorCode::kUnsupported, "SPIR-V",
                      "The workgroup of the SPIR-V is not made of constants.");
        }
        size[i] = value->second;
      }
      facts_.workgroup = {size[0], size[1], size[2]};
    }
    for (const uint32_t pointer : shared_types_) {
      const auto pointee = pointees_.find(pointer);
      const auto layout =
          pointee == pointees_.end() ? layouts_.end() : layouts_.find(pointee->second);
      if (layout == layouts_.end()) {
        return Fail(ErrorCode::kUnsupported, "SPIR-V",
                    "The size of the SPIR-V's shared memory cannot be told: a type of it is not "
                    "made of numbers and constants.");
      }
      facts_.shared_bytes = std::min(facts_.shared_bytes + layout->second.bytes, uint64_t{1} << 62);
    }
    facts_.code_bytes = code_.size() * sizeof(uint32_t);
    code_.push_back(static_cast<uint32_t>(specialization_.size()));
    code_.insert(code_.end(), specialization_.begin(), specialization_.end());
    facts_.digest = HexDigest(std::as_bytes(std::span<const uint32_t>(code_)));
    return {};
  }

  std::span<const uint32_t> words_;
  std::span<const uint32_t> specialization_;
  ModuleFacts facts_;
  std::vector<uint32_t> code_;
  bool in_function_ = false;
  std::unordered_map<uint32_t, uint32_t> ids_;
  std::unordered_set<uint32_t> debug_sets_;
  // By id: of types their layout and what a pointer points to; of constants type and value.
  std::unordered_map<uint32_t, Layout> layouts_;
  std::unordered_map<uint32_t, uint32_t> pointees_;
  std::unordered_map<uint32_t, uint32_t> types_;
  std::unordered_map<uint32_t, uint32_t> values_;
  std::unordered_map<uint32_t, uint32_t> spec_ids_;
  std::optional<std::array<uint32_t, 3>> size_ids_;
  uint32_t size_composite_ = 0;
  std::vector<uint32_t> shared_types_;  // Pointers to what lies in shared memory.
};

}  // namespace

Result<ModuleFacts> ReadModule(std::span<const uint32_t> words,
                               std::span<const uint32_t> specialization) {
  return Reader(words, specialization).Read();
}

std::string DigestOf(std::span<const uint32_t> words, std::span<const uint32_t> specialization) {
  if (Result<ModuleFacts> facts = ReadModule(words, specialization); facts) {
    return std::move(facts->digest);
  }
  Hasher hasher;
  hasher.Update(std::as_bytes(words));
  hasher.Update(std::as_bytes(specialization));
  return hasher.HexDigest();
}

}  // namespace assay::gpu::spirv
