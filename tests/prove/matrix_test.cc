// P1 of many jobs: `assay prove --matrix`, `--job` and `--merge` as a user's shell runs them.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "prove/matrix_repository.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kIds = {"big.depth-0", "big.depth-6", "small.depth-0",
                                       "small.depth-6"};

class ProveMatrixTest : public testing::Test {
 protected:
  void RunAll() {
    for (const std::string& id : kIds) {
      const ProgramResult job = repository_.Job(id);
      ASSERT_EQ(job.status, 0) << job.err << job.out;
      EXPECT_EQ(job.out, "job " + id + ": recorded in " + repository_.JobFolder(id) + "\n");
    }
  }
  ProgramResult Merge(const std::vector<std::string>& ids, std::vector<std::string> words = {}) {
    std::vector<std::string> command = {"prove", "--merge"};
    for (const std::string& id : ids) command.push_back(repository_.JobFolder(id));
    command.insert(command.end(), words.begin(), words.end());
    return RunAssay(command);
  }
  void ReplaceInJob(const std::string& id, const std::string& file, const std::string& from,
                    const std::string& to) {
    const std::string path = repository_.JobFolder(id) + "/" + file;
    std::string text = ReadFile(path).value();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_TRUE(WriteFile(path, text.replace(at, from.size(), to)));
  }

  MatrixRepository repository_;
};

TEST_F(ProveMatrixTest, P1_TheJobsAreListedInOneOrder) {
  const ProgramResult list = repository_.Prove({"--matrix", repository_.Matrix()});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_EQ(list.out,
            "big.depth-0\tmodel=big\tdepth=0\tplan=b\nbig.depth-6\tmodel=big\tdepth=6\tplan=b\n"
            "small.depth-0\tmodel=small\tdepth=0\tplan=a\n"
            "small.depth-6\tmodel=small\tdepth=6\tplan=a\n");
  EXPECT_EQ(repository_.Prove({"-q", "--matrix", repository_.Matrix()}).out,
            "big.depth-0\nbig.depth-6\nsmall.depth-0\nsmall.depth-6\n");
  const auto json =
      nlohmann::json::parse(repository_.Prove({"--json", "--matrix", repository_.Matrix()}).out);
  EXPECT_EQ(json["jobs"][1]["id"], "big.depth-6");
  EXPECT_EQ(json["jobs"][1]["variables"]["plan"], "b");
}

TEST_F(ProveMatrixTest, P3_AMatrixOfACommitAgainstItselfIsIdentical) {
  RunAll();
  const ProgramResult merged = Merge(kIds);
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(merged.out,
            "=== job big.depth-0: equal\n=== job big.depth-6: equal\n"
            "=== job small.depth-0: equal\n=== job small.depth-6: equal\n"
            "prove: rc 0 (jobs 4, different 0; kernels rc 0, added 0; trace big.depth-0 rc 0, "
            "big.depth-6 rc 0, small.depth-0 rc 0, small.depth-6 rc 0; ids differ 0)\n");
  // The two sides were recorded apart.
  EXPECT_TRUE(fs::exists(repository_.JobFolder("big.depth-0") + "/base/depth-0.trace"));
  EXPECT_TRUE(fs::exists(repository_.JobFolder("big.depth-0") + "/here/depth-0.trace"));
  std::vector<std::string> reversed(kIds.rbegin(), kIds.rend());
  EXPECT_EQ(Merge(reversed).out, merged.out);
  EXPECT_EQ(Merge(kIds, {"--matrix", repository_.Matrix()}).status, 0);
}

TEST_F(ProveMatrixTest, P1_APlantedChangeShowsAsTheJobThatHasIt) {
  repository_.Write("b-6", MatrixRepository::Plan(3));
  RunAll();
  const ProgramResult merged = Merge(kIds);
  EXPECT_EQ(merged.status, 3);
  EXPECT_THAT(
      merged.out,
      AllOf(HasSubstr("=== job big.depth-6\nbase: "), HasSubstr("=== job big.depth-0: equal\n"),
            HasSubstr("changed: constants, ids\n"),
            EndsWith("\nprove: rc 3 (jobs 4, different 1; kernels rc 0, added 0; trace "
                     "big.depth-0 rc 0, big.depth-6 rc 1, small.depth-0 rc 0, small.depth-6 rc 0; "
                     "ids differ 1)\n")));
  EXPECT_EQ(std::ranges::count(Merge(kIds, {"-q"}).out, '\n'), 1);
  const std::string junit = Merge(kIds, {"--junit", "-"}).out;
  EXPECT_THAT(junit, AllOf(HasSubstr("tests=\"12\" failures=\"2\" errors=\"0\" skipped=\"0\""),
                           HasSubstr("name=\"big.depth-6 trace depth 6\">\n      <failure "),
                           HasSubstr("name=\"big.depth-0 trace depth 0\"/>")));
  const auto json = nlohmann::json::parse(Merge(kIds, {"--json"}).out);
  EXPECT_EQ(json["exit_status"], 3);
  EXPECT_EQ(json["jobs"][1]["id"], "big.depth-6");
  EXPECT_EQ(json["jobs"][1]["proof"]["exit_status"], 3);
  EXPECT_EQ(json["jobs"][0]["proof"]["exit_status"], 0);
}

TEST_F(ProveMatrixTest, P1_MissingAndDoubledJobsAreRefusedByName) {
  RunAll();
  const ProgramResult missing = Merge({"big.depth-0", "small.depth-6"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.out,
              AllOf(HasSubstr("refused by big.depth-6: None of the folders is of this job.\n"),
                    EndsWith("prove: rc 2 (refused by big.depth-6, small.depth-0)\n")));
  fs::copy(repository_.JobFolder(kIds[0]), repository_.JobFolder("copy"),
           fs::copy_options::recursive);
  std::vector<std::string> folders = kIds;
  folders.emplace_back("copy");
  const ProgramResult twice = Merge(folders);
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.out, AllOf(HasSubstr("and again in \"" + repository_.JobFolder("copy")),
                               EndsWith("prove: rc 2 (refused by big.depth-0)\n")));
  // The same job with another result.
  fs::remove_all(repository_.JobFolder("copy"));
  repository_.Write("b-0", MatrixRepository::Plan(3));
  const ProgramResult other = repository_.Prove({"--matrix", repository_.Matrix(), "--job", kIds[0],
                                                 "-o", repository_.JobFolder("copy"), "HEAD"});
  EXPECT_EQ(other.status, 0) << other.err;
  const ProgramResult contradiction = Merge(folders);
  EXPECT_EQ(contradiction.status, 2);
  EXPECT_THAT(contradiction.out,
              AllOf(HasSubstr("contradict each other"), HasSubstr("another tree (")));
}

TEST_F(ProveMatrixTest, P1_HalfAFolderIsRefused) {
  RunAll();
  const std::string folder = repository_.JobFolder("big.depth-6");
  for (const char* name :
       {"job.json", "base/manifest.json", "here/manifest.json", "here/depth-6.trace"}) {
    const std::string kept = ReadFile(folder + "/" + name).value();
    for (const size_t size : {size_t{0}, kept.size() / 2, kept.size() - 2}) {
      ASSERT_TRUE(WriteFile(folder + "/" + name, std::string_view(kept).substr(0, size)));
      const ProgramResult merged = Merge(kIds);
      EXPECT_EQ(merged.status, 2) << name << " " << size;
      EXPECT_THAT(merged.out, HasSubstr("refused by " + folder + ": ")) << name;
    }
    fs::remove(folder + "/" + name);
    EXPECT_EQ(Merge(kIds).status, 2) << name;
    ASSERT_TRUE(WriteFile(folder + "/" + name, kept));
  }
  EXPECT_EQ(Merge(kIds).status, 0);
  // The sides of another job, each whole.
  fs::remove_all(folder + "/here");
  fs::copy(repository_.JobFolder("small.depth-6") + "/base", folder + "/here");
  ReplaceInJob("big.depth-6", "here/manifest.json", "\"command\": \"", "\"command\": \"other ");
  EXPECT_THAT(Merge(kIds).out, HasSubstr("is not the evidence that the job of"));
}

TEST_F(ProveMatrixTest, P1_FoldersThatDoNotGoTogetherAreRefusedByName) {
  RunAll();
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } cases[] = {
      {"\"tool_version\": \"", "\"tool_version\": \"9", "with another program version (9"},
      {"\"plan\": \"", "\"plan\": \"9", "with another matrix and configuration (9"},
      {"\"identity\": \"", "\"identity\": \"9", "with another base (9"},
      {"\"complete\": true", "\"complete\": false", "\"complete\": true"},
      {"\"format\": 1", "\"format\": 7", "has format 7"},
  };
  const std::string path = repository_.JobFolder("small.depth-0") + "/job.json";
  const std::string kept = ReadFile(path).value();
  for (const auto& each : cases) {
    ReplaceInJob("small.depth-0", "job.json", each.from, each.to);
    const ProgramResult merged = Merge(kIds);
    EXPECT_EQ(merged.status, 2);
    EXPECT_THAT(merged.out, AllOf(HasSubstr("refused by "), HasSubstr("small.depth-0"),
                                  HasSubstr(each.message)));
    ASSERT_TRUE(WriteFile(path, kept));
  }
  // Another model under the same name, and another program that recorded.
  for (const std::string begin : {R"("model_digest": ")", R"("tool_version": ")"}) {
    const std::string manifest = repository_.JobFolder("small.depth-0") + "/base/manifest.json";
    const std::string before = ReadFile(manifest).value();
    ReplaceInJob("small.depth-0", "base/manifest.json", begin, begin + "ab");
    ReplaceInJob("small.depth-0", "job.json", HexDigest(before),
                 HexDigest(ReadFile(manifest).value()));
    EXPECT_THAT(Merge(kIds).out, AllOf(HasSubstr("refused by small.depth-"),
                                       testing::ContainsRegex("another (model|version of)")));
    ASSERT_TRUE(WriteFile(manifest, before));
    ASSERT_TRUE(WriteFile(path, kept));
  }
  ASSERT_TRUE(WriteFile(repository_.Matrix(), "[matrix]\ndepths = [0]\n"));
  EXPECT_THAT(Merge(kIds, {"--matrix", repository_.Matrix()}).out,
              HasSubstr("were recorded with another matrix: 4 jobs"));
}

TEST_F(ProveMatrixTest, P1_AJobThatFailsLeavesNoFolder) {
  repository_.Write("assay.toml", MatrixRepository::Config() + "time_limit_s = 9\n");
  fs::remove(repository_.Folder() + "/b-6");
  const ProgramResult failed = repository_.Job("big.depth-6");
  EXPECT_EQ(failed.status, 2);
  EXPECT_THAT(failed.out, EndsWith("prove: rc 2 (refused by here)\n"));
  EXPECT_FALSE(fs::exists(repository_.JobFolder("big.depth-6")));
  // In the tree, it would change what the next job proves.
  const ProgramResult inside =
      repository_.Prove({"--matrix", repository_.Matrix(), "--job", "big.depth-0", "-o",
                         repository_.Folder() + "/jobs", "HEAD"});
  EXPECT_EQ(inside.status, 2);
  EXPECT_THAT(inside.err, HasSubstr("folder of the job"));
  // A folder that is there stays as it is.
  ASSERT_EQ(repository_.Job("big.depth-0").status, 0);
  const ProgramResult again = repository_.Job("big.depth-0");
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("is there already and was left as it is"));
}

TEST_F(ProveMatrixTest, P1_WrongCommandLinesAreRefused) {
  const std::string matrix = repository_.Matrix();
  EXPECT_THAT(repository_.Prove({"--matrix", matrix, "--job", "big.depth-7", "HEAD"}).err,
              HasSubstr("did you mean \"big.depth-0\"?"));
  const std::vector<std::vector<std::string>> wrong = {
      {"--job", "x", "HEAD"},
      {"--matrix", matrix, "HEAD"},
      {"--matrix", matrix, "--job", "x"},
      {"--matrix", matrix, "--depth", "3"},
      {"--matrix", matrix, "-m", "x"},
      {"--matrix", matrix, "--html", "x"},
      {"--init", "--html", "x"},
      {"--matrix", matrix, "--merge"},
      {"--merge", "--job", "x", "--matrix", matrix, "d"},
      {"-o", "x", "HEAD"},
      {"HEAD", "HEAD"},
      {"--init", "--matrix", matrix},
  };
  for (const std::vector<std::string>& words : wrong) {
    EXPECT_EQ(repository_.Prove(words).status, 64) << testing::PrintToString(words);
  }
}

// The script is a task of a Slurm array; what Slurm sets, the test does.
TEST_F(ProveMatrixTest, P1_TheTasksOfASlurmArrayMakeTheMatrix) {
  const std::string script = ASSAY_SOURCE_DIR "/tools/prove_slurm.sh";
  for (int task = 0; task < 5; ++task) {
    const auto run =
        prove::RunProcess({script, repository_.Matrix(), repository_.In("jobs"), "HEAD"},
                          {.folder = repository_.Folder(),
                           .environment = {{"SLURM_ARRAY_TASK_ID", std::to_string(task)},
                                           {"ASSAY", ASSAY_PROGRAM},
                                           {"ASSAY_CACHE", repository_.Cache()}}});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->exit_status, task < 4 ? 0 : 64) << run->err;
  }
  EXPECT_EQ(Merge(kIds).status, 0);
  const auto without =
      prove::RunProcess({script, repository_.Matrix(), repository_.In("jobs"), "HEAD"},
                        {.folder = repository_.Folder(), .unset = {"SLURM_ARRAY_TASK_ID"}});
  EXPECT_THAT(without->err, HasSubstr("start this as a task of a Slurm array"));
}

}  // namespace
}  // namespace assay
