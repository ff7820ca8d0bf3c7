#include "prove/program_code.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <capstone/capstone.h>
#include <fmt/format.h>
#include <link.h>

#include "base/hash.h"
#include "prove/elf_image.h"

namespace assay::prove {
namespace {

// A kernel that reaches more functions than this calls into something that is no kernel code.
constexpr size_t kMaxFunctions = 4096;

struct Instruction {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;  // The field of a jump's target or of a RIP-relative address is zero.
  std::string_view name;       // Of a jump or call, whose bytes depend on the distance.
  std::string_view kind;
  std::optional<uint64_t> jump;  // Where a jump or call goes.
  std::optional<uint64_t> data;  // What a RIP-relative operand names.
  bool takes_address = false;    // It computes that address and reads nothing.
  bool indirect = false;         // A jump or call through that address.
  uint32_t data_bytes = 0;       // What it reads there.
};

// What one function is, apart from the functions that it names.
struct Function {
  std::string digest;
  std::vector<uint64_t> named;  // Where they begin, in the order of the code.
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> instructions;
};

// An instruction of the VEX or EVEX encoding that the disassembler does not know. Returns its
// length, 0 when it is none. (Intel SDM volume 2, sections 2.3 and 2.7.)
size_t DecodeVector(std::span<const uint8_t> code, Instruction* out) {
  if (code.size() < 4) return 0;
  const bool evex = code[0] == 0x62;
  if (!evex && code[0] != 0xC4 && code[0] != 0xC5) return 0;
  const size_t prefix_bytes = evex ? 4 : code[0] == 0xC4 ? 3 : 2;
  const uint8_t map = evex ? code[1] & 7 : code[0] == 0xC4 ? code[1] & 31 : 1;
  size_t length = prefix_bytes + 2;
  if (map < 1 || map > 3 || code.size() < length) return 0;
  const uint8_t opcode = code[prefix_bytes];
  const uint8_t mod = code[prefix_bytes + 1] >> 6;
  const uint8_t rm = code[prefix_bytes + 1] & 7;
  const bool rip = mod == 0 && rm == 5;
  if (mod != 3 && rm == 4) {
    if (code.size() <= length) return 0;
    const bool displacement_only = mod == 0 && (code[length] & 7) == 5;
    length += displacement_only ? 5 : 1;
  }
  const size_t displacement_at = length;
  if (rip || mod == 2) length += 4;
  if (mod == 1) length += 1;
  const bool has_immediate =
      map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xC2 ||
                                (opcode >= 0xC4 && opcode <= 0xC6)));
  if (has_immediate) length += 1;
  if (length > code.size()) return 0;
  out->bytes.assign(code.begin(), code.begin() + static_cast<ptrdiff_t>(length));
  out->kind = "vector";
  if (rip) {
    int32_t displacement = 0;
    std::memcpy(&displacement, code.data() + displacement_at, sizeof(displacement));
    out->data = out->address + length + static_cast<uint64_t>(int64_t{displacement});
    const uint8_t last_prefix = code[prefix_bytes - 1];
    const bool wide = (code[prefix_bytes == 4 ? 2 : prefix_bytes - 1] & 0x80) != 0;
    out->data_bytes = !evex                       ? (last_prefix & 4) != 0 ? 32 : 16
                      : (last_prefix & 0x10) != 0 ? wide ? 8 : 4
                                                  : 16U << ((last_prefix >> 5) & 3);
    std::fill_n(out->bytes.begin() + static_cast<ptrdiff_t>(displacement_at), 4, uint8_t{0});
  }
  return length;
}

bool IsPadding(const cs_insn& raw) {
  return raw.id == X86_INS_NOP ||
         (raw.id == X86_INS_XCHG && raw.size <= 2 && raw.bytes[raw.size - 1] == 0x90) ||
         raw.id == X86_INS_FNOP;
}

std::string_view KindOf(const cs_insn& raw, const cs_detail& detail) {
  const auto in_group = [&](uint8_t group) {
    const auto* end = detail.groups + detail.groups_count;
    return std::find(detail.groups, end, group) != end;
  };
  if (in_group(CS_GRP_CALL)) return "call";
  if (in_group(CS_GRP_JUMP) || in_group(CS_GRP_RET)) return "branch";
  const cs_x86& x86 = detail.x86;
  bool reads = false;
  bool writes = false;
  for (uint8_t i = 0; i < x86.op_count; ++i) {
    const cs_x86_op& op = x86.operands[i];
    if (op.type == X86_OP_REG && ((op.reg >= X86_REG_XMM0 && op.reg <= X86_REG_ZMM31) ||
                                  (op.reg >= X86_REG_K0 && op.reg <= X86_REG_K7))) {
      return "vector";
    }
    if (op.type != X86_OP_MEM || raw.id == X86_INS_LEA) continue;
    writes |= (op.access & CS_AC_WRITE) != 0;
    reads |= (op.access & CS_AC_READ) != 0;
  }
  return writes ? "store" : reads ? "load" : "other";
}

}  // namespace

struct ProgramCode::State {
  explicit State(ElfImage opened) : image(std::move(opened)) {}
  ~State() {
    if (scratch != nullptr) cs_free(scratch, 1);
    if (handle != 0) cs_close(&handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<std::vector<Instruction>> Decode(const ElfImage::Symbol& symbol);
  Instruction Describe(const cs_insn& raw) const;
  // The name of the other library's function that the stub at `address` goes to; empty when there
  // is no stub.
  std::string_view StubTarget(uint64_t address);
  std::string DescribeData(const Instruction& instruction, const std::vector<Instruction>& code,
                           const ElfImage::Symbol& symbol, Function* function) const;
  std::string DescribeAddress(uint64_t address, Function* function) const;
  Result<const Function*> FunctionAt(uint64_t address);

  ElfImage image;
  // What is added to an address of the file to get the caller's.
  uint64_t load_address = 0;
  csh handle = 0;
  cs_insn* scratch = nullptr;
  std::unordered_map<uint64_t, Function> functions;
};

Instruction ProgramCode::State::Describe(const cs_insn& raw) const {
  Instruction out;
  out.address = raw.address;
  out.bytes.assign(raw.bytes, raw.bytes + raw.size);
  const cs_x86& x86 = raw.detail->x86;
  out.kind = KindOf(raw, *raw.detail);
  const bool jumps = out.kind == "call" || out.kind == "branch";
  for (uint8_t i = 0; i < x86.op_count; ++i) {
    const cs_x86_op& op = x86.operands[i];
    if (jumps && op.type == X86_OP_IMM && out.bytes[0] != 0xC2) {
      out.jump = static_cast<uint64_t>(op.imm);
      out.name = cs_insn_name(handle, raw.id);
    }
    if (op.type == X86_OP_MEM && op.mem.base == X86_REG_RIP) {
      out.data = raw.address + raw.size + static_cast<uint64_t>(op.mem.disp);
      out.takes_address = raw.id == X86_INS_LEA;
      out.indirect = jumps;
      out.data_bytes = op.size;
      const uint8_t at = x86.encoding.disp_offset;
      for (size_t k = at; k < size_t{at} + 4 && k < out.bytes.size(); ++k) out.bytes[k] = 0;
    }
  }
  return out;
}

Result<std::vector<Instruction>> ProgramCode::State::Decode(const ElfImage::Symbol& symbol) {
  const std::span<const uint8_t> code = image.Bytes(symbol.address, symbol.size_bytes);
  std::vector<Instruction> instructions;
  const uint8_t* at = code.data();
  size_t left = code.size();
  uint64_t address = symbol.address;
  while (left > 0) {
    if (cs_disasm_iter(handle, &at, &left, &address, scratch)) {
      // A jump to padding goes to what stands behind it.
      if (!IsPadding(*scratch)) instructions.push_back(Describe(*scratch));
      continue;
    }
    Instruction vector;
    vector.address = address;
    const size_t length = DecodeVector({at, left}, &vector);
    if (length == 0) {
      return Fail(ErrorCode::kUnsupported, std::string(symbol.name),
                  fmt::format("The instruction at byte {} of the function \"{}\" is unknown.",
                              address - symbol.address, symbol.name));
    }
    instructions.push_back(std::move(vector));
    at += length;
    left -= length;
    address += length;
  }
  if (instructions.empty()) {
    return Fail(ErrorCode::kUnsupported, std::string(symbol.name),
                fmt::format("The function \"{}\" has no code in the file.", symbol.name));
  }
  return instructions;
}

std::string_view ProgramCode::State::StubTarget(uint64_t address) {
  constexpr size_t kStubBytes = 16;
  const std::span<const uint8_t> code = image.Bytes(address, kStubBytes);
  const uint8_t* at = code.data();
  size_t left = code.size();
  while (left > 0 && cs_disasm_iter(handle, &at, &left, &address, scratch)) {
    const Instruction instruction = Describe(*scratch);
    if (!instruction.indirect) continue;
    const ElfImage::Binding* binding = image.BindingAt(*instruction.data);
    return binding == nullptr ? std::string_view() : binding->name;
  }
  return {};
}

// Of an address of this file that an instruction or a table holds.
std::string ProgramCode::State::DescribeAddress(uint64_t address, Function* function) const {
  if (const ElfImage::Symbol* symbol = image.FunctionAt(address)) {
    function->named.push_back(symbol->address);
    return fmt::format("function+{}", address - symbol->address);
  }
  const ElfImage::Section* section = image.SectionAt(address);
  const ElfImage::Symbol* object = image.ObjectAt(address);
  if (object != nullptr && section != nullptr) {
    const uint64_t within = address - object->address;
    const auto bytes = image.Bytes(object->address, object->size_bytes);
    if (section->writable || bytes.empty()) return fmt::format("{}+{}", object->name, within);
    return fmt::format("{}+{}", HexDigest(std::as_bytes(bytes)), within);
  }
  return "data";
}

// The instructions that a switch's table sends to, one number each; empty where `address` holds no
// table of `symbol`.
static std::string DescribeTable(const ElfImage& image, uint64_t address,
                                 const std::vector<Instruction>& code,
                                 const ElfImage::Symbol& symbol) {
  std::string text;
  for (uint64_t entry = address;; entry += sizeof(int32_t)) {
    const auto bytes = image.Bytes(entry, sizeof(int32_t));
    if (bytes.empty()) break;
    int32_t distance = 0;
    std::memcpy(&distance, bytes.data(), sizeof(distance));
    const uint64_t target = address + static_cast<uint64_t>(int64_t{distance});
    if (target < symbol.address || target - symbol.address >= symbol.size_bytes) break;
    const auto found = std::ranges::lower_bound(code, target, {}, &Instruction::address);
    if (found == code.end()) break;
    text += fmt::format(" {}", found - code.begin());
  }
  return text;
}

std::string ProgramCode::State::DescribeData(const Instruction& instruction,
                                             const std::vector<Instruction>& code,
                                             const ElfImage::Symbol& symbol,
                                             Function* function) const {
  const uint64_t address = *instruction.data;
  if (const ElfImage::Binding* binding = image.BindingAt(address)) {
    if (!binding->name.empty()) return fmt::format("import {}", binding->name);
    return DescribeAddress(binding->address, function);
  }
  if (instruction.takes_address) {
    std::string described = DescribeAddress(address, function);
    if (described != "data") return described;
    return "table" + DescribeTable(image, address, code, symbol);
  }
  const ElfImage::Section* section = image.SectionAt(address);
  if (section != nullptr && !section->writable) {
    const auto bytes = image.Bytes(address, instruction.data_bytes);
    if (!bytes.empty()) return HexDigest(std::as_bytes(bytes));
  }
  return DescribeAddress(address, function);
}

Result<const Function*> ProgramCode::State::FunctionAt(uint64_t address) {
  if (const auto known = functions.find(address); known != functions.end()) return &known->second;
  const ElfImage::Symbol* symbol = image.FunctionAt(address);
  if (symbol == nullptr || symbol->address != address) {
    return Fail(ErrorCode::kNotFound, "",
                fmt::format("No function of the program begins at address {:#x}.", address));
  }
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Instruction> code, Decode(*symbol));
  Function function;
  function.bytes = symbol->size_bytes;
  Hasher hasher;
  for (const Instruction& instruction : code) {
    ++function.instructions[std::string(instruction.kind)];
    if (!instruction.jump) {
      hasher.Update(std::as_bytes(std::span(instruction.bytes)));
      if (instruction.data) hasher.Update(DescribeData(instruction, code, *symbol, &function));
    } else {
      hasher.Update(instruction.name);
      const uint64_t target = *instruction.jump;
      if (target - symbol->address < symbol->size_bytes) {
        const auto found = std::ranges::lower_bound(code, target, {}, &Instruction::address);
        hasher.Update(fmt::format(" {}", found - code.begin()));
      } else if (image.FunctionAt(target) != nullptr) {
        hasher.Update(DescribeAddress(target, &function));
      } else if (const std::string_view name = StubTarget(target); !name.empty()) {
        hasher.Update(fmt::format("import {}", name));
      } else {
        return Fail(ErrorCode::kUnsupported, std::string(symbol->name),
                    fmt::format("The function \"{}\" jumps to {:#x}, where no function is known.",
                                symbol->name, target));
      }
    }
    hasher.Update("\n");
  }
  function.digest = hasher.HexDigest();
  return &functions.emplace(address, std::move(function)).first->second;
}

ProgramCode::ProgramCode(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProgramCode::~ProgramCode() = default;

Result<std::unique_ptr<ProgramCode>> ProgramCode::Open(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(ElfImage image, ElfImage::Open(path));
  auto state = std::make_unique<State>(std::move(image));
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &state->handle) != CS_ERR_OK ||
      cs_option(state->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK) {
    return Fail(ErrorCode::kInternal, path, "The disassembler does not start.");
  }
  state->scratch = cs_malloc(state->handle);
  if (state->scratch == nullptr) {
    return Fail(ErrorCode::kAllocation, path, "There is no memory for the disassembler.");
  }
  return std::unique_ptr<ProgramCode>(new ProgramCode(std::move(state)));
}

Result<std::unique_ptr<ProgramCode>> ProgramCode::OpenRunning() {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<ProgramCode> program, Open("/proc/self/exe"));
  // The program itself is called for first.
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &program->state_->load_address);
  return program;
}

Result<CodeDigest> ProgramCode::DigestOf(uint64_t address) {
  address -= state_->load_address;
  // In order of first naming, which the code alone decides.
  std::vector<uint64_t> order = {address};
  std::unordered_map<uint64_t, size_t> index = {{address, 0}};
  CodeDigest result;
  Hasher hasher;
  for (size_t i = 0; i < order.size(); ++i) {
    ASSAY_ASSIGN_OR_RETURN(const Function* function, state_->FunctionAt(order[i]));
    hasher.Update(function->digest);
    for (const uint64_t named : function->named) {
      const auto [entry, added] = index.emplace(named, order.size());
      if (added) order.push_back(named);
      hasher.Update(fmt::format(" {}", entry->second));
    }
    hasher.Update("\n");
    result.code_bytes += function->bytes;
    for (const auto& [kind, count] : function->instructions) result.instructions[kind] += count;
    if (order.size() > kMaxFunctions) {
      return Fail(
          ErrorCode::kUnsupported, "",
          fmt::format("The code at {:#x} reaches more than {} functions.", address, kMaxFunctions));
    }
  }
  result.digest = hasher.HexDigest();
  return result;
}

}  // namespace assay::prove
