// The machine code of an ELF program for x86-64, told so that it does not depend on where the
// linker put things: what a scan's method "cpu-code-1" digests.
#ifndef ASSAY_PROVE_PROGRAM_CODE_H_
#define ASSAY_PROVE_PROGRAM_CODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "assay/base.h"

namespace assay::prove {

struct CodeDigest {
  std::string digest;
  uint64_t code_bytes = 0;
  // By class: "branch", "call", "load", "store", "vector", "other". Padding is not counted.
  std::map<std::string, uint64_t> instructions;
};

// Digests functions of one file. Two builds of the same source by the same compiler give the same
// digests wherever the build lies and whatever else is linked. In the digest are: every
// instruction but padding, jumps as the instruction they go to, the functions of the file that are
// called or whose address is taken (in turn), the names of functions of other libraries, the bytes
// of constants that an instruction loads or that a sized read-only object holds, and the tables of
// switches. Of writable data only the name of the symbol is. Contents of read-only data without a
// symbol whose address alone is taken are left out. One thread.
class ProgramCode final {
 public:
  // Errors: kFormat for a file that is no ELF program or is cut short; kUnsupported for another
  // processor and for a file without symbols; those of MappedFile::Open.
  static Result<std::unique_ptr<ProgramCode>> Open(const std::string& path);
  // The program that is running.
  static Result<std::unique_ptr<ProgramCode>> OpenRunning();
  ~ProgramCode();
  ProgramCode(const ProgramCode&) = delete;
  ProgramCode& operator=(const ProgramCode&) = delete;

  // Of the function that begins at `address`: one of the file, or after OpenRunning() one of this
  // process. Errors: kNotFound when none does, kUnsupported for code that cannot be told.
  Result<CodeDigest> DigestOf(uint64_t address);

 private:
  struct State;
  explicit ProgramCode(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_PROGRAM_CODE_H_
