#include "base/file.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <new>

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

TEST_F(FileTest, PastTheCacheTheBytesAreTheSame) {
  constexpr size_t kBlock = size_t{4} * AtomicFile::kBlockAlignment;
  const std::unique_ptr<char[], void (*)(char*)> block(
      static_cast<char*>(::operator new (kBlock, std::align_val_t{AtomicFile::kBlockAlignment})),
      [](char* p) { ::operator delete (p, std::align_val_t{AtomicFile::kBlockAlignment}); });
  std::string expected;
  AtomicFile file = AtomicFile::Create(Path("a"), FileCache::kBypass).value();
  // Whole blocks, then an odd piece, then whole blocks at an odd offset.
  for (const size_t size : {kBlock, kBlock, size_t{1000}, kBlock, size_t{0}, size_t{1}}) {
    std::fill_n(block.get(), kBlock, static_cast<char>('a' + expected.size() % 23));
    const std::string_view bytes(block.get(), size);
    ASSERT_TRUE(file.Write(bytes));
    expected += bytes;
  }
  ASSERT_TRUE(file.Commit());
  EXPECT_EQ(ReadFile(Path("a")).value(), expected);
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
