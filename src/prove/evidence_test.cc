#include "prove/evidence.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/temp_folder.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class EvidenceTest : public testing::Test {
 protected:
  EvidenceTest() { folder_ = (dir_ / "evidence").string(); }

  std::string In(const char* name) const { return (fs::path(folder_) / name).string(); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  // Entries beside the folder, itself included.
  size_t Siblings() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }
  // A whole folder of two depths.
  void Record(bool replace = false) const {
    EvidenceWriter writer = EvidenceWriter::Create(folder_, replace).value();
    ASSERT_TRUE(WriteFile(writer.TracePath(600, true), "six hundred"));
    ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
    ASSERT_TRUE(writer.Finish(facts_, sequences_));
  }
  void Replace(const char* name, const std::string& from, const std::string& to) const {
    std::string text = ReadFile(In(name)).value();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_TRUE(WriteFile(In(name), text.replace(at, from.size(), to)));
  }
  Error OpenError() const {
    const auto opened = EvidenceFolder::Open(folder_);
    EXPECT_FALSE(opened);
    return opened ? Error(ErrorCode::kInternal, "", "opened") : opened.error();
  }

  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
  std::string folder_;
  EvidenceFacts facts_{.tool_version = "1.2.3",
                       .trace_version = 2,
                       .command_options = {{"threads", "2"}, {"loaders", "4"}},
                       .model_digest = "abcd",
                       .steps = 3};
  std::vector<IdSequence> sequences_ = {{600, {7, 8, 9}}, {0, {1, 2, 3}}};
};

TEST_F(EvidenceTest, ReadsBackWhatWasWritten) {
  Record();
  const auto evidence = EvidenceFolder::Open(folder_).value();
  EXPECT_EQ(evidence.manifest().facts.tool_version, "1.2.3");
  EXPECT_EQ(evidence.manifest().facts.trace_version, 2);
  EXPECT_EQ(evidence.manifest().facts.command_options, facts_.command_options);
  EXPECT_EQ(evidence.manifest().facts.model_digest, "abcd");
  EXPECT_EQ(evidence.manifest().facts.steps, 3);
  EXPECT_THAT(evidence.manifest().depths, ElementsAre(0, 600));
  EXPECT_THAT(evidence.sequences(),
              ElementsAre(IdSequence{0, {1, 2, 3}}, IdSequence{600, {7, 8, 9}}));
  EXPECT_EQ(evidence.TracePath(0), In("depth-0.trace"));
  EXPECT_EQ(evidence.TracePath(600), In("depth-600.trace.zst"));
  EXPECT_THAT(Files(), UnorderedElementsAre("depth-0.trace", "depth-600.trace.zst", "ids.json",
                                            "manifest.json"));
}

TEST_F(EvidenceTest, SameEvidenceIsTheSameBytes) {
  Record();
  const std::string first = ReadFile(In("manifest.json")).value();
  Record(/*replace=*/true);
  EXPECT_EQ(ReadFile(In("manifest.json")).value(), first);
  EXPECT_TRUE(first.ends_with("  \"complete\": true\n}\n")) << first;
}

TEST_F(EvidenceTest, UnfinishedRecordingLeavesNothing) {
  {
    EvidenceWriter writer = EvidenceWriter::Create(folder_, false).value();
    ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
    const EvidenceWriter moved(std::move(writer));
  }
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(EvidenceTest, UnfinishedRecordingKeepsAFolderThatWasThere) {
  fs::create_directory(folder_);
  {
    EvidenceWriter writer = EvidenceWriter::Create(folder_, false).value();
    ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
  }
  EXPECT_TRUE(fs::exists(folder_));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(EvidenceTest, FolderInUseIsReplacedOnlyOnRequest) {
  Record();
  const auto refused = EvidenceWriter::Create(folder_, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("give --force"));
  Record(/*replace=*/true);
  EXPECT_TRUE(EvidenceFolder::Open(folder_));
  EXPECT_EQ(Siblings(), 1U);
}

TEST_F(EvidenceTest, OldEvidenceStaysUntilTheNewIsWhole) {
  Record();
  {
    EvidenceWriter writer = EvidenceWriter::Create(folder_, true).value();
    ASSERT_TRUE(WriteFile(writer.TracePath(7), "seven"));
    EXPECT_TRUE(EvidenceFolder::Open(folder_));
  }
  EXPECT_TRUE(EvidenceFolder::Open(folder_));
  EXPECT_EQ(Siblings(), 1U);
}

TEST_F(EvidenceTest, ReplacingTakesOldTracesAway) {
  Record();
  EvidenceWriter writer = EvidenceWriter::Create(folder_ + "/", true).value();
  ASSERT_TRUE(WriteFile(writer.TracePath(7), "seven"));
  ASSERT_TRUE(writer.Finish(facts_, std::vector<IdSequence>{{7, {1, 2, 3}}}));
  EXPECT_EQ(writer.FinalTracePath(7), In("depth-7.trace"));
  EXPECT_THAT(Files(), UnorderedElementsAre("depth-7.trace", "ids.json", "manifest.json"));
}

TEST_F(EvidenceTest, ForeignFilesAreNeverReplaced) {
  Record();
  ASSERT_TRUE(WriteFile(In("notes.txt"), "mine"));
  EXPECT_THAT(EvidenceWriter::Create(folder_, true).error().message(), HasSubstr("notes.txt"));
  fs::remove(In("notes.txt"));
  ASSERT_TRUE(WriteFile(In("manifest.json"), "{\"name\":\"a web page\"}"));
  EXPECT_THAT(EvidenceWriter::Create(folder_, true).error().message(),
              HasSubstr("is not evidence that could be replaced"));
  EXPECT_EQ(ReadFile(In("manifest.json")).value(), "{\"name\":\"a web page\"}");
  fs::remove_all(folder_);
  ASSERT_TRUE(WriteFile(folder_, "a file"));
  EXPECT_THAT(EvidenceWriter::Create(folder_, true).error().message(), HasSubstr("not a folder"));
}

TEST_F(EvidenceTest, TwoWritersDoNotMix) {
  EvidenceWriter a = EvidenceWriter::Create(folder_, false).value();
  EvidenceWriter b = EvidenceWriter::Create(folder_, false).value();
  ASSERT_NE(a.TracePath(0), b.TracePath(0));
  ASSERT_TRUE(WriteFile(a.TracePath(0), "a"));
  ASSERT_TRUE(WriteFile(b.TracePath(0), "b"));
  const std::vector<IdSequence> ids = {{0, {1, 2, 3}}};
  ASSERT_TRUE(a.Finish(facts_, ids));
  EXPECT_EQ(b.Finish(facts_, ids).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(In("depth-0.trace")).value(), "a");
}

TEST_F(EvidenceTest, MissingParentIsNamed) {
  EXPECT_THAT(EvidenceWriter::Create(folder_ + "/x/y", false).error().message(),
              HasSubstr(folder_ + "/x\", in which"));
}

TEST_F(EvidenceTest, MissingTraceOrIdsFailTheRecording) {
  EvidenceWriter writer = EvidenceWriter::Create(folder_, false).value();
  writer.TracePath(0);
  EXPECT_EQ(writer.Finish(facts_, sequences_).error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
  EXPECT_EQ(writer.Finish(facts_, sequences_).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(writer.Finish(facts_, std::span(sequences_).last(1)));
}

TEST_F(EvidenceTest, HalfAFolderIsRefused) {
  EXPECT_EQ(OpenError().code(), ErrorCode::kNotFound);
  Record();
  for (const char* name : {"manifest.json", "ids.json", "depth-0.trace", "depth-600.trace.zst"}) {
    const std::string kept = ReadFile(In(name)).value();
    fs::remove(In(name));
    EXPECT_EQ(OpenError().code(), ErrorCode::kNotFound) << name;
    for (const size_t size : {size_t{0}, kept.size() / 2, kept.size() - 2}) {
      ASSERT_TRUE(WriteFile(In(name), std::string_view(kept).substr(0, size)));
      EXPECT_EQ(OpenError().code(), ErrorCode::kFormat) << name << " " << size;
    }
    ASSERT_TRUE(WriteFile(In(name), kept));
  }
  EXPECT_TRUE(EvidenceFolder::Open(folder_));
}

TEST_F(EvidenceTest, ChangedFileIsRefusedByDigest) {
  Record();
  Replace("depth-0.trace", "z", "Z");
  const Error error = OpenError();
  EXPECT_EQ(error.code(), ErrorCode::kFormat);
  EXPECT_THAT(error.message(), HasSubstr("depth-0.trace\" has digest"));
}

TEST_F(EvidenceTest, ManifestMustSayCompleteLast) {
  Record();
  Replace("manifest.json", ",\n  \"complete\": true", "");
  EXPECT_THAT(OpenError().message(), HasSubstr("\"complete\": true"));
  fs::remove_all(folder_);
  Record();
  Replace("manifest.json", "\"complete\": true", "\"complete\": false");
  EXPECT_THAT(OpenError().message(), HasSubstr("\"complete\": true"));
}

TEST_F(EvidenceTest, ManifestMustListExactlyItsFiles) {
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } cases[] = {
      {"\"depth-0.trace\"", "\"../depth-0.trace\"", "lists 0 traces of depth 0"},
      {"\"ids.json\"", "\"depth-0.trace\"", "twice"},
      {"\"ids.json\"", "\"other\"", "lists no ids.json"},
      {"    0,\n    600", "    600", "belongs to no depth"},
      {"    0,\n    600", "    600,\n    0", "rising"},
      {"    0,\n    600", "", "lists no depth"},
      {"\"steps\": 3", "\"steps\": -3", "\"steps\" is not a whole number"},
      {"\"steps\": 3", "\"steps\": 18446744073709551615", "\"steps\" is not a whole number"},
      {"\"steps\": 3", "\"steps\": \"3\"", "\"steps\" is missing"},
      {"\"bytes\": 4", "\"bytes\": 5", "has 4 bytes, but the manifest says 5"},
      {"\"format\": 2", "\"format\": 9", "has format 9"},
      {"\"threads\": \"2\"", "\"threads\": 2", "command_options"},
  };
  for (const auto& each : cases) {
    fs::remove_all(folder_);
    Record();
    Replace("manifest.json", each.from, each.to);
    EXPECT_THAT(OpenError().message(), HasSubstr(each.message)) << each.to;
  }
}

TEST_F(EvidenceTest, P1_TheScanAndTheCommandAreKept) {
  facts_.command = "assay trace";
  const Scan scan{"cpu-code-1", "", {{.kernel = "add", .target = "AVX2", .digest = "ab"}}};
  EvidenceWriter writer = EvidenceWriter::Create(folder_, false).value();
  ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
  ASSERT_TRUE(writer.Finish(facts_, std::span(sequences_).last(1), scan));
  EXPECT_EQ(EvidenceFolder::Open(folder_).value().manifest().facts.command, "assay trace");
  EXPECT_EQ(ReadScan(folder_).value(), scan);
  Replace("kernels.scan", "AVX2", "AVX3");
  EXPECT_THAT(OpenError().message(), HasSubstr("kernels.scan\" has digest"));
  fs::remove(In("kernels.scan"));
  EXPECT_EQ(OpenError().code(), ErrorCode::kNotFound);
}

TEST_F(EvidenceTest, P1_AFolderWithoutIdsIsWholeWhenItSaysSo) {
  facts_.steps = 0;
  EvidenceWriter writer = EvidenceWriter::Create(folder_, false).value();
  ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
  ASSERT_TRUE(writer.Finish(facts_, {}));
  EXPECT_THAT(Files(), UnorderedElementsAre("depth-0.trace", "manifest.json"));
  EXPECT_THAT(EvidenceFolder::Open(folder_).value().sequences(), IsEmpty());
  EXPECT_EQ(ReadScan(folder_).error().code(), ErrorCode::kNotFound);
  Replace("manifest.json", "\"steps\": 0", "\"steps\": 1");
  EXPECT_THAT(OpenError().message(), HasSubstr("lists no ids.json"));
}

TEST_F(EvidenceTest, P1_FormatOneIsReadAndAlwaysHasIds) {
  Record();
  Replace("manifest.json", "\"format\": 2", "\"format\": 1");
  Replace("manifest.json", "  \"scan_version\": 1,\n  \"command\": \"\",\n", "");
  const auto read = EvidenceFolder::Open(folder_);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->manifest().format, 1);
  Replace("manifest.json", "\"ids.json\"", "\"kernels.scan\"");
  EXPECT_THAT(OpenError().message(), HasSubstr("lists no ids.json"));
}

TEST_F(EvidenceTest, EachDepthHasAsManyIdsAsSteps) {
  Record();
  Replace("manifest.json", "\"steps\": 3", "\"steps\": 4");
  EXPECT_THAT(OpenError().message(), HasSubstr("depth 0 has 3 ids, but the manifest says 4 steps"));
  facts_.steps = 0;
  sequences_ = {{0, {}}, {600, {}}};
  Record(true);
  EXPECT_THAT(OpenError().message(), HasSubstr("depth 0 has no ids"));
}

TEST_F(EvidenceTest, IdsMustBelongToTheDepths) {
  EvidenceWriter writer = EvidenceWriter::Create(folder_, false).value();
  ASSERT_TRUE(WriteFile(writer.TracePath(0), "zero"));
  const std::vector<IdSequence> other = {{1, {1}}};
  EXPECT_EQ(writer.Finish(facts_, other).error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::prove
