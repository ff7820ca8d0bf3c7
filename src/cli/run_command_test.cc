#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/runner.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("assay_run_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  ~RunCommandTest() override { std::filesystem::remove_all(folder_); }

  // Runs `assay run WORDS` and returns its status; out() and err() are of this run.
  int Run(std::vector<std::string> words) {
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    words.insert(words.begin(), "run");
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = &signal_});
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }
  nlohmann::json RunJson(std::vector<std::string> words) {
    words.push_back("--json");
    EXPECT_EQ(Run(std::move(words)), 0) << err();
    return nlohmann::json::parse(out());
  }

  std::string WriteFile(const std::string& name, const std::string& bytes) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

  std::filesystem::path folder_;
  std::unique_ptr<StringOutput> out_, err_;
  std::atomic<int> signal_{0};
};

TEST_F(RunCommandTest, TellsATaleWithTheBuiltInModel) {
  EXPECT_EQ(Run({"-p", "Once upon a time", "-n", "12"}), 0) << err();
  EXPECT_EQ(out(), "Once upon a time there was a king who had three sons. He was so\n");
  EXPECT_THAT(err(), HasSubstr("generated 12 tokens"));
}

TEST_F(RunCommandTest, QuietPrintsTheTextAlone) {
  EXPECT_EQ(Run({"-p", "Once upon a time", "-n", "2", "-q", "--no-display-prompt"}), 0);
  EXPECT_EQ(out(), " there was\n");
  EXPECT_EQ(err(), "");
}

TEST_F(RunCommandTest, IdsInIdsOut) {
  EXPECT_EQ(Run({"--prompt-ids", "49,1757,606,261,564", "-n", "5", "--ids", "-q"}), 0) << err();
  EXPECT_EQ(out(), "460,311,261,962,440\n");
}

TEST_F(RunCommandTest, ReadsThePromptFromAFile) {
  const std::string path = WriteFile("prompt.txt", "Once upon a time\n");
  EXPECT_EQ(Run({"-f", path, "-n", "3", "--ids", "-q"}), 0) << err();
  EXPECT_EQ(out(), "460,311,261\n");
}

TEST_F(RunCommandTest, JsonHoldsIdsTextAndWhyItEnded) {
  const auto json = RunJson({"-p", "Once upon a time", "-n", "3"});
  EXPECT_EQ(json["prompt_ids"], nlohmann::json({49, 1757, 606, 261, 564}));
  EXPECT_EQ(json["ids"], nlohmann::json({460, 311, 261}));
  EXPECT_EQ(json["text"], " there was a");
  EXPECT_EQ(json["stop"], "length");
  EXPECT_EQ(json["logits_digest"].get<std::string>().size(), 32U);
}

TEST_F(RunCommandTest, G5_ThreadsLoadersAndBarriersDoNotChangeTheLogits) {
  const auto first = RunJson({"-p", "The king said", "-n", "8", "-t", "1", "--loaders", "1"});
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"-t", "3", "--loaders", "4"},
                                             {"--mmap"},
                                             {"--barriers", "automatic"},
                                             {"--barriers", "serial", "-t", "2"}}) {
    std::vector<std::string> words = {"-p", "The king said", "-n", "8"};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto other = RunJson(words);
    EXPECT_EQ(other["logits_digest"], first["logits_digest"]) << flags[0];
    EXPECT_EQ(other["ids"], first["ids"]);
  }
  const auto cache = RunJson({"-p", "The king said", "-n", "8", "--kv", "f32"});
  EXPECT_NE(cache["logits_digest"], first["logits_digest"]);
}

TEST_F(RunCommandTest, G4_SamplingIsReproducibleFromTheSeed) {
  const auto sample = [&](const std::string& seed) {
    return RunJson({"-p", "The king said", "-n", "16", "--temp", "1", "--seed", seed})["ids"];
  };
  EXPECT_EQ(sample("5"), sample("5"));
  EXPECT_NE(sample("5"), sample("6"));
}

TEST_F(RunCommandTest, StopsAtTheEndOfTheTextUnlessToldNotTo) {
  // "<|im_end|>" follows an answer; the built-in model was trained to end there.
  const std::string prompt = "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n";
  const auto json = RunJson({"-p", prompt, "-n", "-1"});
  EXPECT_THAT(json["stop"].get<std::string>(), ::testing::AnyOf("end-of-text", "context"));
  const auto longer = RunJson({"-p", prompt, "-n", "96", "--ignore-eos"});
  EXPECT_EQ(longer["stop"], "length");
  EXPECT_EQ(longer["ids"].size(), 96U);
}

TEST_F(RunCommandTest, AFullContextIsAnErrorOnlyWhereMoreWasAskedFor) {
  EXPECT_EQ(Run({"--prompt-ids", "1,2,3,4", "-c", "8", "-n", "20", "--ignore-eos", "--ids"}), 2);
  EXPECT_THAT(err(), HasSubstr("The context of 8 positions is full after 5 of 20 tokens"));
  EXPECT_EQ(Run({"--prompt-ids", "1,2,3,4", "-c", "8", "-n", "-1", "--ignore-eos", "--ids"}), 0);
  EXPECT_EQ(Run({"--prompt-ids", "1,2,3,4", "-c", "8", "-n", "5", "--ignore-eos", "--ids"}), 0);
}

TEST_F(RunCommandTest, APromptLongerThanTheContextIsRefusedWithBothNumbers) {
  EXPECT_EQ(Run({"--prompt-ids", "1,2,3,4", "-c", "3"}), 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("4 tokens"), HasSubstr("holds 3"), HasSubstr("-c")));
  EXPECT_EQ(Run({"-p", "a", "-c", "1025"}), 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("1025"), HasSubstr("1024")));
}

TEST_F(RunCommandTest, RefusesBadUsage) {
  EXPECT_EQ(Run({}), 64);
  EXPECT_THAT(err(), HasSubstr("no prompt"));
  EXPECT_EQ(Run({"-p", "a", "--prompt-ids", "1"}), 64);
  EXPECT_THAT(err(), HasSubstr("exclude each other"));
  EXPECT_EQ(Run({"-p", "a", "--ids", "--json"}), 64);
  EXPECT_EQ(Run({"-p", "a", "--kv", "q8"}), 64);
  EXPECT_THAT(err(), AllOf(HasSubstr("--kv"), HasSubstr("f16")));
  EXPECT_EQ(Run({"-p", "a", "--threds", "1"}), 64);
  EXPECT_THAT(err(), HasSubstr("--threads"));
  EXPECT_EQ(Run({"-p", "a", "-n", "-2"}), 64);
}

TEST_F(RunCommandTest, RefusesBadPromptsOnOneLine) {
  EXPECT_EQ(Run({"-p", ""}), 2);
  EXPECT_THAT(err(), HasSubstr("holds no text"));
  EXPECT_EQ(Run({"--prompt-ids", "4096"}), 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("4096"), HasSubstr("vocabulary")));
  EXPECT_EQ(Run({"-f", (folder_ / "none").string()}), 2);
  EXPECT_THAT(err(), HasSubstr("none"));
}

// Every refusal is one line that starts with the program's name.
void ExpectOneErrorLine(const std::string& err) {
  EXPECT_THAT(err, StartsWith("assay run: error: "));
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1);
}

TEST_F(RunCommandTest, RefusesBadModels) {
  const std::string good = testing::MakeTinyModel({}).Build();
  std::string other = good;
  for (size_t at = other.find("qwen3"); at != std::string::npos; at = other.find("qwen3")) {
    other.replace(at, 5, "llama");
  }
  const std::vector<std::pair<std::string, std::string>> files = {
      {"empty.gguf", ""},
      {"text.gguf", "This is no model.\n"},
      {"header.gguf", good.substr(0, 100)},
      {"half.gguf", good.substr(0, good.size() / 2)},
      {"short.gguf", good.substr(0, good.size() - 1)},
      {"llama.gguf", other},
  };
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    const std::string path = WriteFile(name, bytes);
    EXPECT_EQ(Run({"-m", path, "-p", "a"}), 2);
    ExpectOneErrorLine(err());
    EXPECT_THAT(err(), HasSubstr(name));
    EXPECT_EQ(out(), "");
  }
  EXPECT_EQ(Run({"-m", (folder_ / "none.gguf").string(), "-p", "a"}), 2);
  ExpectOneErrorLine(err());
  EXPECT_THAT(err(), HasSubstr("none.gguf"));
  EXPECT_EQ(Run({"-m", folder_.string(), "-p", "a"}), 2);
  ExpectOneErrorLine(err());
  // A script's unset variable must not turn into the built-in model.
  EXPECT_EQ(Run({"-m", "", "-p", "a"}), 2);
  ExpectOneErrorLine(err());
}

TEST_F(RunCommandTest, E12_AModelThatComputesNaNIsAnErrorAndNoText) {
  testing::TinyModelOptions options;
  options.nan_tensor = "blk.0.ffn_norm.weight";
  const std::string path = WriteFile("nan.gguf", testing::MakeTinyModel(options).Build());
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {}, {"--temp", "1"}, {"--json"}, {"--ids"}, {"--checked"}}) {
    std::vector<std::string> words = {"-m", path, "-p", "a", "--no-display-prompt"};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(words), 2);
    ExpectOneErrorLine(err());
    EXPECT_THAT(err(), AllOf(HasSubstr("is NaN"), HasSubstr("layer 0"), HasSubstr("f32")));
    EXPECT_EQ(out(), "");
  }
}

TEST_F(RunCommandTest, RefusesTheBackendThatComputesNothing) {
  EXPECT_EQ(Run({"-p", "a", "--backend", "null"}), 64);
  EXPECT_THAT(err(), AllOf(HasSubstr("null computes nothing"), HasSubstr("--backend cpu")));
}

TEST_F(RunCommandTest, E6_CheckedDecodesTheSameBits) {
  const std::vector<std::string> words = {"-p", "The king said", "-n", "6"};
  std::vector<std::string> checked = words;
  checked.emplace_back("--checked");
  const auto json = RunJson(checked);
  EXPECT_EQ(json["ids"].size(), 6U);
  EXPECT_EQ(json["ids"], RunJson(words)["ids"]);
  EXPECT_EQ(json["logits_digest"], RunJson(words)["logits_digest"]);
}

TEST_F(RunCommandTest, StopsOnASignalWithTheTextSoFar) {
  signal_ = 2;
  EXPECT_EQ(Run({"-p", "Once upon a time", "-n", "50"}), 130);
  EXPECT_EQ(out(), "Once upon a time\n");
}

}  // namespace
}  // namespace assay::cli
