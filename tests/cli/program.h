// Runs the program that was built, as a user's shell would.
#ifndef ASSAY_TESTS_CLI_PROGRAM_H_
#define ASSAY_TESTS_CLI_PROGRAM_H_

#include <string>
#include <vector>

namespace assay {

struct ProgramResult {
  int status = -1;  // 128 + the signal when one ended it.
  std::string out;
  std::string err;
};

// Where standard output goes.
enum class OutputTo { kCaptured, kClosed, kFullDevice };

// `assay WORDS`, to its end. Standard input is empty.
ProgramResult RunAssay(const std::vector<std::string>& words,
                       OutputTo output = OutputTo::kCaptured);

// The same, but sends `signal_number` once the program has written `bytes` to standard output,
// which is then read no further until the signal is sent.
ProgramResult RunAssayAndInterrupt(const std::vector<std::string>& words, size_t bytes,
                                   int signal_number);

// The same under `ulimit -f`: no file that it writes can grow past `blocks` of 512 bytes. Standard
// output goes to `out_file` where that is not empty.
ProgramResult RunAssayUnderFileLimit(const std::vector<std::string>& words, int blocks,
                                     const std::string& out_file = "");

}  // namespace assay

#endif  // ASSAY_TESTS_CLI_PROGRAM_H_
