// What is written under a limit on the size of files, as on a disk that fills up: a message, and
// nothing half written under any name.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/program.h"
#include "support/temp_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class FileLimitTest : public testing::Test {
 protected:
  FileLimitTest()
      : trace_(ReadFile(std::string(ASSAY_SOURCE_DIR) + "/tests/golden/traces/decode_step.trace")
                   .value()) {
    for (const char* name : {"a.trace", "b.trace"}) EXPECT_TRUE(WriteFile(In(name), trace_));
  }

  std::string In(const std::string& name) const { return (dir_ / name).string(); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
  const std::string trace_;
};

TEST_F(FileLimitTest, C1_NoOutputIsLeftHalfWritten) {
  const std::string trace = In("a.trace");
  const std::string out = In("out");
  ASSERT_TRUE(WriteFile(In("cut.trace"), trace_.substr(0, trace_.rfind("end "))));
  const std::vector<std::string> before = Names();
  const struct {
    int blocks;
    std::vector<std::string> words;
  } cases[] = {
      {1, {"export", "--perfetto", trace, "-o", out}},
      {0, {"compare", trace, In("b.trace"), "--markdown", out}},
      {0, {"compare", trace, In("b.trace"), "--junit", out}},
      {1, {"compare", trace, In("b.trace"), "--html", out}},
      {1, {"scan", "-o", out}},
      {0, {"counts", trace, "--check", out, "--update"}},
      {0, {"seal", In("cut.trace")}},
      {1, {"trace", "-o", out, "--depth", "0", "--steps", "1"}},
      {0, {"prove", "--init", "--config", out}},
  };
  for (const auto& each : cases) {
    const ProgramResult result = RunAssayUnderFileLimit(each.words, each.blocks);
    EXPECT_EQ(result.status, 2) << each.words.front() << ": " << result.err;
    EXPECT_THAT(result.err,
                AllOf(StartsWith("assay " + each.words.front() + ": error: Cannot "),
                      HasSubstr("over the limit on the size of files (ulimit -f, " +
                                std::to_string(512 * each.blocks) + " bytes)"),
                      HasSubstr(" bytes). What stood under that name before is unchanged.")));
    EXPECT_EQ(Names(), before) << each.words.front();
  }
}

TEST_F(FileLimitTest, C1_TextThatIsCutIsSaidToBeCut) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"show", In("a.trace")}, {"help", "trace"}}) {
    const ProgramResult result = RunAssayUnderFileLimit(words, 1, In("text"));
    EXPECT_EQ(result.status, 2) << words.front();
    EXPECT_THAT(result.err, AllOf(HasSubstr("Cannot write to standard output: "),
                                  HasSubstr("(ulimit -f, 512 bytes)"),
                                  EndsWith("The text printed is not whole.\n")));
  }
}

}  // namespace
}  // namespace assay
