#include "prove/work_folder.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::prove {

namespace fs = std::filesystem;

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
