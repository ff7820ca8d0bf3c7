// TempFolder: a folder of one test in one process, so that runs of the suite beside each other
// never meet.
#ifndef ASSAY_TESTS_SUPPORT_TEMP_FOLDER_H_
#define ASSAY_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace assay {

// Made empty, removed with everything in it. Throws when the system makes none.
class TempFolder final {
 public:
  TempFolder() {
    std::string name = ::testing::TempDir() + "assay-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay

#endif  // ASSAY_TESTS_SUPPORT_TEMP_FOLDER_H_
