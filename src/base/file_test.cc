#include "base/file.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  std::string Path(const char* name) const { return (dir_ / name).string(); }
  static std::string Contents(const std::string& path) { return ReadFile(path, 1000).value(); }
  static mode_t Mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }
  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
};

TEST_F(FileTest, WriteAndReadBack) {
  ASSERT_TRUE(WriteFile(Path("a"), "hello"));
  EXPECT_EQ(Contents(Path("a")), "hello");
  EXPECT_EQ(Files(), 1U);
}

TEST_F(FileTest, UncommittedLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteFile(Path("a"), "old"));
  {
    AtomicFile file = AtomicFile::Create(Path("a")).value();
    ASSERT_TRUE(file.Write("new"));
  }
  EXPECT_EQ(Contents(Path("a")), "old");
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
              testing::HasSubstr("is a directory, not a regular file"));
  ASSERT_TRUE(WriteFile(Path("empty"), ""));
  EXPECT_TRUE(MappedFile::Open(Path("empty")).value().bytes().empty());
  EXPECT_EQ(AtomicFile::Create(Path("no/such/folder")).error().code(), ErrorCode::kIo);
}

TEST_F(FileTest, ReplacedFileKeepsItsMode) {
  ASSERT_TRUE(WriteFile(Path("a"), "old"));
  ASSERT_EQ(::chmod(Path("a").c_str(), 0640), 0);
  ASSERT_TRUE(WriteFile(Path("a"), "new"));
  EXPECT_EQ(Contents(Path("a")), "new");
  EXPECT_EQ(Mode(Path("a")), 0640U);
}

TEST_F(FileTest, SymbolicLinkStaysAndItsTargetIsReplaced) {
  fs::create_directories(dir_ / "there");
  ASSERT_TRUE(WriteFile(Path("there/file"), "old"));
  // A link to a link, each told from its own folder; and one to a file that is yet to come.
  fs::create_symlink("file", dir_ / "there/link");
  fs::create_symlink("there/link", dir_ / "link");
  fs::create_symlink("there/later", dir_ / "dangling");
  ASSERT_TRUE(WriteFile(Path("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "link"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "there/link"));
  EXPECT_EQ(Contents(Path("there/file")), "new");
  ASSERT_TRUE(WriteFile(Path("dangling"), "made"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "dangling"));
  EXPECT_EQ(Contents(Path("there/later")), "made");
}

TEST_F(FileTest, LinksInACircleAreRefused) {
  fs::create_symlink("b", dir_ / "a");
  fs::create_symlink("a", dir_ / "b");
  EXPECT_THAT(WriteFile(Path("a"), "").error().message(), testing::HasSubstr("in a circle"));
}

TEST_F(FileTest, PipesAndDevicesAreNeitherWaitedForNorReplaced) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(OpenForReading(Path("pipe")).error().message(),
              testing::HasSubstr("is a pipe, not a regular file; write its bytes to a file"));
  EXPECT_THAT(WriteFile(Path("pipe"), "").error().message(), testing::HasSubstr("is a pipe"));
  EXPECT_TRUE(fs::is_fifo(dir_ / "pipe"));
  EXPECT_EQ(Files(), 1U);
}

TEST_F(FileTest, TooLargeAFileIsRefusedUnread) {
  ASSERT_TRUE(WriteFile(Path("a"), "hello"));
  EXPECT_EQ(ReadFile(Path("a"), 5).value(), "hello");
  EXPECT_THAT(ReadFile(Path("a"), 4).error().message(),
              testing::HasSubstr("has 5 bytes; at most 4 are read"));
}

}  // namespace
}  // namespace assay
