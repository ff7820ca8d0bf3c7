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
  // Without the flags that repository_.Prove() adds.
  static ProgramResult RunAssayIn(std::vector<std::string> words) {
    words.insert(words.begin(), "prove");
    return RunAssay(words);
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
  const std::vector<std::string> words = {"prove", "--here", repository_.Folder(), "--matrix",
                                          repository_.Matrix()};
  const auto with = [&words](const char* flag) {
    std::vector<std::string> all = words;
    all.emplace_back(flag);
    return RunAssay(all);
  };
  const ProgramResult list = RunAssay(words);
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_EQ(list.out,
            "big.depth-0\tmodel=big\tdepth=0\tplan=b\nbig.depth-6\tmodel=big\tdepth=6\tplan=b\n"
            "small.depth-0\tmodel=small\tdepth=0\tplan=a\n"
            "small.depth-6\tmodel=small\tdepth=6\tplan=a\n");
  EXPECT_EQ(with("-q").out, "big.depth-0\nbig.depth-6\nsmall.depth-0\nsmall.depth-6\n");
  const auto json = nlohmann::json::parse(with("--json").out);
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
      {"\"format\": 2", "\"format\": 1", "has format 1"},
      {"\"complete\": true", "\"complete\": false", "\"complete\": true"},
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
}

// Another base and another tree, each whole in itself.
TEST_F(ProveMatrixTest, P1_AnotherBaseIsRefusedByCommit) {
  RunAll();
  const std::string path = repository_.JobFolder("small.depth-0") + "/job.json";
  auto job = nlohmann::ordered_json::parse(ReadFile(path).value());
  const std::string other(40, '9');
  for (const char* side : {"base", "here"}) {
    auto changed = job;
    changed[side]["commit"] = changed[side]["identity"] = other;
    ASSERT_TRUE(WriteFile(path, changed.dump(2)));
    const ProgramResult merged = Merge(kIds);
    EXPECT_EQ(merged.status, 2);
    EXPECT_THAT(merged.out,
                AllOf(HasSubstr("refused by small.depth-0: "),
                      HasSubstr(std::string("with another ") +
                                (side == std::string("base") ? "base" : "tree") + " (" + other)));
  }
}

// What a job says of itself must hold together: nobody could tell what was proved.
TEST_F(ProveMatrixTest, P1_AJobThatContradictsItselfIsRefused) {
  RunAll();
  const std::string folder = repository_.JobFolder("small.depth-0");
  const std::string path = folder + "/job.json";
  const auto whole = nlohmann::ordered_json::parse(ReadFile(path).value());
  const std::string other(40, '9');
  const struct {
    nlohmann::ordered_json patch;
    std::string message;
  } cases[] = {
      {{{"here", {{"commit", other}}}},
       "the commit " + other + " of here is not that of its state"},
      {{{"base", {{"commit", "main"}}}}, "the commit main of base is not that of its state"},
      {{{"here", {{"changed_files", 3}}}}, "3 changed files of here, and its state"},
      {{{"depth", 6}},
       "\"small.depth-0\", but its model, backend and depth make \"small.depth-6\""},
      {{{"model", "big"}},
       "\"small.depth-0\", but its model, backend and depth make \"big.depth-0\""},
      {{{"backend", "cpu"}}, "make \"small.cpu.depth-0\""},
      {{{"job", "small.depth-6"}, {"depth", 6}}, "holds depth 0, and the job is of depth 6"},
      {{{"variables", {{"plan", 3}}}}, "\"variables\" holds a value that is no text"},
  };
  for (const auto& each : cases) {
    auto changed = whole;
    changed.merge_patch(each.patch);
    ASSERT_TRUE(WriteFile(path, changed.dump(2)));
    const ProgramResult merged = Merge(kIds);
    EXPECT_EQ(merged.status, 2) << each.patch;
    EXPECT_THAT(merged.out,
                AllOf(HasSubstr("refused by " + folder + ": "), HasSubstr(each.message)));
  }
}

TEST_F(ProveMatrixTest, P1_TheMatrixFileMustBeThatOfTheJobs) {
  RunAll();
  const std::string matrix = repository_.Matrix();
  const struct {
    const char* from;
    const char* to;
    std::string message;
  } cases[] = {
      {"depths = [0, 6]", "depths = [0, 7]",
       "refused by " + matrix + ": The jobs of the folders and of \"" + matrix +
           "\" are not the same: only in the folders big.depth-6, small.depth-6; only in the file "
           "big.depth-7, small.depth-7."},
      {"\"big\"]", "\"big\", \"new\"]", "only in the file new.depth-0, new.depth-6."},
      {"plan = \"b\"", "plan = \"a\"",
       "refused by big.depth-0: \"" + repository_.JobFolder("big.depth-0") +
           "\" was recorded with plan = \"b\", but \"" + matrix + "\" says plan = \"a\".\n"},
      {"plan = \"b\"", "plan = \"b\"\nmore = 1",
       "was recorded without more, but \"" + matrix + "\" says more = \"1\".\n"},
      {"plan = \"b\"", "",
       "was recorded with plan = \"b\", but \"" + matrix + "\" does not say it.\n"},
      {"plan = \"b\"", "plan = \"b\"\nfile = \"m.gguf\"",
       "was recorded without file, but \"" + matrix + "\" says file = \"m.gguf\".\n"},
  };
  for (const auto& each : cases) {
    std::string text = MatrixRepository::kMatrix;
    const size_t at = text.find(each.from);
    ASSERT_NE(at, std::string::npos);
    ASSERT_TRUE(WriteFile(matrix, text.replace(at, std::string(each.from).size(), each.to)));
    const ProgramResult merged = Merge(kIds, {"--matrix", matrix});
    EXPECT_EQ(merged.status, 2) << each.to;
    EXPECT_THAT(merged.out, HasSubstr(each.message));
  }
}

// What a merge would refuse of one job by itself is refused while it can still be mended.
TEST_F(ProveMatrixTest, P1_AJobThatNoMergeWouldTakeIsNotRecorded) {
  const std::string recorder = std::string(ASSAY_PLAN_RECORDER);
  const auto config = [&](const std::string& last, const std::string& more = "") {
    repository_.Write("assay.toml",
                      "[build]\ncommands = [\"cp {source}/?-? {source}/kernel {build}\"]\n"
                      "[record]\ncommands = [\"" +
                          recorder + " {build}/{plan}-{depth} {build}/kernel {out} {depth}\", \"" +
                          last + "\"]\n" + more);
  };
  const struct {
    std::string last;
    std::string message;
  } cases[] = {
      // The trace of another depth under this one's name.
      {recorder + " {build}/{plan}-{depth} {build}/kernel {out} 7; mv {out}/depth-7.trace "
                  "{out}/depth-{depth}.trace",
       "depth 0, but "},
      {"rm {out}/kernels.scan", "must hold a kernel scan"},
      {"rm {out}/depth-{depth}.ids", "must hold ids"},
  };
  for (const auto& each : cases) {
    config(each.last);
    const ProgramResult job = repository_.Job("big.depth-0");
    EXPECT_EQ(job.status, 2) << each.last << job.out << job.err;
    EXPECT_THAT(job.out, AllOf(HasSubstr("refused by "), HasSubstr(each.message)));
    EXPECT_FALSE(fs::exists(repository_.JobFolder("big.depth-0")));
  }
  config("true");
  EXPECT_EQ(repository_.Job("big.depth-0").status, 0);
}

TEST_F(ProveMatrixTest, P1_TheJsonOfAJobSaysThatItWasRecorded) {
  const ProgramResult job =
      repository_.Prove({"--json", "--matrix", repository_.Matrix(), "--job", kIds[0], "-o",
                         repository_.JobFolder(kIds[0]), "HEAD"});
  ASSERT_EQ(job.status, 0) << job.err;
  const auto json = nlohmann::json::parse(job.out);
  EXPECT_EQ(json["exit_status"], 0);
  EXPECT_EQ(json["verdict"], "prove: rc 0 (recorded, not compared)");
  EXPECT_EQ(json["refused"].size(), 0U);
  EXPECT_EQ(json["here"]["evidence"], repository_.JobFolder(kIds[0]) + "/here");
}

TEST_F(ProveMatrixTest, P1_TheFolderOfAJobTakesThePlaceOfNothingOrOfAnEmptyOne) {
  const auto job = [&](const std::string& out) {
    return repository_.Prove(
        {"--matrix", repository_.Matrix(), "--job", kIds[0], "-o", out, "HEAD"});
  };
  // Folders above it are made, once there is something to put into them.
  EXPECT_EQ(job(repository_.In("x/y/z")).status, 0);
  EXPECT_TRUE(fs::exists(repository_.In("x/y/z/job.json")));
  // An empty folder that somebody made ahead keeps its mode, and a link to one stays.
  fs::create_directory(repository_.In("made"));
  fs::permissions(repository_.In("made"), fs::perms::owner_all);
  fs::create_directory_symlink(repository_.In("made"), repository_.In("link"));
  EXPECT_EQ(job(repository_.In("link")).status, 0);
  EXPECT_TRUE(fs::is_symlink(repository_.In("link")));
  EXPECT_TRUE(fs::exists(repository_.In("made/job.json")));
  EXPECT_EQ(fs::status(repository_.In("made")).permissions(), fs::perms::owner_all);
  // Where there can be no folder, that is said before anything is built.
  fs::remove_all(repository_.Cache());
  fs::create_symlink(repository_.In("nowhere"), repository_.In("dangling"));
  ASSERT_TRUE(WriteFile(repository_.In("file"), ""));
  for (const char* out : {"dangling", "file", "file/below", "made", "x/y"}) {
    const ProgramResult refused = job(repository_.In(out));
    EXPECT_EQ(refused.status, 2) << out;
    EXPECT_THAT(refused.err, HasSubstr(repository_.In(out))) << out;
    EXPECT_FALSE(fs::exists(repository_.Cache())) << out;
  }
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
  const struct {
    std::vector<std::string> words;
    const char* message;
  } wrong[] = {
      {{"--job", "x", "HEAD"}, "--job needs --matrix"},
      {{"--matrix", matrix, "HEAD"}, "takes no BASE (\"HEAD\")"},
      {{"--matrix", matrix, "--job", "x"}, "BASE is missing"},
      {{"--matrix", matrix, "--merge"}, "needs the folders"},
      {{"--merge", "--job", "x", "--matrix", matrix, "d"}, "--merge and --job exclude each other"},
      {{"HEAD", "HEAD"}, "one too many"},
      {{"--init", "HEAD"}, "--init takes no BASE (\"HEAD\")"},
      {{"--init", "--matrix", matrix}, "--matrix has no meaning with --init"},
      {{"--init", "--merge"}, "--merge has no meaning with --init"},
  };
  for (const auto& each : wrong) {
    const ProgramResult result = RunAssayIn(each.words);
    EXPECT_EQ(result.status, 64) << testing::PrintToString(each.words);
    EXPECT_THAT(result.err, HasSubstr(each.message));
  }
}

// A flag that would change nothing is refused by its name, in every form of the command.
TEST_F(ProveMatrixTest, P1_NoFlagIsIgnored) {
  const std::string matrix = repository_.Matrix();
  const std::vector<std::string> list = {"--matrix", matrix};
  const std::vector<std::string> job = {"--matrix", matrix, "--job", "big.depth-0", "HEAD"};
  const std::vector<std::string> merge = {"--merge", "folder"};
  const std::vector<std::string> init = {"--init"};
  const std::vector<std::string> proof = {"HEAD"};
  const struct {
    std::vector<std::string> flag;
    std::vector<std::vector<std::string>> refused_with;
  } cases[] = {
      {{"--here", "x"}, {merge, init}},
      {{"--config", "x"}, {merge}},
      {{"--depth", "3"}, {list, job, merge, init}},
      {{"--model", "x"}, {list, job, merge, init}},
      {{"--rebuild"}, {list, merge, init}},
      {{"--cache", "x"}, {list, merge, init}},
      {{"--cache-limit", "3"}, {list, merge, init}},
      {{"--max-differences", "3"}, {list, job, init}},
      {{"--json"}, {init}},
      {{"--out", "x"}, {list, merge, init, proof}},
      {{"--markdown", "x"}, {list, job, init}},
      {{"--junit", "x"}, {list, job, init}},
      {{"--html", "x"}, {list, job, init}},
  };
  for (const auto& each : cases) {
    for (std::vector<std::string> words : each.refused_with) {
      words.insert(words.end(), each.flag.begin(), each.flag.end());
      const ProgramResult result = RunAssayIn(words);
      EXPECT_EQ(result.status, 64) << testing::PrintToString(words);
      EXPECT_THAT(result.err, HasSubstr("error: " + each.flag.front() + " has no meaning with "))
          << testing::PrintToString(words);
    }
  }
  EXPECT_THAT(RunAssayIn({"--matrix", matrix, "-m", "x"}).err,
              HasSubstr("the models stand in the matrix, or as \"model\" of [record]"));
}

// A reader of the status alone still finds on standard error what was refused and why.
TEST_F(ProveMatrixTest, P1_WhyAJobOrAMergeIsRefusedStandsOnStandardError) {
  ASSERT_EQ(repository_.Job("big.depth-0").status, 0);
  const std::string reason =
      "assay prove: error: Refused by big.depth-6: None of the folders is of this job.\n";
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"-q"}, {"--json"}, {"--junit", "-"}}) {
    EXPECT_THAT(Merge({"big.depth-0"}, more).err, HasSubstr(reason));
  }
  fs::remove(repository_.Folder() + "/b-6");
  EXPECT_THAT(repository_.Job("big.depth-6").err,
              AllOf(HasSubstr("assay prove: error: Refused by here: recording failed with status "),
                    HasSubstr(". The log is \""), EndsWith("record-1-depth-6.log\".\n")));
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
