#include "base/file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(testing::TempDir()) / (std::string("assay_file_test_") + info->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~FileTest() override { fs::remove_all(dir_); }
  std::string Path(const char* name) const { return (dir_ / name).string(); }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }
  fs::path dir_;
};

TEST_F(FileTest, WriteAndReadBack) {
  ASSERT_TRUE(WriteFile(Path("a"), "hello"));
  EXPECT_EQ(ReadFile(Path("a")).value(), "hello");
  EXPECT_EQ(Files(), 1U);
}

TEST_F(FileTest, UncommittedLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteFile(Path("a"), "old"));
  {
    AtomicFile file = AtomicFile::Create(Path("a")).value();
    ASSERT_TRUE(file.Write("new"));
  }
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  EXPECT_EQ(Files(), 1U);
}

TEST_F(FileTest, MissingDirectoryAndEmpty) {
  EXPECT_EQ(MappedFile::Open(Path("none")).error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(MappedFile::Open(dir_.string()).error().ToString(),
              testing::HasSubstr("is not a regular file"));
  ASSERT_TRUE(WriteFile(Path("empty"), ""));
  EXPECT_TRUE(MappedFile::Open(Path("empty")).value().bytes().empty());
  EXPECT_EQ(AtomicFile::Create(Path("no/such/folder")).error().code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace assay
