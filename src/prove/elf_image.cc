// The layout is that of the System V ABI, "Object Files", as <elf.h> declares it.
#include "prove/elf_image.h"

#include <algorithm>
#include <cstring>

#include <elf.h>
#include <fmt/format.h>

namespace assay::prove {

struct ElfImage::Header {
  Elf64_Shdr raw = {};
};

template <typename T>
bool ElfImage::Load(uint64_t offset, T* out) const {
  const size_t size = file_.bytes().size();
  if (offset > size || size - offset < sizeof(T)) return false;
  std::memcpy(out, file_.bytes().data() + offset, sizeof(T));
  return true;
}

std::string_view ElfImage::StringAt(const Header& strings, uint64_t offset) const {
  const std::string_view text = file_.text();
  if (offset >= strings.raw.sh_size || strings.raw.sh_offset > text.size()) return {};
  const std::string_view table = text.substr(strings.raw.sh_offset, strings.raw.sh_size);
  if (offset >= table.size()) return {};
  return table.substr(offset, table.find('\0', offset) - offset);
}

Result<ElfImage> ElfImage::Open(const std::string& path) {
  ElfImage image;
  ASSAY_ASSIGN_OR_RETURN(image.file_, MappedFile::Open(path));
  ASSAY_TRY(image.Read(path));
  return image;
}

Status ElfImage::Read(const std::string& path) {
  Elf64_Ehdr header;
  if (!Load(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("\"{}\" is no 64-bit little-endian ELF file.", path));
  }
  if (header.e_machine != EM_X86_64) {
    return Fail(ErrorCode::kUnsupported, path,
                fmt::format("\"{}\" is for the processor {}; code is told for x86-64 ({}) alone.",
                            path, header.e_machine, EM_X86_64));
  }
  std::vector<Header> headers(header.e_shnum);
  for (size_t i = 0; i < headers.size(); ++i) {
    const uint64_t offset = header.e_shoff + i * sizeof(Elf64_Shdr);
    if (offset < header.e_shoff || !Load(offset, &headers[i].raw)) {
      return Fail(ErrorCode::kFormat, path,
                  fmt::format("\"{}\" is cut short: its section header {} of {} is missing.", path,
                              i, headers.size()));
    }
  }
  for (const Header& section : headers) {
    const Elf64_Shdr& raw = section.raw;
    if ((raw.sh_flags & SHF_ALLOC) == 0 || raw.sh_size == 0) continue;
    sections_.push_back({.address = raw.sh_addr,
                         .size_bytes = raw.sh_size,
                         .file_offset = raw.sh_offset,
                         .writable = (raw.sh_flags & SHF_WRITE) != 0,
                         .in_file = raw.sh_type != SHT_NOBITS});
  }
  std::ranges::sort(sections_, {}, &Section::address);
  for (const Header& section : headers) {
    if (section.raw.sh_type == SHT_SYMTAB && section.raw.sh_link < headers.size()) {
      ReadSymbols(section, headers[section.raw.sh_link]);
    }
    if (section.raw.sh_type == SHT_RELA) ReadRelocations(section, headers);
  }
  if (functions_.empty()) {
    return Fail(ErrorCode::kUnsupported, path,
                fmt::format("\"{}\" has no symbols of functions: it was stripped. Build it without "
                            "-s and do not strip it.",
                            path));
  }
  return {};
}

void ElfImage::ReadSymbols(const Header& table, const Header& strings) {
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.raw.sh_size; at += sizeof(Elf64_Sym)) {
    Elf64_Sym raw;
    if (!Load(table.raw.sh_offset + at, &raw)) break;
    const auto type = ELF64_ST_TYPE(raw.st_info);
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (raw.st_size == 0 || raw.st_shndx == SHN_UNDEF || !(function || type == STT_OBJECT))
      continue;
    (function ? functions_ : objects_)
        .push_back({raw.st_value, raw.st_size, function, StringAt(strings, raw.st_name)});
  }
  for (std::vector<Symbol>* symbols : {&functions_, &objects_}) {
    // Of several names of one place the first in the alphabet stays, so that their order in the
    // file does not matter.
    std::ranges::sort(*symbols, [](const Symbol& a, const Symbol& b) {
      return a.address != b.address ? a.address < b.address : a.name < b.name;
    });
    symbols->erase(
        std::unique(symbols->begin(), symbols->end(),
                    [](const Symbol& a, const Symbol& b) { return a.address == b.address; }),
        symbols->end());
  }
}

void ElfImage::ReadRelocations(const Header& table, const std::vector<Header>& headers) {
  for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table.raw.sh_size; at += sizeof(Elf64_Rela)) {
    Elf64_Rela raw;
    if (!Load(table.raw.sh_offset + at, &raw)) return;
    const auto type = ELF64_R_TYPE(raw.r_info);
    if (type == R_X86_64_RELATIVE) {
      bindings_[raw.r_offset] = {{}, static_cast<uint64_t>(raw.r_addend)};
      continue;
    }
    if (table.raw.sh_link >= headers.size()) continue;
    const Header& symbols = headers[table.raw.sh_link];
    Elf64_Sym symbol;
    const uint64_t offset = ELF64_R_SYM(raw.r_info) * sizeof(Elf64_Sym);
    if (offset + sizeof(Elf64_Sym) > symbols.raw.sh_size || symbols.raw.sh_link >= headers.size() ||
        !Load(symbols.raw.sh_offset + offset, &symbol)) {
      continue;
    }
    bindings_[raw.r_offset] = {StringAt(headers[symbols.raw.sh_link], symbol.st_name), 0};
  }
}

const ElfImage::Symbol* ElfImage::Covering(const std::vector<Symbol>& symbols, uint64_t address) {
  auto after = std::ranges::upper_bound(symbols, address, {}, &Symbol::address);
  if (after == symbols.begin()) return nullptr;
  --after;
  return address - after->address < after->size_bytes ? &*after : nullptr;
}

const ElfImage::Section* ElfImage::SectionAt(uint64_t address) const {
  auto after = std::ranges::upper_bound(sections_, address, {}, &Section::address);
  if (after == sections_.begin()) return nullptr;
  --after;
  return address - after->address < after->size_bytes ? &*after : nullptr;
}

const ElfImage::Binding* ElfImage::BindingAt(uint64_t address) const {
  const auto found = bindings_.find(address);
  return found == bindings_.end() ? nullptr : &found->second;
}

std::span<const uint8_t> ElfImage::Bytes(uint64_t address, uint64_t count) const {
  const Section* section = SectionAt(address);
  if (section == nullptr || !section->in_file) return {};
  const uint64_t within = address - section->address;
  const uint64_t size = file_.bytes().size();
  if (count > section->size_bytes - within || section->file_offset > size ||
      within > size - section->file_offset || count > size - section->file_offset - within) {
    return {};
  }
  const auto* data = reinterpret_cast<const uint8_t*>(file_.bytes().data());
  return {data + section->file_offset + within, count};
}

}  // namespace assay::prove
