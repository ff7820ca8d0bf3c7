// The flags of commands that can write their report for other readers as well: --markdown, --junit
// and --html.
#ifndef ASSAY_CLI_REPORT_FLAGS_H_
#define ASSAY_CLI_REPORT_FLAGS_H_

#include <span>
#include <string>

#include "assay/prove_report.h"

#include "cli/command.h"

namespace assay::cli {

// Belongs to a command, and lives as long. One thread.
class ReportFlags final {
 public:
  void AddTo(CommandSpec* spec);
  // A usage error when two of them, or one and `json`, want standard output or one file, or when
  // one would be written over or into `inputs`.
  // `tree`, where it is not empty: the same for files of the working tree that it lies in.
  Status Check(bool json, std::span<const std::string> inputs, const std::string& tree = {}) const;

  bool markdown() const { return !markdown_.empty(); }
  bool junit() const { return !junit_.empty(); }
  bool html() const { return !html_.empty(); }
  // Any was given.
  bool any() const { return markdown() || junit() || html(); }
  // One of them goes to standard output, in place of the text.
  bool takes_output() const { return markdown_ == "-" || junit_ == "-" || html_ == "-"; }
  // Fails early, before long work, where a file could not be written.
  Status CheckFiles() const;
  // Writes each that was given. An error names the file; those ahead of it are written.
  Status Write(Context& context, const prove::Summary& summary) const;

 private:
  std::string markdown_, junit_, html_;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_REPORT_FLAGS_H_
