#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/runner.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Golden(const std::string& name) {
  return std::string(ASSAY_SOURCE_DIR) + "/tests/golden/hazard/" + name;
}

class MutateCommandTest : public ::testing::Test {
 protected:
  std::string Model(bool experts) {
    testing::TinyModelOptions options;
    options.weights = testing::kQ8_0;
    if (experts) {
      options.experts = 4;
      options.experts_used = 2;
    }
    const std::string path = (folder_ / "model.gguf").string();
    std::ofstream(path, std::ios::binary) << testing::MakeTinyModel(options).Build();
    return path;
  }
  int Run(std::vector<std::string> words) {
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(words, Commands(), {.out = out_.get(), .err = err_.get()});
  }
  nlohmann::json RunJson(std::vector<std::string> words, int status) {
    words.push_back("--json");
    EXPECT_EQ(Run(words), status) << err();
    return nlohmann::json::parse(out());
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
  std::unique_ptr<StringOutput> out_, err_;
};

// --- A trace

TEST_F(MutateCommandTest, E9_SaysOfEachBarrierOfATraceWhatBecomesOfIt) {
  EXPECT_EQ(Run({"mutate", Golden("redundant.trace")}), 1);
  EXPECT_THAT(out(), HasSubstr("redundant.trace: version 2, 1 command buffer, 3 dispatches, 3 "
                               "barriers\nKILLED    barrier 1 of command buffer 1 (line 13): "
                               "Dispatch 2 of command buffer 1 ("));
  EXPECT_THAT(out(), HasSubstr("\nSURVIVED  barrier 2 of command buffer 1 (line 15): it orders "
                               "nothing that the others do not\n"));
  EXPECT_THAT(out(), EndsWith("\nmutate: rc 1; barriers 3 killed 1 survived 2; checker 1 (possible "
                              "0) schedules 0; only checker 0 only schedules 0; score 33.3 %\n"));
  EXPECT_EQ(Run({"mutate", "--survivors", Golden("redundant.trace")}), 1);
  EXPECT_THAT(out(), Not(HasSubstr("KILLED")));
  EXPECT_THAT(out(), HasSubstr("SURVIVED  barrier 3"));
}

// For every trace of the golden set.
TEST_F(MutateCommandTest, E9_SurvivorsAreTheRedundantBarriersThatCheckReports) {
  size_t survivors_seen = 0;
  size_t killed_seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Golden(""))) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".trace" || entry.path().stem() == "refused") continue;
    const int checked = Run({"check", path, "--json"});
    std::set<uint64_t> redundant;
    const auto check = nlohmann::json::parse(out());
    for (const auto& barrier : check["redundant_barriers"]) {
      redundant.insert(barrier["line"].get<uint64_t>());
    }
    const auto mutants = RunJson({"mutate", path}, redundant.empty() ? checked : 1);
    std::set<uint64_t> survivors;
    for (const auto& barrier : mutants["barriers"]) {
      if (!barrier["killed"]) survivors.insert(barrier["line"].get<uint64_t>());
      killed_seen += barrier["killed"] ? 1 : 0;
    }
    EXPECT_EQ(survivors, redundant) << path;
    survivors_seen += survivors.size();
  }
  EXPECT_GT(survivors_seen, 1U);
  EXPECT_GT(killed_seen, 5U);
}

TEST_F(MutateCommandTest, E9_HazardsOfTheWholeTraceAreTold) {
  EXPECT_EQ(Run({"mutate", Golden("raw.trace")}), 1);
  EXPECT_THAT(out(), HasSubstr(" with all its barriers already; `assay check` lists "));
  EXPECT_GT(RunJson({"mutate", Golden("raw.trace")}, 1)["hazards"], 0);
  EXPECT_EQ(RunJson({"mutate", Golden("redundant.trace")}, 1)["hazards"], 0);
}

TEST_F(MutateCommandTest, E9_NoBarrierHasNoScore) {
  const std::string path = (folder_ / "empty.trace").string();
  std::ofstream(path) << "assay-trace 2\nend events=1 digest=0\n";
  ASSERT_EQ(Run({"seal", path}), 0) << err();
  EXPECT_EQ(Run({"mutate", path}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("there is no barrier to leave out\n"));
  EXPECT_THAT(out(), EndsWith("score none\n"));
  EXPECT_EQ(Run({"mutate", (folder_ / "absent").string()}), 2);
  EXPECT_THAT(out(), EndsWith("score none\n"));
}

TEST_F(MutateCommandTest, FlagsOfADecodeDoNotGoWithATrace) {
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"-m", "x.gguf"}, {"--steps", "3"}, {"--depth", "5"}, {"-t", "1"}, {"--mmap"}}) {
    std::vector<std::string> words = {"mutate", Golden("redundant.trace")};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_EQ(Run(words), 64) << flag[0];
    EXPECT_THAT(err(), HasSubstr("is for a decode; leave out one of the two.")) << flag[0];
  }
}

TEST_F(MutateCommandTest, ARefusedOrUnreadableTraceIsRefused) {
  EXPECT_EQ(Run({"mutate", Golden("refused.trace")}), 2);
  EXPECT_THAT(err(), HasSubstr("it proves nothing"));
  EXPECT_THAT(out(), EndsWith("mutate: rc 2; barriers 0 killed 0 survived 0; checker 0 (possible "
                              "0) schedules 0; only checker 0 only schedules 0; score none\n"));
  EXPECT_EQ(Run({"mutate", "/no/such.trace"}), 2);
}

// --- A decode

TEST_F(MutateCommandTest, E9_NoBarrierOfTheEngineSurvives) {
  for (const bool experts : {false, true}) {
    const std::string model = Model(experts);
    const auto json = RunJson({"mutate", "-m", model, "--depth", "0,3", "--steps", "2"}, 0);
    const auto& barriers = json["barriers"];
    ASSERT_GT(barriers.size(), 20U);
    size_t by_schedules = 0;
    for (const auto& barrier : barriers) {
      EXPECT_EQ(barrier["killed"], true) << barrier;
      EXPECT_NE(barrier["checker"], "no") << barrier;
      by_schedules += barrier["schedules"].empty() ? 0 : 1;
    }
    // Whatever only the checker kills is counted as such.
    EXPECT_THAT(json["summary"].get<std::string>(),
                HasSubstr("only checker " + std::to_string(barriers.size() - by_schedules) + " "));
    EXPECT_GT(by_schedules, barriers.size() * 9 / 10) << json["summary"];
    EXPECT_THAT(json["summary"].get<std::string>(), EndsWith("score 100.0 %"));
  }
}

// In serial mode most barriers are redundant, and the decode says so as the trace does.
TEST_F(MutateCommandTest, E9_SurvivorsOfADecodeAreTheRedundantBarriersOfItsTrace) {
  const std::string model = Model(false);
  const std::string folder = (folder_ / "trace").string();
  ASSERT_EQ(Run({"trace", "-m", model, "-o", folder, "--depth", "0", "--steps", "1", "--barriers",
                 "serial"}),
            0)
      << err();
  Run({"check", folder + "/depth-0.trace", "--json"});
  std::set<uint64_t> redundant;
  const auto check = nlohmann::json::parse(out());
  for (const auto& barrier : check["redundant_barriers"]) {
    redundant.insert(barrier["barrier"].get<uint64_t>());
  }
  ASSERT_FALSE(redundant.empty());
  const auto json =
      RunJson({"mutate", "-m", model, "--depth", "0", "--steps", "1", "--barriers", "serial"}, 1);
  std::set<uint64_t> survivors;
  for (const auto& barrier : json["barriers"]) {
    if (!barrier["killed"]) survivors.insert(barrier["barrier"].get<uint64_t>());
  }
  EXPECT_EQ(survivors, redundant);
}

TEST_F(MutateCommandTest, E9_TheTextNamesTheSchedulesAndThePair) {
  ASSERT_EQ(Run({"mutate", "-m", Model(false), "--steps", "1"}), 0) << err();
  EXPECT_THAT(out(), ContainsRegex("KILLED    barrier 1 at depth 0 by the checker, reversed, "
                                   "late-writes, .*: Dispatch [0-9]+ of command buffer 1 "));
}

}  // namespace
}  // namespace assay::cli
