#include "cli/output_paths.h"

#include <array>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/conformance/expect_error.h"
#include "tests/support/temp_folder.h"

namespace assay::cli {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;

class OutputPaths : public ::testing::Test {
 protected:
  OutputPaths() {
    std::filesystem::create_directory(At("folder"));
    for (const char* name : {"input", "folder/part"}) std::ofstream(At(name)) << "read";
    std::filesystem::create_symlink("input", At("link"));
  }
  std::string At(const std::string& name) const { return (folder_.path() / name).string(); }

  TempFolder folder_;
};

TEST_F(OutputPaths, WhatIsReadIsNotWrittenOver) {
  const std::array inputs = {At("folder"), At("input")};
  for (const char* bad : {"input", "./input", "link", "folder/../input", "folder", "folder/part",
                          "folder/new", "folder/./a/new"}) {
    EXPECT_THAT(CheckOutput("--html", At(bad), inputs),
                FailsWith(ErrorCode::kInvalidArgument, "--html would write"))
        << bad;
  }
  for (const char* good : {"new", "input.html", "folder2", "folder.html", "a/b/new"}) {
    EXPECT_THAT(CheckOutput("--html", At(good), inputs), Succeeds()) << good;
  }
  EXPECT_THAT(CheckOutput("--html", "", inputs), Succeeds());
  EXPECT_THAT(CheckOutput("--html", "-", inputs), Succeeds());
}

TEST_F(OutputPaths, APlaceIsTheSameHoweverItIsWritten) {
  EXPECT_TRUE(SamePlace(At("new"), At("folder/../new")));
  EXPECT_TRUE(SamePlace(At("link"), At("input")));
  EXPECT_FALSE(SamePlace(At("new"), At("folder/new")));
}

}  // namespace
}  // namespace assay::cli
