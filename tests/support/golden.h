// Golden files: the expected text of a tool lies in the tree.
#ifndef ASSAY_TESTS_SUPPORT_GOLDEN_H_
#define ASSAY_TESTS_SUPPORT_GOLDEN_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace assay {

// Expects that `text` is what tests/golden/NAME holds. With ASSAY_UPDATE_GOLDENS=1 in the
// environment the file is written instead, for the author to review as part of the change.
inline void ExpectGolden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(ASSAY_SOURCE_DIR) / "tests" / "golden" / name;
  const char* update = std::getenv("ASSAY_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_TRUE(file) << "There is no " << path
                    << "; run this test with ASSAY_UPDATE_GOLDENS=1 and review what it writes.";
  EXPECT_EQ(text, expected.str()) << "in " << path
                                  << "; if the change is meant, run with ASSAY_UPDATE_GOLDENS=1.";
}

}  // namespace assay

#endif  // ASSAY_TESTS_SUPPORT_GOLDEN_H_
