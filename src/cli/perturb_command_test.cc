#include <filesystem>
#include <fstream>
#include <memory>
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

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class PerturbCommandTest : public ::testing::Test {
 protected:
  PerturbCommandTest() {
    model_ = (folder_ / "model.gguf").string();
    testing::TinyModelOptions options;
    options.weights = testing::kQ8_0;
    std::ofstream(model_, std::ios::binary) << testing::MakeTinyModel(options).Build();
  }

  int Run(std::vector<std::string> words, const std::string& command = "perturb") {
    words.insert(words.begin(), {command, "-m", model_});
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = &signal_});
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
  std::string model_;
  std::unique_ptr<StringOutput> out_, err_;
  std::atomic<int> signal_{0};
};

TEST_F(PerturbCommandTest, E8_G5_TheEngineGivesTheSameBitsUnderEverySchedule) {
  for (const std::string barriers : {"manual", "automatic"}) {
    ASSERT_EQ(Run({"--depth", "0,20", "--steps", "2", "--barriers", barriers}), 0) << out();
    EXPECT_THAT(out(), EndsWith("\nperturb: rc 0; schedules 12 same 12 different 0; depths 2 steps "
                                "2; runs 14\n"));
    EXPECT_THAT(out(), AllOf(HasSubstr("reversed"), HasSubstr("late-writes"), HasSubstr("random:3"),
                             HasSubstr("interleaved:1")));
    // There is something to permute.
    EXPECT_THAT(out(), ContainsRegex("reversed +[1-9][0-9]* groups rearranged, same bits"));
    EXPECT_EQ(err(), "");
  }
}

TEST_F(PerturbCommandTest, E8_AMissingBarrierIsBisectedToItsPair) {
  // The barrier between the projections and the rotation of queries and keys.
  const auto json =
      RunJson({"--depth", "5", "--steps", "2", "--drop-barrier", "3", "--schedule", "reversed"}, 1);
  const auto& outcome = json["depths"][0]["schedules"][0];
  EXPECT_EQ(outcome["same"], false);
  EXPECT_EQ(outcome["step"], 1);
  EXPECT_GT(outcome["logits"], 0);
  const auto& pair = outcome["pair"];
  EXPECT_EQ(pair["command_buffer"], 1) << "the prompt's pass comes first";
  EXPECT_EQ(pair["pass"], "pass 1 of the prompt");
  EXPECT_EQ(pair["alone"], true);
  EXPECT_THAT(pair["first"]["kernel"].get<std::string>(), HasSubstr("matmul"));
  EXPECT_THAT(pair["second"]["kernel"].get<std::string>(), HasSubstr("head_norm_rope"));
  ASSERT_EQ(pair["shared"].size(), 1U);
  EXPECT_EQ(pair["shared"][0]["first"], "w");
  EXPECT_THAT(pair["shared"][0]["second"], ::testing::AnyOf("r", "rw"));
  EXPECT_EQ(pair["shared"][0]["certain"], true);
  EXPECT_THAT(pair["shared"][0]["buffer"], ::testing::AnyOf("q", "k", "v"));
  // The same answer each time.
  EXPECT_EQ(
      RunJson({"--depth", "5", "--steps", "2", "--drop-barrier", "3", "--schedule", "reversed"}, 1),
      json);
}

TEST_F(PerturbCommandTest, E8_EveryFixedScheduleIsTriedAndTheTextNamesThePair) {
  ASSERT_EQ(Run({"--depth", "0", "--steps", "1", "--drop-barrier", "2"}), 1) << err();
  EXPECT_THAT(out(), ContainsRegex("reversed +[0-9]+ groups rearranged, DIFFERENT at step 1: "));
  EXPECT_THAT(out(),
              ContainsRegex("dispatches 2 \\(rms_norm[.a-z0-9_]*\\) and [345] "
                            "\\(matmul.q8_0\\) of command buffer 1 \\(step 1\\): changing their "
                            "order changes the bits, alone"));
  EXPECT_THAT(out(), ContainsRegex("dispatch [345] reads bytes \\[0, [0-9]+\\) of buffer "
                                   "\"[a-z0-9_.]+\", which dispatch 2 writes; no barrier stands "
                                   "between them"));
  EXPECT_THAT(out(), ContainsRegex("\nperturb: rc 1; schedules 6 same [0-4] different [2-6]; "
                                   "depths 1 steps 1; runs [0-9]+\n$"));
}

TEST_F(PerturbCommandTest, RefusesWhatProvesNothing) {
  EXPECT_EQ(Run({"--backend", "null", "--depth", "0", "--steps", "1"}), 2);
  EXPECT_THAT(out(), EndsWith("perturb: rc 2; schedules 0 same 0 different 0; depths 0 steps 1; "
                              "runs 1\n"));
  EXPECT_EQ(Run({"--depth", "0", "--steps", "1", "--drop-barrier", "1000"}), 2);
  EXPECT_THAT(err(),
              ContainsRegex("Barrier 1000 cannot be left out: a decode step of this model has "
                            "[0-9]+; give a number up to that\\."));
  EXPECT_EQ(Run({"--checked", "--schedule", "interleaved"}), 2);
  EXPECT_THAT(err(),
              HasSubstr("cannot run workgroups interleaved (a cpu device can where it is not "
                        "checked); choose another schedule"));
  for (const char* const command : {"perturb", "mutate"}) {
    EXPECT_EQ(Run({"--depth", "0,128", "--steps", "1"}, command), 2);
    EXPECT_THAT(err(),
                HasSubstr("Depth 128 (--depth) and 1 step (--steps) need a context of 129; the "
                          "model's holds 128. Give a smaller --depth or a smaller --steps; 128 is "
                          "all that the model goes up to.\n"));
    EXPECT_EQ(Run({"--depth", "8", "--steps", "3", "-c", "10"}, command), 2);
    EXPECT_THAT(err(), HasSubstr("need a context of 11; that of -c holds 10."));
  }
}

TEST_F(PerturbCommandTest, RefusesBadUsage) {
  EXPECT_EQ(Run({"--schedule", "sorted"}), 64);
  EXPECT_THAT(err(), HasSubstr("\"sorted\" is no schedule"));
  EXPECT_EQ(Run({"--schedule", "recorded"}), 64);
  EXPECT_THAT(err(), HasSubstr("compared with"));
  EXPECT_EQ(Run({"--steps", "0"}), 64);
}

TEST_F(PerturbCommandTest, AStopIsAnswered) {
  signal_ = 2;
  EXPECT_EQ(Run({"--depth", "0"}), 130);
  EXPECT_THAT(out(), Not(HasSubstr("perturb: rc")));
}

}  // namespace
}  // namespace assay::cli
