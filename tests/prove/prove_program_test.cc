// `assay prove` and `assay counts` as a user's shell runs them.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/program.h"
#include "prove/process.h"
#include "support/temp_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class ProveProgramTest : public testing::Test {
 protected:
  ProveProgramTest() {
    fs::create_directories(dir_ / "repo");
    Git({"init", "-q", "-b", "main"});
    Write("plan", "buffer a\nbuffer b\nscale 2 a b\ncommit\n");
    Write("kernel", "source");
    Write("assay.toml",
          std::string("[build]\ncommands = [\"cp {source}/plan {source}/kernel {build}\"]\n"
                      "[record]\ndepths = [0]\ncommands = [\"") +
              ASSAY_PLAN_RECORDER + " {build}/plan {build}/kernel {out} {depth}\"]\n");
    Git({"add", "-A"});
    Git({"-c", "user.name=n", "-c", "user.email=e@e", "commit", "-q", "-m", "first"});
  }

  std::string Repo() const { return (dir_ / "repo").string(); }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFile(Repo() + "/" + name, text));
  }
  std::string Git(std::vector<std::string> words) const {
    words.insert(words.begin(), "git");
    return prove::RunProcess(words, {.folder = Repo()}).value().out;
  }
  ProgramResult Prove(std::vector<std::string> words) const {
    const std::vector<std::string> begin = {"prove", "--here", Repo(), "--cache",
                                            (dir_ / "cache").string()};
    words.insert(words.begin(), begin.begin(), begin.end());
    return RunAssay(words);
  }

  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
};

TEST_F(ProveProgramTest, P1_TheVerdictIsTheLastLine) {
  const ProgramResult same = Prove({"HEAD"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(
      same.out,
      EndsWith("\nprove: rc 0 (kernels rc 0, added 0; trace depth 0 rc 0; ids differ 0)\n"));
  Write("plan", "buffer a\nbuffer b\nscale 3 a b\ncommit\n");
  const ProgramResult different = Prove({"-q", "HEAD"});
  EXPECT_EQ(different.status, 3);
  EXPECT_EQ(different.out,
            "prove: rc 3 (kernels rc 0, added 0; trace depth 0 rc 1; ids differ 1)\n");
  EXPECT_THAT(Prove({"--json", "HEAD"}).out, HasSubstr("\"exit_status\": 3"));
  EXPECT_THAT(Prove({"--depth", "5", "HEAD"}).out, HasSubstr("trace depth 5 rc 1"));
}

TEST_F(ProveProgramTest, P1_ReportsAreWrittenBesideTheText) {
  Write("plan", "buffer a\nbuffer b\nscale 3 a b\ncommit\n");
  const auto file = [this](const char* name) { return (dir_ / name).string(); };
  const ProgramResult result = Prove({"-q", "--markdown", file("p.md"), "--junit", file("p.xml"),
                                      "--html", file("p.html"), "HEAD"});
  EXPECT_EQ(result.status, 3) << result.err;
  const std::string verdict =
      "prove: rc 3 (kernels rc 0, added 0; trace depth 0 rc 1; ids differ 1)";
  EXPECT_EQ(result.out, verdict + "\n");
  EXPECT_THAT(ReadFile(file("p.md")).value(),
              testing::StartsWith("**Different**: `" + verdict + "`\n"));
  EXPECT_THAT(ReadFile(file("p.xml")).value(),
              HasSubstr("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\""));
  EXPECT_THAT(ReadFile(file("p.html")).value(), HasSubstr(verdict));
  // In place of the text.
  const ProgramResult printed = Prove({"--junit", "-", "HEAD"});
  EXPECT_EQ(printed.status, 3);
  EXPECT_THAT(printed.out, testing::StartsWith("<?xml"));
  EXPECT_THAT(printed.out, EndsWith("</testsuites>\n"));
}

// A and B are what `assay compare` calls its arguments.
TEST_F(ProveProgramTest, P1_AProofCallsItsSidesBaseAndHere) {
  const auto file = [this](const char* name) { return (dir_ / name).string(); };
  const auto page_of = [&] {
    std::string page = ReadFile(file("p.html")).value();
    page.resize(page.find("<script"));  // What is read without it.
    return page.substr(page.find("<body>"));
  };
  const std::string scale = "scale 2 a b\n", other = "scale 5 c d\n",
                    buffers = "buffer a\nbuffer b\nbuffer c\nbuffer d\n";
  Write("plan", buffers + scale + "barrier\n" + other + "commit\n");
  Git({"-c", "user.name=n", "-c", "user.email=e@e", "commit", "-q", "-a", "-m", "second"});
  const char* letter = "(^|[^A-Za-z0-9_])[AB]($|[^A-Za-z0-9_])";
  for (const std::string& plan :
       {buffers + other + scale + "barrier\ncommit\n", buffers + scale + "commit\n",
        buffers + scale + "barrier\nscale 6 c d\ncommit\n" + other + "commit\n"}) {
    Write("plan", plan);
    Write("kernel", plan);
    const ProgramResult text = Prove(
        {"--markdown", file("p.md"), "--junit", file("p.xml"), "--html", file("p.html"), "HEAD"});
    EXPECT_EQ(text.status, 3) << text.err;
    EXPECT_THAT(text.out, HasSubstr(" in base"));
    for (const std::string& report :
         {text.out, ReadFile(file("p.md")).value(), ReadFile(file("p.xml")).value(), page_of()}) {
      EXPECT_THAT(report, testing::Not(testing::ContainsRegex(letter)));
      EXPECT_THAT(report, testing::Not(HasSubstr("see above")));
    }
  }
}

TEST_F(ProveProgramTest, P1_AReportThatCannotBeWrittenIsSaidBeforeTheWork) {
  const std::string nowhere = (dir_ / "no" / "folder.html").string();
  const ProgramResult result = Prove({"--html", nowhere, "HEAD"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(nowhere));
  EXPECT_FALSE(fs::exists(dir_ / "cache"));
  EXPECT_EQ(Prove({"--html", "x", "--junit", "x", "HEAD"}).status, 64);
  EXPECT_THAT(Prove({"--json", "--markdown", "-", "HEAD"}).err,
              HasSubstr("--markdown - and --json both write to standard output"));
}

TEST_F(ProveProgramTest, P2_AModelThatNoCommandUsesIsRefused) {
  const ProgramResult result = Prove({"-m", Repo() + "/plan", "HEAD"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("uses {model}, so -m would change nothing"));
}

TEST_F(ProveProgramTest, P1_CountsAreAGate) {
  Prove({"HEAD"});
  std::string evidence;
  for (const auto& site : fs::directory_iterator(dir_ / "cache")) {
    for (const auto& entry : fs::directory_iterator(site)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("evidence-")) evidence = entry.path().string();
    }
  }
  const std::string file = (dir_ / "counts.json").string();
  EXPECT_EQ(RunAssay({"counts", "--check", file, evidence}).status, 2);
  EXPECT_EQ(RunAssay({"counts", "--check", file, "--update", evidence}).status, 0);
  const ProgramResult same = RunAssay({"counts", "--check", file, evidence});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.out,
            "depth-0, a token: 1 dispatch, 0 barriers, 512 bytes bound, 1 commit (of 1 token)\n");
  std::string text = ReadFile(file).value();
  text.replace(text.find("512"), 3, "511");
  ASSERT_TRUE(WriteFile(file, text));
  const ProgramResult risen = RunAssay({"counts", "-q", "--check", file, evidence});
  EXPECT_EQ(risen.status, 1);
  EXPECT_EQ(risen.out, "");
  EXPECT_THAT(risen.err, HasSubstr("depth-0: bytes bound a token rose from 511 to 512."));
  EXPECT_EQ(RunAssay({"counts", "--update", evidence}).status, 64);
  EXPECT_EQ(RunAssay({"counts", "--json", evidence + "/depth-0.trace"}).status, 0);
}

TEST_F(ProveProgramTest, P1_TwoRunsAtOnceDoNotDisturbEachOther) {
  Write("plan", "buffer a\nbuffer b\nscale 3 a b\ncommit\n");
  const std::string worktrees = Git({"worktree", "list"});
  const std::string run = std::string(ASSAY_PROGRAM) + " prove --here " + Repo() + " --cache " +
                          (dir_ / "cache").string() + " -q HEAD; echo $?";
  const auto both =
      prove::RunProcess({"sh", "-c", "(" + run + ") & (" + run + ") & wait"}, {.folder = Repo()});
  ASSERT_TRUE(both);
  const std::string one = "prove: rc 3 (kernels rc 0, added 0; trace depth 0 rc 1; ids differ 1)\n";
  EXPECT_THAT(both->out, testing::AnyOf(one + "3\n" + one + "3\n", one + one + "3\n3\n"))
      << both->err;
  EXPECT_EQ(Git({"worktree", "list"}), worktrees);
}

// The command of the build sends its parent, the program, what Ctrl-C sends, and goes on.
TEST_F(ProveProgramTest, P1_CtrlCLeavesNoWorktree) {
  const std::string worktrees = Git({"worktree", "list"});
  const std::string index = ReadFile(Repo() + "/.git/index").value();
  Write("stop.toml",
        "[build]\ncommands = [\"kill -INT $PPID; tail -f /dev/null\"]\n"
        "[record]\ncommands = [\"true\"]\n");
  const std::string status = Git({"--no-optional-locks", "status", "--porcelain"});
  const ProgramResult stopped = Prove({"--config", Repo() + "/stop.toml", "HEAD"});
  EXPECT_EQ(stopped.status, 130);
  EXPECT_EQ(stopped.out, "prove: rc 130 (stopped)\n");
  EXPECT_THAT(stopped.err, HasSubstr("Stopped at base, building (command 1 of 1): kill -INT"));
  EXPECT_EQ(Git({"worktree", "list"}), worktrees);
  EXPECT_EQ(ReadFile(Repo() + "/.git/index").value(), index);
  EXPECT_EQ(Git({"--no-optional-locks", "status", "--porcelain"}), status);
  for (const auto& entry : fs::directory_iterator(dir_ / "cache")) {
    EXPECT_FALSE(fs::exists(entry.path() / "source"));
  }
}

// The command of the build kills its parent, the program, and goes on with a child of its own.
TEST_F(ProveProgramTest, P1_AKilledRunLeavesNoProcessAndTheNextOneNoWorktree) {
  const std::string worktrees = Git({"worktree", "list"});
  const std::string alive = (dir_ / "alive").string();
  Write("kill.toml",
        "[build]\ncommands = [\"sh -c 'echo $$ > " + alive +
            "; exec tail -f /dev/null' & while ! test -s " + alive +
            "; do :; done; kill -KILL $PPID; wait\"]\n[record]\ncommands = [\"true\"]\n");
  EXPECT_EQ(Prove({"--config", Repo() + "/kill.toml", "HEAD"}).status, 128 + 9);
  const std::string pid = ReadFile(alive).value();
  // Death comes soon after the program's and not with it.
  const std::string program = "/proc/" + pid.substr(0, pid.size() - 1) + "/exe";
  std::error_code gone;
  for (int i = 0; i < 2'000'000 && !gone; ++i) static_cast<void>(fs::read_symlink(program, gone));
  EXPECT_TRUE(gone) << program;
  EXPECT_NE(Git({"worktree", "list"}), worktrees);
  EXPECT_EQ(Prove({"HEAD"}).status, 0);
  EXPECT_EQ(Git({"worktree", "list"}), worktrees);
}

TEST_F(ProveProgramTest, P1_AnEmptyNameIsAUsageError) {
  for (const char* flag : {"--cache", "--config", "--here", "--matrix", "--job", "-o", "-m"}) {
    const ProgramResult result = RunAssay({"prove", flag, "", "HEAD"});
    EXPECT_EQ(result.status, 64);
    EXPECT_THAT(result.err, HasSubstr(" is empty (\"\"); give it a value or leave it out."));
  }
}

TEST_F(ProveProgramTest, P1_AFailedBuildNamesItsLogAndIsStatusTwo) {
  Write("assay.toml",
        "[build]\ncommands = [\"echo out of cheese; exit 9\"]\n"
        "[record]\ncommands = [\"true\"]\n");
  const ProgramResult failed = Prove({"HEAD"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_THAT(failed.out, HasSubstr("  out of cheese\n"));
  EXPECT_THAT(failed.out, EndsWith("prove: rc 2 (refused by base)\n"));
  EXPECT_THAT(failed.out, HasSubstr("logs/build-1.log"));
  // One sentence for whoever does not read the text, and the same whatever is printed.
  EXPECT_THAT(failed.err,
              testing::StartsWith("assay prove: error: Refused by base: building failed "
                                  "with status 9: echo out of cheese; exit 9. The log "
                                  "is \""));
  EXPECT_THAT(failed.err, EndsWith("logs/build-1.log\".\n"));
  EXPECT_EQ(std::ranges::count(failed.err, '\n'), 1);
  EXPECT_EQ(Prove({"-q", "HEAD"}).err, failed.err);
  EXPECT_EQ(Prove({"--json", "HEAD"}).err, failed.err);
}

TEST_F(ProveProgramTest, P1_AReportIsWrittenOverNothingThatIsProved) {
  const auto file = [this](const std::string& name) { return Repo() + "/" + name; };
  Write("model", "bytes");
  Write("model.toml", ReadFile(file("assay.toml")).value() + "");
  fs::create_symlink(file("plan"), dir_ / "link");
  const struct {
    const char* flag;
    std::string path;
    const char* message;
  } cases[] = {
      {"--html", file("assay.toml"), "which is read"},
      {"--markdown", file("plan"), "a file of the tree"},
      {"--junit", file("./.git/../kernel"), "a file of the tree"},
      {"--html", (dir_ / "link").string(), "a file of the tree"},
      {"--html", file(".git/index"), "a file of the tree"},
      {"--html", (dir_ / "cache" / "x").string(), "which is read"},
  };
  fs::create_directory(dir_ / "cache");
  for (const auto& each : cases) {
    const std::string before = fs::exists(each.path) ? ReadFile(each.path).value() : "";
    const ProgramResult result = Prove({each.flag, each.path, "HEAD"});
    EXPECT_EQ(result.status, 64) << each.path << result.err;
    EXPECT_THAT(result.err, HasSubstr(each.message)) << each.path;
    EXPECT_EQ(fs::exists(each.path) ? ReadFile(each.path).value() : "", before);
  }
  const ProgramResult config =
      Prove({"--config", file("model.toml"), "--html", file("model.toml"), "HEAD"});
  EXPECT_EQ(config.status, 64);
  EXPECT_THAT(config.err, HasSubstr("which is read"));
  // A report may lie in the tree, where it is no file of it yet.
  EXPECT_EQ(Prove({"-q", "--html", file("new.html"), "HEAD"}).status, 0);
  // Joining folders needs no tree, and does not write into one that is there.
  const ProgramResult merge = RunAssay({"prove", "--merge", (dir_ / "jobs").string(), "--matrix",
                                        file("model.toml"), "--html", file("model.toml")});
  EXPECT_EQ(merge.status, 64);
  EXPECT_THAT(merge.err, HasSubstr("which is read"));
}

// What the program itself ignores ends a command of the build as it would in a shell.
TEST_F(ProveProgramTest, P1_ACommandHasSignalsAsTheyCome) {
  for (const auto& [name, number] : {std::pair("XFSZ", 25), std::pair("PIPE", 13)}) {
    Write("assay.toml", std::string("[build]\ncommands = [\"kill -s ") + name +
                            " $$\"]\n[record]\ncommands = [\"true\"]\n");
    EXPECT_THAT(Prove({"HEAD"}).out,
                HasSubstr("failed with status " + std::to_string(128 + number)));
  }
}

TEST_F(ProveProgramTest, P2_InitWritesAConfigurationThatIsRead) {
  const std::string path = (dir_ / "new.toml").string();
  EXPECT_EQ(RunAssay({"prove", "--init", "--config", path}).status, 0);
  EXPECT_EQ(RunAssay({"prove", "--init", "--config", path}).status, 2);
  Write("assay.toml", ReadFile(path).value() + "[verdit]\n");
  const ProgramResult wrong = Prove({"HEAD"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"verdict\"?"));
  EXPECT_EQ(RunAssay({"prove"}).status, 64);
  EXPECT_EQ(RunAssay({"prove", "--init", "HEAD"}).status, 64);
}

// The program looks for git in PATH as it is when it starts.
TEST_F(ProveProgramTest, P1_WithoutGitTheErrorSaysSo) {
  const std::string path = std::getenv("PATH");
  ASSERT_EQ(::setenv("PATH", "/nonexistent", 1), 0);
  const ProgramResult result = Prove({"HEAD"});
  ASSERT_EQ(::setenv("PATH", path.c_str(), 1), 0);
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("There is no program git in PATH"));
}

}  // namespace
}  // namespace assay
