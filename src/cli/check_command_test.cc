#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/runner.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Golden(const std::string& name) {
  return std::string(ASSAY_SOURCE_DIR) + "/tests/golden/hazard/" + name;
}

class CheckCommandTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), "check");
    return RunAny(words);
  }
  int RunAny(const std::vector<std::string>& words) {
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = &signal_});
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }

  std::atomic<int> signal_{0};
  std::unique_ptr<StringOutput> out_, err_;
};

TEST_F(CheckCommandTest, H1_StatusSaysWhetherThereAreHazards) {
  EXPECT_EQ(Run({Golden("raw_near.trace")}), 0);
  EXPECT_THAT(out(), EndsWith("\ncheck: rc 0; hazards 0 (raw 0, war 0, waw 0, host 0, lifetime 0, "
                              "bounds 0, self 0); possible 0; barriers issued 0 redundant 0 least "
                              "0\n"));
  EXPECT_EQ(Run({Golden("raw.trace")}), 1);
  EXPECT_THAT(out(), EndsWith("\ncheck: rc 1; hazards 1 (raw 1, war 0, waw 0, host 0, lifetime 0, "
                              "bounds 0, self 0); possible 0; barriers issued 0 redundant 0 least "
                              "1\n"));
  EXPECT_THAT(out(), HasSubstr("not seen by any check of a trace: races inside one kernel"));
  EXPECT_EQ(err(), "");
}

TEST_F(CheckCommandTest, EveryCommandThatReadsATraceStopsOnASignal) {
  const TempFolder temp;
  const std::string path = (temp.path() / "a.trace").string();
  const std::string trace = ReadFile(Golden("raw.trace")).value();
  ASSERT_TRUE(WriteFile(path, trace));
  signal_ = SIGTERM;
  for (const char* command : {"check", "mutate", "counts", "seal"}) {
    EXPECT_EQ(RunAny({command, path}), 143) << command;
    EXPECT_EQ(out(), "") << command;
    EXPECT_THAT(err(), HasSubstr(": error: Stopped before the ")) << command;
  }
  EXPECT_EQ(ReadFile(path).value(), trace);
}

TEST_F(CheckCommandTest, C1_EqualTracesWithoutADispatchAreNotedAsEmpty) {
  const TempFolder temp;
  const auto write = [&](const char* name, const std::string& text) {
    const std::string path = (temp.path() / name).string();
    EXPECT_TRUE(WriteFile(path, text));
    return path;
  };
  const std::string a = write("a", "assay-trace 2\n");
  const std::string b = write("b", "assay-trace 2\n");
  ASSERT_EQ(RunAny({"seal", a}), 0) << err();
  ASSERT_EQ(RunAny({"seal", b}), 0) << err();
  EXPECT_EQ(RunAny({"compare", a, b}), 0);
  EXPECT_THAT(err(), HasSubstr("note: Neither trace holds a dispatch"));
  const std::string full = ReadFile(Golden("raw.trace")).value();
  EXPECT_EQ(RunAny({"compare", write("c", full), write("d", full)}), 0);
  EXPECT_THAT(err(), Not(HasSubstr("dispatch")));
}

TEST_F(CheckCommandTest, RefusedAndUnreadableTracesAre2) {
  EXPECT_EQ(Run({Golden("refused.trace")}), 2);
  EXPECT_THAT(err(), HasSubstr("buffers without a place (1 off-thread)"));
  EXPECT_THAT(out(), ::testing::StartsWith("check: rc 2; hazards 0 "));
  EXPECT_EQ(Run({Golden("missing.trace")}), 2);
  EXPECT_THAT(err(), HasSubstr("missing.trace"));
  EXPECT_THAT(out(), ::testing::StartsWith("check: rc 2; hazards 0 "));
  EXPECT_EQ(Run({Golden("missing.trace"), "--json"}), 2);
  EXPECT_EQ(nlohmann::json::parse(out())["status"], 2);
  EXPECT_EQ(Run({Golden("missing.trace"), "--sarif"}), 2);
  EXPECT_EQ(nlohmann::json::parse(out())["runs"][0]["invocations"][0]["executionSuccessful"],
            false);
}

TEST_F(CheckCommandTest, AFileThatIsNoTraceHasNoVersion) {
  const TempFolder temp;
  const std::string path = (temp.path() / "empty.trace").string();
  ASSERT_TRUE(WriteFile(path, "").has_value());
  EXPECT_EQ(Run({path}), 2);
  EXPECT_THAT(out(), Not(HasSubstr("version")));
}

TEST_F(CheckCommandTest, QuietSaysItAllByTheStatus) {
  EXPECT_EQ(Run({Golden("raw.trace"), "-q"}), 1);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(Run({Golden("raw.trace"), "-q", "--json"}), 1);
  EXPECT_EQ(nlohmann::json::parse(out())["status"], 1);
}

TEST_F(CheckCommandTest, StrictCountsPossibleFindings) {
  EXPECT_EQ(Run({Golden("possible.trace")}), 0);
  EXPECT_EQ(Run({Golden("possible.trace"), "--strict"}), 1);
}

TEST_F(CheckCommandTest, SuppressionFileNamesFingerprints) {
  EXPECT_EQ(Run({Golden("raw.trace"), "--json"}), 1);
  const std::string fingerprint = nlohmann::json::parse(out())["findings"][0]["fingerprint"];
  const TempFolder temp;
  const std::string path = (temp.path() / "suppressions").string();
  ASSERT_TRUE(WriteFile(path, fingerprint + "  # known\n").has_value());
  EXPECT_EQ(Run({Golden("raw.trace"), "--suppress", path}), 0);
  EXPECT_THAT(out(), HasSubstr("suppressed raw " + fingerprint));
  EXPECT_EQ(Run({Golden("war.trace"), "--suppress", path}), 1);
  EXPECT_THAT(out(), HasSubstr("the suppression " + fingerprint + " matched nothing"));
  ASSERT_TRUE(WriteFile(path, "raw\n").has_value());
  EXPECT_EQ(Run({Golden("raw.trace"), "--suppress", path}), 2);
  EXPECT_THAT(err(), HasSubstr("line 1: expected a fingerprint"));
  std::filesystem::remove(path);
  EXPECT_EQ(Run({Golden("raw.trace"), "--suppress", path}), 2);
}

TEST_F(CheckCommandTest, MaxFindingsLimitsTheList) {
  EXPECT_EQ(Run({Golden("waw.trace"), "--max-findings", "1"}), 1);
  EXPECT_THAT(out(), HasSubstr("... and 2 more findings, counted but not listed"));
  EXPECT_THAT(out(), HasSubstr("check: rc 1; hazards 3 "));
}

// The engine's own decode: no hazards, and no barrier more than the recorded order needs. One after
// every dispatch needs no more than that either.
TEST_F(CheckCommandTest, H2_TheDecodeIssuesTheFewestBarriers) {
  const TempFolder temp;
  const std::filesystem::path& folder = temp.path();
  const std::string model = (folder / "model.gguf").string();
  testing::TinyModelOptions tiny;
  tiny.experts = 4;
  tiny.experts_used = 2;
  ASSERT_TRUE(WriteFile(model, testing::MakeTinyModel(tiny).Build()).has_value());

  uint64_t fewest = 0;
  for (const std::string mode : {"manual", "automatic", "serial"}) {
    const std::string output = (folder / mode).string();
    ASSERT_EQ(
        RunAny({"trace", "-m", model, "-o", output, "--depth", "9", "-n", "2", "--barriers", mode}),
        0)
        << err();
    ASSERT_EQ(RunAny({"check", output + "/depth-9.trace", "--strict", "--json"}), 0) << out();
    const nlohmann::json report = nlohmann::json::parse(out());
    const nlohmann::json& barriers = report["barriers"];
    if (mode == "manual") fewest = barriers["least"];
    EXPECT_GT(fewest, 0U);
    EXPECT_EQ(barriers["least"], fewest) << mode;
    if (mode == "serial") {
      EXPECT_EQ(barriers["issued"], report["dispatches"]);
      EXPECT_GT(barriers["redundant"], 0U);
    } else {
      EXPECT_EQ(barriers["issued"], fewest) << mode;
      EXPECT_EQ(barriers["redundant"], 0U) << mode;
    }
  }
}

TEST_F(CheckCommandTest, JsonAndSarifAreWhole) {
  EXPECT_EQ(Run({Golden("suggestion.trace"), "--json"}), 1);
  EXPECT_EQ(nlohmann::json::parse(out())["hazards"]["total"], 5);
  EXPECT_EQ(Run({Golden("suggestion.trace"), "--sarif"}), 1);
  const nlohmann::json sarif = nlohmann::json::parse(out());
  EXPECT_EQ(sarif["version"], "2.1.0");
  const nlohmann::json& run = sarif["runs"][0];
  EXPECT_EQ(run["results"].size(), 5U);
  for (const nlohmann::json& result : run["results"]) {
    const size_t rule = result["ruleIndex"];
    EXPECT_EQ(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
  }
}

TEST_F(CheckCommandTest, C1_UsageErrorsAre64) {
  EXPECT_EQ(Run({}), 64);
  EXPECT_EQ(Run({Golden("raw.trace"), "--json", "--sarif"}), 64);
  EXPECT_THAT(err(), HasSubstr("--json and --sarif exclude each other."));
  EXPECT_EQ(Run({Golden("raw.trace"), Golden("war.trace")}), 64);
  EXPECT_EQ(Run({Golden("raw.trace"), "--max-findings", "-1"}), 64);
  EXPECT_EQ(Run({Golden("raw.trace"), "--strickt"}), 64);
  EXPECT_THAT(err(), HasSubstr("did you mean --strict?"));
}

TEST_F(CheckCommandTest, HelpNamesEveryFlag) {
  EXPECT_EQ(Run({"--help"}), 0);
  for (const char* flag : {"--strict", "--suppress", "--max-findings", "--json", "--sarif"}) {
    EXPECT_THAT(out(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace assay::cli
