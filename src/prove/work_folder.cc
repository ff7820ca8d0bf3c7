#include "prove/work_folder.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::prove {

namespace fs = std::filesystem;

std::string FolderTarget(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code ignored;
  const bool dots = path.filename() == "." || path.filename() == "..";
  if ((dots || fs::is_symlink(path, ignored)) && fs::exists(path, ignored)) {
    path = fs::canonical(path, ignored);
  }
  return path.string();
}

void TakeOverMode(const std::string& folder, const std::string& work) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  // Of a mode that cannot be set the contents are as readable as any new folder's.
  [[maybe_unused]] const int ignored = ::chmod(work.c_str(), info.st_mode & 07777);
}

Result<std::string> MakeWorkFolder(const std::string& folder) {
  constexpr int kTries = 1000;
  int error_number = 0;
  for (int i = 0; i < kTries; ++i) {
    std::string work = fmt::format("{}.partial-{}-{}", folder, ::getpid(), i);
    if (::mkdir(work.c_str(), 0777) == 0) return work;
    error_number = errno;
    if (error_number != EEXIST) break;
  }
  const std::string parent = fs::path(folder).parent_path().string();
  std::error_code ignored;
  if (!parent.empty() && !fs::exists(parent, ignored)) {
    return Fail(ErrorCode::kIo, folder,
                fmt::format("The folder \"{}\", in which \"{}\" is to be made, does not exist.",
                            parent, folder));
  }
  return Fail(ErrorCode::kIo, folder,
              fmt::format("Cannot make a folder beside \"{}\": {}.", folder,
                          std::system_category().message(error_number)));
}

}  // namespace assay::prove
