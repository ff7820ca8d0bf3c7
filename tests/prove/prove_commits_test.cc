// P1..P3: commits of a small repository, made here, built and recorded for real.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/prove.h"

#include "base/file.h"
#include "prove/file_lock.h"
#include "prove/git.h"
#include "prove/process.h"
#include "support/temp_folder.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Two chains of two dispatches each, and a barrier between the halves.
constexpr std::string_view kPlan = R"(buffer a
buffer b
buffer c
buffer d
buffer e
scale 2 a b
scale 3 a c
barrier
scale 5 b d
scale 7 c e
commit
)";

class ProveTest : public testing::Test {
 protected:
  ProveTest() {
    fs::create_directories(Repo());
    Git({"init", "-q", "-b", "main"});
    Write("plan", kPlan);
    Write("kernel", "out = in * factor");
    Write(".gitignore", "ignored\n");
    Commit("first");
  }

  std::string Repo() const { return (dir_ / "repo").string(); }
  std::string Cache() const { return (dir_ / "cache").string(); }
  void Write(const std::string& name, std::string_view text) const {
    ASSERT_TRUE(WriteFile(Repo() + "/" + name, text));
  }
  std::string Git(std::vector<std::string> words) const {
    const std::vector<std::string> begin = {"git", "-c", "user.name=n", "-c", "user.email=e@e"};
    words.insert(words.begin(), begin.begin(), begin.end());
    const ProcessResult result = RunProcess(words, {.folder = Repo()}).value();
    EXPECT_EQ(result.exit_status, 0) << result.err;
    return result.out;
  }
  void Commit(const std::string& message) const {
    Git({"add", "-A"});
    Git({"commit", "-q", "-m", message});
  }
  // The plan with `from` replaced.
  static std::string Plan(const std::string& from, const std::string& to) {
    std::string plan(kPlan);
    const size_t at = plan.find(from);
    EXPECT_NE(at, std::string::npos);
    return plan.replace(at, from.size(), to);
  }

  // What of the repository must stay as it is.
  std::map<std::string, std::string> Snapshot() const {
    std::map<std::string, std::string> state;
    state["index"] = ReadFile(Repo() + "/.git/index").value();
    state["status"] = Git({"--no-optional-locks", "status", "--porcelain", "--ignored"});
    state["worktrees"] = Git({"worktree", "list", "--porcelain"});
    state["stash"] = Git({"stash", "list"});
    state["head"] = Git({"rev-parse", "HEAD"});
    for (const auto& entry : fs::recursive_directory_iterator(Repo())) {
      const std::string name = fs::relative(entry.path(), Repo()).string();
      if (name.starts_with(".git/") || !entry.is_regular_file()) continue;
      state["file " + name] = ReadFile(entry.path().string()).value();
    }
    return state;
  }

  Proof Prove(const std::string& base, const std::string& here = "") {
    ProveOptions options = options_;
    options.base = base;
    options.here = here.empty() ? Repo() : here;
    options.cache = Cache();
    options.on_step = [this](const std::string& step) { steps_.push_back(step); };
    steps_.clear();
    const auto before = Snapshot();
    Result<Proof> proof = prove::Prove(config_, options);
    EXPECT_EQ(Snapshot(), before);
    EXPECT_FALSE(AnySource());
    if (proof) return std::move(*proof);
    error_ = proof.error().ToString();
    return {};
  }
  // True when a worktree is left in the cache.
  bool AnySource() const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(Cache(), none)) {
      if (fs::exists(entry.path() / "source")) return true;
    }
    return false;
  }
  // Commits `plan` and proves it against the commit before.
  Proof Planted(const std::string& plan) {
    Write("plan", plan);
    Commit("planted");
    return Prove("HEAD~1");
  }

  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
  Config config_{.path = "assay.toml",
                 .build_commands = {"cp {source}/plan {source}/kernel {build}"},
                 .record_commands = {std::string(ASSAY_PLAN_RECORDER) +
                                     " {build}/plan {build}/kernel {out} {depth}"},
                 .depths = {0, 6},
                 .model = {},
                 .allow = {}};
  ProveOptions options_;
  std::vector<std::string> steps_;
  std::string error_;
};

TEST_F(ProveTest, P3_ACommitAgainstItselfIsIdentical) {
  const Proof proof = Prove("HEAD");
  EXPECT_EQ(proof.exit_status, 0) << FormatProofText(proof);
  EXPECT_THAT(proof.kinds, IsEmpty());
  // Built and recorded twice, or it would prove nothing.
  EXPECT_NE(proof.base.evidence, proof.here.evidence);
  EXPECT_THAT(FormatProofText(proof),
              EndsWith("changed: nothing\nprove: rc 0 (kernels rc 0, added 0; trace depth 0 rc 0, "
                       "depth 6 rc 0; ids differ 0)\n"));
}

TEST_F(ProveTest, P1_WhatGitOverlooksIsRefused) {
  for (const std::string flag : {"assume-unchanged", "skip-worktree"}) {
    Git({"update-index", "--" + flag, "plan"});
    Write("plan", Plan("scale 7 c e", "scale 8 c e"));
    Prove("HEAD");
    EXPECT_THAT(error_, HasSubstr("git was told to overlook changes of \"plan\"")) << flag;
    Git({"update-index", "--no-" + flag, "plan"});
    Git({"checkout", "-q", "plan"});
    EXPECT_EQ(Prove("HEAD").exit_status, 0);
  }
}

TEST_F(ProveTest, P1_RepositoriesInsideTheTreeAreRefused) {
  Git({"init", "-q", "nest"});
  Write("nest/file", "text");
  Prove("HEAD");
  EXPECT_THAT(error_, HasSubstr("\"nest/\" is a repository of its own inside the tree"));
  fs::remove_all(Repo() + "/nest");
  Git({"update-index", "--add", "--cacheinfo",
       "160000," + Git({"rev-parse", "HEAD"}).substr(0, 40) + ",sm"});
  Prove("HEAD");
  EXPECT_THAT(error_, HasSubstr("\"sm\" is a submodule"));
}

TEST_F(ProveTest, P1_BufferOrderIsNumberingOnly) {
  const Proof proof = Planted(Plan("buffer b\nbuffer c\n", "buffer c\nbuffer b\n"));
  EXPECT_EQ(proof.exit_status, 3);
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kNumbering));
  EXPECT_THAT(FormatProofVerdict(proof),
              HasSubstr("trace depth 0 rc 6, depth 6 rc 6; ids differ 0"));
  EXPECT_THAT(FormatProofText(proof), HasSubstr("the numbers of 2 of 5 buffers, and nothing else"));
}

TEST_F(ProveTest, P1_AnExtraDispatchIsADispatchAdded) {
  const Proof proof = Planted(Plan("scale 7 c e\n", "scale 7 c e\nbarrier\nscale 2 e a\n"));
  EXPECT_EQ(proof.exit_status, 3);
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kBarriersMore, ChangeKind::kDispatchesAdded));
  EXPECT_EQ(proof.changes[0].dispatches_added, 1U);
}

TEST_F(ProveTest, P1_ARemovedDispatchIsADispatchRemoved) {
  const Proof proof = Planted(Plan("scale 5 b d\n", ""));
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kDispatchesRemoved));
}

TEST_F(ProveTest, P1_AChangedConstantIsThat) {
  const Proof proof = Planted(Plan("scale 7 c e", "scale 8 c e"));
  EXPECT_EQ(proof.exit_status, 3);
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kConstants));
  EXPECT_THAT(FormatProofVerdict(proof), HasSubstr("ids differ 2"));
}

TEST_F(ProveTest, P1_OtherBuffersAreBindings) {
  const Proof proof = Planted(Plan("scale 7 c e", "scale 7 b e"));
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kBindings));
}

TEST_F(ProveTest, P1_ARemovedBarrierIsBarriersFewerAndTheHazardCheckSaysWhetherItWasNeeded) {
  const Proof needed = Planted(Plan("barrier\n", ""));
  EXPECT_EQ(needed.exit_status, 3);
  EXPECT_THAT(needed.kinds, ElementsAre(ChangeKind::kBarriersFewer));
  EXPECT_THAT(FormatProofText(needed),
              AllOf(HasSubstr("1 barrier fewer (1 in base, 0 in here), and nothing else"),
                    HasSubstr("hazard check: base clean, here 2 hazards"),
                    HasSubstr("the hazards: assay check '" + needed.here.evidence)));
  // One that no pair needs.
  Write("plan", Plan("scale 3 a c\n", "barrier\nscale 3 a c\n"));
  Commit("a barrier too many");
  const Proof redundant = Planted(std::string(kPlan));
  EXPECT_THAT(redundant.kinds, ElementsAre(ChangeKind::kBarriersFewer));
  EXPECT_THAT(FormatProofText(redundant), HasSubstr("hazard check: base clean, here clean"));
}

TEST_F(ProveTest, P1_AMovedBarrierIsBarriersMoved) {
  const Proof proof = Planted(Plan("scale 3 a c\nbarrier\n", "barrier\nscale 3 a c\n"));
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kBarriersMoved));
  EXPECT_THAT(FormatProofText(proof), HasSubstr("here 1 hazard\n"));
}

TEST_F(ProveTest, P1_AnotherOrderIsLegalWhereNoBytesAreShared) {
  const Proof proof = Planted(Plan("scale 2 a b\nscale 3 a c\n", "scale 3 a c\nscale 2 a b\n"));
  EXPECT_EQ(proof.exit_status, 3);
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kOrder));
  EXPECT_EQ(proof.changes[0].order_legal, true);
  EXPECT_THAT(FormatProofText(proof), HasSubstr("the new order is legal"));
}

TEST_F(ProveTest, P1_AnotherOrderIsNotLegalWhereBytesAreShared) {
  Write("plan", Plan("scale 7 c e\n", "barrier\nscale 7 d e\n"));
  Commit("a chain");
  const Proof proof =
      Planted(Plan("scale 5 b d\nscale 7 c e\n", "scale 7 d e\nbarrier\nscale 5 b d\n"));
  EXPECT_THAT(proof.kinds, testing::Contains(ChangeKind::kOrder));
  EXPECT_EQ(proof.changes[0].order_legal, false);
  EXPECT_THAT(FormatProofText(proof), HasSubstr("not legal: scale (line"));
}

TEST_F(ProveTest, P1_AChangedKernelIsThat) {
  Write("kernel", "out = factor * in");
  Commit("planted");
  const Proof proof = Prove("HEAD~1");
  EXPECT_EQ(proof.exit_status, 3);
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kKernelsChanged));
  EXPECT_THAT(
      FormatProofVerdict(proof),
      "prove: rc 3 (kernels rc 1, added 0; trace depth 0 rc 1, depth 6 rc 1; ids differ 0)\n");
}

TEST_F(ProveTest, P1_TheFirstDifferenceIsShownAlignedInContext) {
  const Proof proof = Planted(Plan("scale 5 b d\n", "scale 5 b d\nscale 4 a a\n"));
  const auto& context = proof.changes[0].context;
  ASSERT_EQ(context.size(), 7U);
  EXPECT_EQ(context[3].mark, '+');
  EXPECT_EQ(context[3].line_a, 0U);
  EXPECT_THAT(context[3].text, HasSubstr("args=00008040"));
  EXPECT_EQ(context[2].line_a, context[2].line_b);
  EXPECT_EQ(context[4].line_a + 1, context[4].line_b);
}

TEST_F(ProveTest, P1_ATraceWithoutADispatchProvesNothing) {
  Write("plan", "buffer a\ncommit\n");
  Commit("no work");
  const Proof proof = Prove("HEAD");
  EXPECT_EQ(proof.exit_status, 2);
  EXPECT_THAT(FormatProofText(proof), AllOf(HasSubstr("holds no dispatch: it proves nothing"),
                                            EndsWith("prove: rc 2 (refused by evidence)\n")));
}

TEST_F(ProveTest, P1_TheFirstDifferenceIsOneThatMattersMoreThanAFactOfTheRun) {
  // What the trace says of how it was recorded differs as well, two lines against one.
  Write("plan", "meta first one\nmeta more x\n" + std::string(kPlan));
  Commit("facts");
  const Proof proof = Planted("meta first two\n" + Plan("scale 7 c e", "scale 8 c e"));
  EXPECT_THAT(proof.kinds, ElementsAre(ChangeKind::kConstants, ChangeKind::kMeta));
  const auto& context = proof.changes[0].context;
  ASSERT_GE(context.size(), 5U);
  EXPECT_EQ(context[0].line_a, context[0].line_b + 1);
  EXPECT_EQ(context[3].mark, '-');
  EXPECT_THAT(context[3].text, HasSubstr("dispatch"));
  EXPECT_EQ(context[4].mark, '+');
}

TEST_F(ProveTest, P2_WhatTheConfigurationAllowsIsNoDifference) {
  config_.allow = {ChangeKind::kBarriersFewer};
  EXPECT_EQ(Planted(Plan("barrier\n", "")).exit_status, 0);
  // The barrier is back: that is one more, which nobody allowed.
  const Proof more = Planted(std::string(kPlan));
  EXPECT_EQ(more.exit_status, 3);
  EXPECT_THAT(more.not_allowed, ElementsAre(ChangeKind::kBarriersMore));
}

TEST_F(ProveTest, P2_WhatIsNotRequiredIsShownAndNotJudged) {
  config_.require_trace = false;
  const Proof proof = Planted(Plan("barrier\n", ""));
  EXPECT_EQ(proof.exit_status, 0);
  EXPECT_THAT(FormatProofVerdict(proof), HasSubstr("trace depth 0 rc 1"));
  config_.require_ids = true;
  Write("plan", Plan("scale 7 c e", "scale 8 c e"));
  Commit("ids");
  EXPECT_EQ(Prove("HEAD~1").exit_status, 3);
}

TEST_F(ProveTest, P1_TheWorkingTreeCountsAsItIs) {
  Write("other", "kept");
  Write("gone", "deleted below");
  Commit("second");
  config_.build_commands = {
      "cp {source}/kernel {build}; cat {source}/plan {source}/extra > {build}/plan; "
      "test ! -e {source}/gone; test ! -e {source}/ignored; cat {source}/staged"};
  Write("plan", "");
  Write("extra", kPlan);  // Untracked.
  Write("ignored", "not copied");
  Write("staged", "in the index");
  Git({"add", "staged"});
  Write("staged", "and changed since");
  fs::remove(Repo() + "/gone");
  const Proof proof = Prove("HEAD");
  // The base has no extra file, so its build fails; the other way round is what counts here.
  ASSERT_EQ(proof.exit_status, 2);
  EXPECT_EQ(proof.refused.at(0).by, "base");
  config_.build_commands = {
      "cp {source}/kernel {build}; cat {source}/plan {source}/extra > {build}/plan || "
      "cp {source}/plan {build}"};
  const Proof same = Prove("HEAD");
  EXPECT_EQ(same.exit_status, 0) << FormatProofText(same);
  EXPECT_EQ(same.here.changed, 4U);
  EXPECT_THAT(FormatProofText(same), HasSubstr("with 4 changed files"));
  // Other contents are another build.
  Write("extra", Plan("barrier\n", ""));
  EXPECT_EQ(Prove("HEAD").exit_status, 3);
}

TEST_F(ProveTest, P1_AFileThatWasOnlyTouchedIsNoChangeAndTheIndexStays) {
  // git would note the new time in the index, if it might.
  const fs::path plan = Repo() + "/plan";
  fs::last_write_time(plan, fs::last_write_time(plan) - std::chrono::hours(1));
  const Proof proof = Prove("HEAD");
  EXPECT_EQ(proof.exit_status, 0);
  EXPECT_EQ(proof.here.changed, 0U);
}

TEST_F(ProveTest, P1_ASecondRunBuildsNothing) {
  Write("plan", Plan("scale 7 c e", "scale 8 c e"));
  Commit("second");
  EXPECT_FALSE(Prove("HEAD~1").base.cached);
  EXPECT_THAT(steps_, testing::Contains(HasSubstr("base: building")));
  const Proof again = Prove("HEAD~1");
  EXPECT_TRUE(again.base.cached && again.here.cached);
  EXPECT_THAT(steps_, ElementsAre("comparing"));
  EXPECT_EQ(again.exit_status, 3);
  // Other depths record anew and build nothing.
  config_.depths = {3};
  EXPECT_FALSE(Prove("HEAD~1").base.cached);
  EXPECT_THAT(steps_, Not(testing::Contains(HasSubstr("building"))));
  // Other build commands build anew.
  config_.build_commands.emplace_back("true");
  Prove("HEAD~1");
  EXPECT_THAT(steps_, testing::Contains("here: building (command 2 of 2)"));
  options_.rebuild = true;
  EXPECT_FALSE(Prove("HEAD~1").here.cached);
}

TEST_F(ProveTest, P1_DamagedEvidenceInTheCacheIsRecordedAgain) {
  const Proof first = Prove("HEAD");
  ASSERT_EQ(first.exit_status, 0);
  ASSERT_TRUE(WriteFile(first.base.evidence + "/depth-0.trace", "damaged"));
  const Proof second = Prove("HEAD");
  EXPECT_EQ(second.exit_status, 0);
  EXPECT_FALSE(second.base.cached);
}

TEST_F(ProveTest, P1_AFailedBuildShowsTheEndOfItsLog) {
  config_.build_commands.emplace_back(
      "for i in 1 2 3; do echo line $i; done; echo wrong >&2; exit 7");
  const Proof proof = Prove("HEAD");
  EXPECT_EQ(proof.exit_status, 2);
  ASSERT_EQ(proof.refused.size(), 1U);
  EXPECT_EQ(proof.refused[0].by, "base");
  EXPECT_THAT(proof.refused[0].reason, HasSubstr("building failed with status 7"));
  EXPECT_THAT(proof.refused[0].log_tail, EndsWith("line 3\nwrong\n"));
  EXPECT_THAT(ReadFile(proof.refused[0].log).value(), EndsWith("line 3\nwrong\n"));
  EXPECT_THAT(FormatProofText(proof),
              AllOf(HasSubstr("  wrong\n"), EndsWith("prove: rc 2 (refused by base)\n")));
  // A build that failed is not taken for one that did not.
  EXPECT_EQ(Prove("HEAD").exit_status, 2);
}

TEST_F(ProveTest, P1_AFailedRecordingIsRefused) {
  config_.record_commands = {"true"};
  const Proof nothing = Prove("HEAD");
  EXPECT_EQ(nothing.exit_status, 2);
  EXPECT_THAT(nothing.refused.at(0).reason,
              HasSubstr("neither depth-0.trace nor depth-0.trace.zst"));
  config_.record_commands = {"exit 3"};
  EXPECT_THAT(Prove("HEAD").refused.at(0).reason, HasSubstr("recording failed with status 3"));
}

TEST_F(ProveTest, P1_MissingPartsAreRefusedByName) {
  config_.record_commands.emplace_back("rm {out}/*.ids {out}/kernels.scan");
  const Proof proof = Prove("HEAD");
  EXPECT_EQ(proof.exit_status, 2);
  EXPECT_THAT(
      FormatProofVerdict(proof),
      "prove: rc 2 (no kernels; trace depth 0 rc 0, depth 6 rc 0; no ids; refused by kernels, "
      "ids)\n");
  config_.require_ids = config_.require_kernels = false;
  EXPECT_EQ(Prove("HEAD").exit_status, 0);
}

TEST_F(ProveTest, P1_ACommandThatTakesTooLongIsEndedWithAllItStarted) {
  config_.build_limit_s = 1;
  const std::string alive = (dir_ / "alive").string();
  ASSERT_EQ(::setenv("ASSAY_TEST_FIFO", alive.c_str(), 1), 0);
  // A child of the shell that ignores being asked to end.
  config_.build_commands = {
      "sh -c 'trap \"\" TERM; echo $$ > \"$ASSAY_TEST_FIFO\"; tail -f /dev/null'"
      " & wait"};
  const Proof proof = Prove("HEAD");
  EXPECT_EQ(proof.exit_status, 2);
  EXPECT_THAT(proof.refused.at(0).reason, HasSubstr("longer than its limit (1 s)"));
  const std::string pid = ReadFile(alive).value();
  // Gone, or dead and waiting to be reaped by whoever inherited it: the dead run no program. Death
  // comes soon after the signal and not with it.
  const std::string program = "/proc/" + pid.substr(0, pid.size() - 1) + "/exe";
  std::error_code gone;
  for (int i = 0; i < 200'000 && !gone; ++i) static_cast<void>(fs::read_symlink(program, gone));
  EXPECT_TRUE(gone) << program;
}

TEST_F(ProveTest, P1_AStopLeavesNothingBehind) {
  bool building = false;
  config_.build_commands = {"tail -f /dev/null"};
  options_.stop = [&] {
    for (const std::string& step : steps_) building |= step.find("building") != std::string::npos;
    return building;
  };
  Prove("HEAD");  // Its own expectations look for what is left.
  EXPECT_TRUE(building);
  EXPECT_THAT(error_, AllOf(HasSubstr("Stopped at base, building (command 1 of 1): "),
                            HasSubstr("tail -f /dev/null; its log is \"" + Cache())));
}

TEST_F(ProveTest, P1_AWorktreeThatAKilledRunLeftIsTakenAway) {
  const Proof first = Prove("HEAD~0");
  const std::string site = fs::path(first.base.evidence).parent_path().string();
  Git({"worktree", "add", "--quiet", "--detach", site + "/source", "HEAD"});
  Git({"worktree", "lock", site + "/source"});
  options_.rebuild = false;
  fs::remove_all(first.base.evidence);
  ProveOptions options = options_;
  options.base = "HEAD";
  options.here = Repo();
  options.cache = Cache();
  ASSERT_TRUE(prove::Prove(config_, options));
  EXPECT_THAT(Git({"worktree", "list"}), Not(HasSubstr("source")));
}

TEST_F(ProveTest, P1_WorktreesOfDeadRunsAreTakenAwayAndOthersStay) {
  // A site of other commands, which the run below does not use.
  const std::string site = Cache() + "/0123";
  fs::create_directories(site);
  Git({"worktree", "add", "--quiet", "--detach", site + "/source", "HEAD"});
  // One whose site is gone, and one that is no site's.
  Git({"worktree", "add", "--quiet", "--detach", Cache() + "/4567/source", "HEAD"});
  fs::remove_all(Cache() + "/4567");
  const std::string other = (dir_ / "own" / "source").string();
  Git({"worktree", "add", "--quiet", "--detach", other, "HEAD"});
  ProveOptions options = options_;
  options.base = "HEAD";
  options.here = Repo();
  options.cache = Cache();
  {
    // While somebody holds the site, its worktree is that run's.
    FileLock lock = FileLock::Open(site + "/lock").value();
    ASSERT_TRUE(lock.TryExclusive().value());
    ASSERT_TRUE(prove::Prove(config_, options));
    EXPECT_THAT(Git({"worktree", "list"}), AllOf(HasSubstr("0123"), Not(HasSubstr("4567"))));
  }
  ASSERT_TRUE(prove::Prove(config_, options));
  EXPECT_THAT(Git({"worktree", "list"}), AllOf(Not(HasSubstr("0123")), HasSubstr(other)));
  EXPECT_FALSE(fs::exists(site + "/source"));
}

// git reads what another git has half written of its own worktree, and fails.
TEST_F(ProveTest, P1_WorktreesOfOneRepositoryAreMadeOneAtATime) {
  std::optional<FileLock> other = FileLock::OpenFolder(Repo() + "/.git").value();
  ASSERT_TRUE(other->TryExclusive().value());
  const std::string folder = (dir_ / "made").string();
  const auto asked = [&] {
    EXPECT_TRUE(!other || !fs::exists(folder));
    other.reset();
    return false;
  };
  const Repository repository = Repository::Find(Repo(), asked).value();
  TreeState state;
  state.commit = state.identity = repository.Commit("HEAD").value();
  ASSERT_TRUE(repository.AddWorktree(state, folder));
  EXPECT_FALSE(other);
  other.reset();
  EXPECT_TRUE(fs::exists(folder + "/plan"));
  repository.RemoveWorktree(folder);
}

TEST_F(ProveTest, P1_WhoWaitsForAnotherRunSaysForWhom) {
  const Proof first = Prove("HEAD");
  const std::string site = fs::path(first.base.evidence).parent_path().string();
  std::optional<FileLock> lock = FileLock::Open(site + "/lock").value();
  ASSERT_TRUE(lock->TryExclusive().value());
  lock->WriteHolder();
  std::string note;
  options_.on_note = [&](const std::string& said) {
    note = said;
    lock.reset();
  };
  EXPECT_EQ(Prove("HEAD").exit_status, 0);
  EXPECT_THAT(note, HasSubstr(fmt::format("waiting for another run (process {})", ::getpid())));
}

TEST_F(ProveTest, P1_ACacheInTheTreeIsRefusedUnlessGitIgnoresIt) {
  ProveOptions options = options_;
  options.base = "HEAD";
  options.here = Repo();
  for (const std::string& name : {Repo() + "/cache", Repo() + "/plan/../a/b", Repo()}) {
    options.cache = name;
    const Result<Proof> proof = prove::Prove(config_, options);
    ASSERT_FALSE(proof) << name;
    EXPECT_THAT(proof.error().message(), HasSubstr("lies in the tree that is proved"));
    EXPECT_FALSE(fs::exists(Repo() + "/cache"));
  }
  options.cache = Repo() + "/ignored";
  ASSERT_TRUE(prove::Prove(config_, options));
  const Result<Proof> again = prove::Prove(config_, options);
  EXPECT_TRUE(again->here.cached && again->base.cached);
}

TEST_F(ProveTest, P1_TheCacheIsPrunedOfWhatWasUsedLongestAgo) {
  const auto site_of = [](const std::string& evidence) { return fs::path(evidence).parent_path(); };
  const fs::path first = site_of(Prove("HEAD").base.evidence);
  EXPECT_TRUE(fs::exists(first / "build"));
  const uint64_t site_bytes = std::stoull(ReadFile((first / "used").string()).value());
  EXPECT_GT(site_bytes, 500U);
  config_.build_commands.emplace_back("true");
  const fs::path second = site_of(Prove("HEAD").base.evidence);
  // The first was used longer ago; of four sites, two go.
  fs::last_write_time(first / "used", fs::file_time_type::clock::now() - std::chrono::hours(2));
  config_.build_commands.emplace_back("true");
  options_.cache_limit_bytes = site_bytes * 11 / 2;
  const Proof third = Prove("HEAD");
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second));
  // What a run uses stays, however little is allowed, until the next one.
  options_.cache_limit_bytes = 0;
  EXPECT_EQ(Prove("HEAD").exit_status, 0);
  EXPECT_FALSE(fs::exists(second));
  EXPECT_TRUE(fs::exists(third.base.evidence));
}

TEST_F(ProveTest, P1_WhatTheKeyCommandPrintsIsPartOfTheKey) {
  const std::string version = (dir_ / "version").string();
  ASSERT_TRUE(WriteFile(version, "1"));
  config_.key_command = "cat " + version;
  Prove("HEAD");
  EXPECT_TRUE(Prove("HEAD").base.cached);
  ASSERT_TRUE(WriteFile(version, "2"));
  EXPECT_FALSE(Prove("HEAD").base.cached);
  config_.key_command = "exit 5";
  Prove("HEAD");
  EXPECT_THAT(error_, HasSubstr("The command \"key\" of [build] in \"assay.toml\" failed with "
                                "status 5: exit 5"));
  // By itself, the compiler of the environment is.
  config_.key_command = std::string(kDefaultKeyCommand);
  Prove("HEAD");
  EXPECT_TRUE(Prove("HEAD").base.cached);
  ASSERT_EQ(::setenv("CXX", "clang++", 1), 0);
  EXPECT_FALSE(Prove("HEAD").base.cached);
  ASSERT_EQ(::unsetenv("CXX"), 0);
}

TEST_F(ProveTest, P1_ATreeWithALinkOutOfItIsBuiltAnewEachTime) {
  const std::string outside = (dir_ / "outside").string();
  ASSERT_TRUE(WriteFile(outside, "source"));
  fs::create_symlink("kernel", Repo() + "/inner");
  Commit("a link that stays inside");
  Prove("HEAD");
  EXPECT_TRUE(Prove("HEAD").here.cached);
  fs::create_symlink(outside, Repo() + "/outer");
  std::vector<std::string> notes;
  options_.on_note = [&](const std::string& said) { notes.push_back(said); };
  Prove("HEAD");
  const Proof changed = Prove("HEAD");
  EXPECT_TRUE(changed.base.cached);
  EXPECT_FALSE(changed.here.cached);
  EXPECT_THAT(notes, testing::Contains(AllOf(HasSubstr("here is built and recorded anew"),
                                             HasSubstr("\"outer\" leads out of the tree"))));
  Commit("a link that leads out");
  Prove("HEAD");
  EXPECT_FALSE(Prove("HEAD").base.cached);
  fs::remove(Repo() + "/outer");
  fs::create_symlink("../outside", Repo() + "/outer");
  EXPECT_FALSE(Prove("HEAD").here.cached);
}

TEST_F(ProveTest, P1_HooksOfTheRepositoryDoNotRun) {
  const std::string hook = Repo() + "/.git/hooks/post-checkout";
  fs::create_directories(fs::path(hook).parent_path());
  ASSERT_TRUE(WriteFile(hook, "#!/bin/sh\ntouch \"" + Repo() + "/hook-ran\"\n"));
  fs::permissions(hook, fs::perms::owner_all);
  EXPECT_EQ(Prove("HEAD").exit_status, 0);
}

TEST_F(ProveTest, P1_WrongNamesAreErrorsWithSentences) {
  Prove("no-such-thing");
  EXPECT_THAT(error_, HasSubstr("\"no-such-thing\" names no commit"));
  config_.record_commands = {"record {model}"};
  Prove("HEAD");
  EXPECT_THAT(error_, HasSubstr("neither \"model\" in"));
  config_.model = "/none";
  Prove("HEAD");
  EXPECT_THAT(error_, HasSubstr("\"/none\" does not exist"));
}

TEST_F(ProveTest, P1_TheJsonReportHoldsTheSame) {
  const Proof proof = Planted(Plan("barrier\n", ""));
  EXPECT_THAT(FormatProofJson(proof),
              AllOf(HasSubstr("\"exit_status\": 3"), HasSubstr("\"barriers-fewer\""),
                    HasSubstr("\"barriers\": [\n        1,\n        0\n      ]")));
}

}  // namespace
}  // namespace assay::prove
