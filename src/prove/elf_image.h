// An ELF file for x86-64: its bytes by address, its symbols and the names that its relocations
// bind. Reads nothing outside the file, whatever the file says.
#ifndef ASSAY_PROVE_ELF_IMAGE_H_
#define ASSAY_PROVE_ELF_IMAGE_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "base/file.h"

namespace assay::prove {

class ElfImage final {
 public:
  struct Symbol {
    uint64_t address = 0;
    uint64_t size_bytes = 0;
    bool function = false;
    std::string_view name;
  };
  struct Section {
    uint64_t address = 0;
    uint64_t size_bytes = 0;
    uint64_t file_offset = 0;
    bool writable = false;
    bool in_file = false;  // False for zero-filled data.
  };
  // What the loader puts into eight bytes: the address of a symbol of another library, or one of
  // this file.
  struct Binding {
    std::string_view name;  // Empty for an address of this file.
    uint64_t address = 0;
  };

  // Errors: kFormat, kUnsupported (another processor, no symbol table); those of MappedFile::Open.
  static Result<ElfImage> Open(const std::string& path);

  // Null where no sized function covers `address`.
  const Symbol* FunctionAt(uint64_t address) const { return Covering(functions_, address); }
  // Null where no sized object covers it.
  const Symbol* ObjectAt(uint64_t address) const { return Covering(objects_, address); }
  // Null outside every section that is loaded.
  const Section* SectionAt(uint64_t address) const;
  // Null where the loader changes nothing.
  const Binding* BindingAt(uint64_t address) const;
  // The bytes [address, address + count) as the file has them; empty where it does not have them
  // all.
  std::span<const uint8_t> Bytes(uint64_t address, uint64_t count) const;

 private:
  struct Header;
  ElfImage() = default;
  static const Symbol* Covering(const std::vector<Symbol>& symbols, uint64_t address);
  Status Read(const std::string& path);
  template <typename T>
  bool Load(uint64_t offset, T* out) const;
  std::string_view StringAt(const Header& strings, uint64_t offset) const;
  void ReadSymbols(const Header& table, const Header& strings);
  void ReadRelocations(const Header& table, const std::vector<Header>& headers);

  MappedFile file_;
  std::vector<Section> sections_;  // By address.
  std::vector<Symbol> functions_;  // By address; one at each.
  std::vector<Symbol> objects_;
  std::map<uint64_t, Binding> bindings_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_ELF_IMAGE_H_
