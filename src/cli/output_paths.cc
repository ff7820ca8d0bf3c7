#include "cli/output_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "prove/git.h"

namespace assay::cli {
namespace {

// Without links; as it stands where that cannot be found out.
std::filesystem::path Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return path;
  std::filesystem::path resolved = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute.lexically_normal() : resolved;
}

// `inner` is `outer` or lies below it.
bool Within(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

bool SamePlace(const std::string& a, const std::string& b) { return Resolved(a) == Resolved(b); }

Status CheckOutput(std::string_view flag, const std::string& output,
                   std::span<const std::string> inputs) {
  if (output.empty() || output == "-") return {};
  const std::filesystem::path to = Resolved(output);
  for (const std::string& input : inputs) {
    if (input.empty() || input == "-") continue;
    std::error_code error;
    const std::filesystem::path from = Resolved(input);
    if (to == from || (std::filesystem::is_directory(from, error) && Within(to, from))) {
      return Fail(ErrorCode::kInvalidArgument, std::string(flag),
                  fmt::format("{} would write \"{}\" over or into \"{}\", which is read; name "
                              "another file.",
                              flag, output, input));
    }
  }
  return {};
}

Status CheckOutputOfTree(std::string_view flag, const std::string& output,
                         const std::string& tree) {
  if (output.empty() || output == "-") return {};
  std::error_code error;
  const bool folder = std::filesystem::is_directory(tree, error);
  const Result<prove::Repository> repository = prove::Repository::Find(folder ? tree : ".", {});
  if (!repository) return {};
  ASSAY_ASSIGN_OR_RETURN(const bool kept, repository->Keeps(output));
  if (!kept) return {};
  return Fail(
      ErrorCode::kInvalidArgument, std::string(flag),
      fmt::format("{} would write over \"{}\", a file of the tree \"{}\"; name another one.", flag,
                  output, repository->root()));
}

}  // namespace assay::cli
