#include "cli/context.h"

namespace assay::cli {

void Context::Diagnose(std::string_view severity, std::string_view message) {
  std::string line = "assay";
  if (!command_.empty()) line += " " + command_;
  line += ": ";
  line += severity;
  line += ": ";
  // Messages may quote outside bytes; a diagnostic stays one line and cannot steer the terminal.
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  line += '\n';
  // What was printed before comes out before.
  streams_.out->Flush();
  streams_.err->Write(line);
  streams_.err->Flush();
}

}  // namespace assay::cli
