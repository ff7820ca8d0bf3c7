#include "cli/report_flags.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/output_paths.h"

namespace assay::cli {

void ReportFlags::AddTo(CommandSpec* spec) {
  const auto flag = [&](const char* name, std::string* target, const char* help) {
    spec->flags.push_back({.names = name,
                           .value = TextValue{target},
                           .placeholder = "FILE",
                           .help = help,
                           .show_default = false,
                           .group = "reports (- is standard output)"});
  };
  flag("--markdown", &markdown_, "Writes a comment for a pull request.");
  flag("--junit", &junit_, "Writes JUnit XML with a test case for each part.");
  flag("--html", &html_, "Writes one page that shows the two streams side by side, offline.");
}

Status ReportFlags::Check(bool json, std::span<const std::string> inputs,
                          const std::string& tree) const {
  const std::array<std::pair<const char*, const std::string*>, 3> all = {
      {{"--markdown", &markdown_}, {"--junit", &junit_}, {"--html", &html_}}};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [name, path] = all.at(i);
    if (path->empty()) continue;
    if (json && *path == "-") {
      return Fail(ErrorCode::kInvalidArgument, name,
                  fmt::format("{} - and --json both write to standard output; give one of them a "
                              "file.",
                              name));
    }
    ASSAY_TRY(CheckOutput(name, *path, inputs));
    if (!tree.empty()) ASSAY_TRY(CheckOutputOfTree(name, *path, tree));
    for (size_t j = 0; j < i; ++j) {
      const std::string& other = *all.at(j).second;
      if (other.empty() || !SamePlace(other, *path)) continue;
      return Fail(ErrorCode::kInvalidArgument, name,
                  fmt::format("{} and {} both write to \"{}\"; give each its own file.",
                              all.at(j).first, name, *path));
    }
  }
  return {};
}

Status ReportFlags::CheckFiles() const {
  for (const std::string* path : {&markdown_, &junit_, &html_}) {
    if (!path->empty() && *path != "-") ASSAY_TRY(AtomicFile::Create(*path));
  }
  return {};
}

Status ReportFlags::Write(Context& context, const prove::Summary& summary) const {
  const auto put = [&context](const std::string& path, const std::string& text) -> Status {
    if (path != "-") return WriteFile(path, text);
    context.Print(text);
    return {};
  };
  if (!markdown_.empty()) ASSAY_TRY(put(markdown_, prove::FormatMarkdown(summary)));
  if (!junit_.empty()) ASSAY_TRY(put(junit_, prove::FormatJunit(summary)));
  if (html_.empty()) return {};
  ASSAY_ASSIGN_OR_RETURN(
      const std::string page,
      prove::FormatHtml(summary, {.stop = [&context] { return context.cancelled(); }}));
  return put(html_, page);
}

}  // namespace assay::cli
