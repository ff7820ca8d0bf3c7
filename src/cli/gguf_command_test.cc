#include "cli/gguf_command.h"

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/runner.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"

namespace assay::cli {
namespace {

using assay::testing::GgufWriter;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GgufCommandTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> words) {
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    words.insert(words.begin(), "gguf");
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = nullptr});
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }
  nlohmann::json RunJson(std::vector<std::string> words) {
    words.push_back("--json");
    EXPECT_EQ(Run(std::move(words)), 0) << err();
    return nlohmann::json::parse(out());
  }

  std::string Write(const std::string& bytes) {
    const auto path = folder_ / "m.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

  static GgufWriter Small() {
    GgufWriter writer;
    writer.AddString("general.architecture", "qwen3");
    writer.AddF32("eps", 1e-6F);
    writer.AddBool("flag", true);
    writer.AddI32s("numbers", std::array{1, -2, 3, 4, 5, 6, 7, 8, 9});
    writer.AddStrings("words", std::array<std::string, 2>{"a\"\\\n", "b\x1b[31m"});
    writer.AddF32("base", 10000.0F);
    writer.AddString("long", std::string(71, 'x') + "\u00e9\u00e9");
    writer.AddTensor("norm", assay::testing::kF32, {2}, std::array{1.0F, 2.0F});
    writer.AddTensor("matrix", assay::testing::kQ8_0, {32, 2}, std::vector<float>(64, 1.0F));
    return writer;
  }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
  std::unique_ptr<StringOutput> out_, err_;
};

TEST_F(GgufCommandTest, ListsMetadataAndTensorsInFileOrder) {
  const std::string path = Write(Small().Build());
  ASSERT_EQ(Run({path}), 0) << err();
  EXPECT_EQ(out(), path +
                       ": GGUF version 3, 548 bytes, data from byte 448 on, alignment 32\n"
                       R"(
7 metadata keys
  general.architecture  "qwen3"
  eps                   1e-06
  flag                  true
  numbers               [1, -2, 3, 4, 5, 6, 7, 8, ...] (9 items)
  words                 ["a\"\\\n", "b\x1b[31m"]
  base                  10000.0
  long                  ")" +
                       std::string(71, 'x') + R"("... (75 bytes)

2 tensors, 66 values, 76 bytes
  F32   1 tensor, 2 values, 8 bytes
  Q8_0  1 tensor, 64 values, 68 bytes

  type         offset         bytes  shape                 name
  F32             448             8  2                     norm
  Q8_0            480            68  32 x 2                matrix
)");
  EXPECT_EQ(err(), "");
}

TEST_F(GgufCommandTest, FiltersShowOnePart) {
  const std::string path = Write(Small().Build());
  ASSERT_EQ(Run({path, "--tensors"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("32 x 2"), Not(HasSubstr("eps"))));
  ASSERT_EQ(Run({path, "--metadata"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("eps"), Not(HasSubstr("32 x 2"))));
  ASSERT_EQ(Run({path, "--metadata", "--tensors"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("eps"), HasSubstr("32 x 2")));
}

TEST_F(GgufCommandTest, FullShowsLongValuesWhole) {
  ASSERT_EQ(Run({Write(Small().Build()), "--full"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("[1, -2, 3, 4, 5, 6, 7, 8, 9]\n"),
                           HasSubstr(std::string(71, 'x') + "\u00e9\u00e9\"\n")));
}

TEST_F(GgufCommandTest, JsonHoldsTheSame) {
  const std::string path = Write(Small().Build());
  const nlohmann::json all = RunJson({path});
  EXPECT_EQ(all.at("file"), path);
  EXPECT_EQ(all.at("version"), 3);
  EXPECT_EQ(all.at("bytes"), 548);
  EXPECT_EQ(all.at("data_offset"), 448);
  EXPECT_EQ(all.at("alignment"), 32);
  EXPECT_EQ(all.at("metadata").at("eps").dump(), "1e-06");
  EXPECT_EQ(all.at("metadata").at("base").dump(), "10000.0");
  EXPECT_EQ(all.at("metadata").at("flag"), true);
  EXPECT_EQ(all.at("metadata").at("words").at(0), "a\"\\\n");
  EXPECT_EQ(all.at("metadata").at("numbers"),
            nlohmann::json::parse(R"({"begins": [1, -2, 3, 4, 5, 6, 7, 8], "items": 9})"));
  EXPECT_EQ(all.at("metadata").at("long"),
            nlohmann::json({{"begins", std::string(71, 'x')}, {"bytes", 75}}));
  EXPECT_EQ(all.at("tensors").at(1), nlohmann::json::parse(R"(
      {"name": "matrix", "type": "Q8_0", "dims": [32, 2], "offset": 480, "bytes": 68})"));
  const nlohmann::json full = RunJson({path, "--full", "--metadata"});
  EXPECT_EQ(full.at("metadata").at("numbers").size(), 9U);
  EXPECT_FALSE(full.contains("tensors"));
  EXPECT_FALSE(RunJson({path, "--tensors"}).contains("metadata"));
}

TEST_F(GgufCommandTest, JsonCanHoldAnyValue) {
  GgufWriter writer;
  writer.AddString("not utf-8", "\xff");
  writer.AddF32("nan", std::numeric_limits<float>::quiet_NaN());
  writer.AddF32("inf", -std::numeric_limits<float>::infinity());
  const nlohmann::json all = RunJson({Write(writer.Build())});
  EXPECT_EQ(all.at("metadata").at("not utf-8"), "\ufffd");
  EXPECT_TRUE(all.at("metadata").at("nan").is_null());
  EXPECT_TRUE(all.at("metadata").at("inf").is_null());
}

TEST_F(GgufCommandTest, BrokenFilesAreStatusTwoWithTheByte) {
  const std::string whole = Small().Build();
  EXPECT_EQ(Run({Write(whole.substr(0, 30))}), 2);
  EXPECT_EQ(out(), "");
  EXPECT_THAT(err(), AllOf(StartsWith("assay gguf: error: Byte "), HasSubstr("m.gguf")));
  EXPECT_EQ(Run({(folder_ / "missing").string()}), 2);
  EXPECT_THAT(err(), HasSubstr("No such file"));
  EXPECT_EQ(Run({Write("")}), 2);
  EXPECT_THAT(err(), HasSubstr("The file is empty"));
}

TEST_F(GgufCommandTest, UsageErrorsAre64) {
  EXPECT_EQ(Run({}), 64);
  EXPECT_EQ(Run({"m.gguf", "--jsn"}), 64);
  EXPECT_THAT(err(), HasSubstr("did you mean --json?"));
}

TEST_F(GgufCommandTest, HelpNamesTheFlags) {
  ASSERT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("assay gguf"), HasSubstr("--metadata"), HasSubstr("--tensors"),
                           HasSubstr("--full"), HasSubstr("--json")));
}

}  // namespace
}  // namespace assay::cli
