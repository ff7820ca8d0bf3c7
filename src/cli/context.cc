#include "cli/context.h"

#include "base/text.h"

namespace assay::cli {

void Context::Diagnose(std::string_view severity, std::string_view message) {
  std::string line = "assay";
  if (!command_.empty()) line += " " + command_;
  line += ": ";
  line += severity;
  line += ": ";
  // Messages may quote outside bytes; a diagnostic stays one line and cannot steer the terminal.
  AppendEscaped(&line, message);
  line += '\n';
  // What was printed before comes out before.
  streams_.out->Flush();
  streams_.err->Write(line);
  streams_.err->Flush();
}

}  // namespace assay::cli
