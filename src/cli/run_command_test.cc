#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "cli/runner.h"
#include "support/address_space.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunCommandTest : public ::testing::Test {
 protected:
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

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
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

TEST_F(RunCommandTest, E9_ABarrierThatIsNotThereCannotBeLeftOut) {
  EXPECT_EQ(Run({"-p", "a", "-n", "1", "--drop-barrier", "100000"}), 2);
  EXPECT_EQ(out(), "");
  EXPECT_THAT(err(), HasSubstr("Barrier 100000 cannot be left out: a decode step of this model "
                               "has "));
  EXPECT_EQ(Run({"-p", "a", "-n", "1", "-q", "--drop-barrier", "3"}), 0) << err();
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

TEST_F(RunCommandTest, ASpeedThatWasNotMeasuredIsNullAndNotInTheNote) {
  const auto one = RunJson({"-p", "Once", "-n", "1"});
  EXPECT_GT(one["prompt_tokens_per_s"], 0.0);
  EXPECT_GT(one["decode_s"], 0.0);
  EXPECT_TRUE(one["decode_tokens_per_s"].is_null()) << out();
  EXPECT_THAT(err(), HasSubstr("generated 1 token\n"));
  EXPECT_GT(RunJson({"-p", "Once", "-n", "2"})["decode_tokens_per_s"], 0.0);
  EXPECT_THAT(err(), ::testing::ContainsRegex("generated 2 tokens, [0-9.]+ tok/s\n"));
  // Of no step there are no logits to digest.
  const auto none = RunJson({"-p", "Once", "-n", "0"});
  EXPECT_TRUE(none["logits_digest"].is_null());
  EXPECT_TRUE(none["decode_s"].is_null());
}

TEST_F(RunCommandTest, AStoppedTextSaysWhatWasMeasuredUntilThen) {
  Generation generation;
  generation.prompt = {1, 2};
  generation.stop = Stop::kCancelled;
  const Status stopped = Fail(ErrorCode::kCancelled, "", "Stopped.");
  const auto report = [&] { return nlohmann::json::parse(FormatRunJson(generation, "", stopped)); };
  const auto in_prompt = report();
  for (const char* const figure :
       {"prompt_s", "decode_s", "prompt_tokens_per_s", "decode_tokens_per_s", "logits_digest"}) {
    EXPECT_TRUE(in_prompt[figure].is_null()) << figure;
  }
  generation.timings.prompt_s = 0.5;
  generation.timings.decode_s = 2;
  generation.decode_passes = 3;
  EXPECT_EQ(report()["prompt_tokens_per_s"], 4.0);
  EXPECT_EQ(report()["decode_tokens_per_s"], 1.5);
  EXPECT_EQ(report()["error"], "Stopped.");
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
  EXPECT_THAT(err(), HasSubstr("A context of 1025 (-c) is more than the model goes up to (1024); "
                               "give a smaller -c, or leave it out."));
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
  EXPECT_EQ(Run({"-m", "", "-p", "a"}), 64);
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
    if (flags == std::vector<std::string>{"--json"}) {
      EXPECT_THAT(out(), AllOf(HasSubstr("\"error\": \"Each of the"), Not(HasSubstr("\"text\""))));
    } else {
      EXPECT_EQ(out(), "");
    }
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

// Takes text until a given amount of it is there; then the user presses Ctrl-C, or the disk is
// full.
class EventfulOutput final : public Output {
 public:
  EventfulOutput(size_t limit, int failure, std::atomic<int>* signal)
      : limit_(limit), failure_(failure), signal_(signal) {}
  const std::string& text() const { return text_; }

 protected:
  int WriteAll(std::string_view text) override {
    if (text_.size() < limit_) {
      text_ += text;
      return 0;
    }
    if (failure_ == 0) text_ += text;
    *signal_ = failure_ == 0 ? SIGINT : 0;
    return failure_;
  }

 private:
  size_t limit_;
  int failure_;
  std::atomic<int>* signal_;
  std::string text_;
};

TEST_F(RunCommandTest, StopsOnASignalWithTheTextSoFar) {
  EventfulOutput out(1, 0, &signal_);
  StringOutput err;
  const std::vector<std::string> words = {"run", "-p", "Once upon a time", "-n", "50"};
  EXPECT_EQ(RunProgram(words, Commands(), {.out = &out, .err = &err, .stop_signal = &signal_}),
            130);
  EXPECT_EQ(out.text(), "Once upon a time there\n");
  EXPECT_EQ(err.text(), "assay run: error: Stopped before the text was complete.\n");
}

TEST_F(RunCommandTest, AStoppedTextIsOneJsonObjectWithTheReason) {
  const std::vector<std::string> words = {"-p",    "Once upon a time", "-n", "500", "-c", "16",
                                          "--json"};
  EXPECT_EQ(Run(words), 2);
  const auto json = nlohmann::json::parse(out());
  EXPECT_EQ(json["stop"], "context");
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("The context of 16 positions is full"));
  EXPECT_THAT(err(), HasSubstr("The context of 16 positions is full"));
}

TEST_F(RunCommandTest, StopsWhileItLoads) {
  signal_ = SIGINT;
  EXPECT_EQ(Run({"-p", "Once upon a time", "-n", "50"}), 130);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), "assay run: error: Stopped while the weights were loaded.\n");
}

TEST_F(RunCommandTest, AFullDiskIsOneError) {
  EventfulOutput out(1, ENOSPC, &signal_);
  StringOutput err;
  const std::vector<std::string> words = {"run", "-p", "Once upon a time", "-n", "50", "-q"};
  EXPECT_EQ(RunProgram(words, Commands(), {.out = &out, .err = &err, .stop_signal = &signal_}), 2);
  EXPECT_EQ(err.text(),
            "assay run: error: Cannot write to standard output: No space left on device. The text "
            "printed is not whole.\n");
}

TEST_F(RunCommandTest, TooLongAPromptFileIsRefusedUnread) {
  const std::string path = WriteFile("prompt.txt", "");
  std::filesystem::resize_file(path, (size_t{16} << 20) + 1);
  EXPECT_EQ(Run({"-f", path, "-n", "3"}), 2);
  EXPECT_THAT(err(), HasSubstr("has 16777217 bytes; at most 16777216 are read"));
}

TEST_F(RunCommandTest, SaysWhichContextIsTheLimit) {
  const std::string model = WriteFile("model.gguf", testing::MakeTinyModel({}).Build());
  std::string prompt = "1";
  for (int i = 0; i < 128; ++i) prompt += ",1";
  EXPECT_EQ(Run({"-m", model, "--prompt-ids", prompt}), 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("128 is all that the model goes up to"),
                           ::testing::Not(HasSubstr("larger -c"))));
  EXPECT_EQ(out(), "");
  EXPECT_EQ(Run({"-m", model, "--prompt-ids", prompt, "-c", "64"}), 2);
  EXPECT_THAT(err(), HasSubstr("a larger -c does not do it: the model goes up to 128"));
  EXPECT_EQ(Run({"-m", model, "--prompt-ids", prompt.substr(0, 199), "-c", "64"}), 2);
  EXPECT_THAT(err(), HasSubstr("give a larger -c (up to 128)"));
}

TEST_F(RunCommandTest, BeginsWithTheTokenThatTheFileAsksFor) {
  std::string bytes = testing::MakeTinyModel({}).Build();
  const std::string plain = WriteFile("plain.gguf", bytes);
  const std::string key = "tokenizer.ggml.add_bos_token";
  // Behind the key stand four bytes of its type.
  bytes.at(bytes.find(key) + key.size() + 4) = 1;
  const std::string asking = WriteFile("asking.gguf", bytes);
  const auto prompt = [&](const std::string& model, const std::string& flag,
                          const std::string& value) {
    return RunJson({"-m", model, flag, value, "-n", "1"})["prompt_ids"].get<std::vector<int64_t>>();
  };
  std::vector<int64_t> expected = prompt(plain, "-p", "ab");
  expected.insert(expected.begin(), testing::MakeTinyVocabulary().end_of_text);
  EXPECT_EQ(prompt(asking, "-p", "ab"), expected);
  // Ids are taken as they stand.
  EXPECT_EQ(prompt(asking, "--prompt-ids", "5,6"), (std::vector<int64_t>{5, 6}));
}

TEST_F(RunCommandTest, E12_ACacheLargerThanTheMemoryNamesTheFlagsThatAskForLess) {
  testing::TinyModelOptions options;
  options.layers = 64;
  options.head_dim = 128;
  options.kv_heads = 4;
  options.context = 1 << 24;
  const std::string model = WriteFile("long.gguf", testing::MakeTinyModel(options).Build());
  EXPECT_EQ(Run({"-m", model, "-p", "a", "--kv", "f32"}), 2);
  EXPECT_THAT(err(), HasSubstr("The keys and values of 16777216 positions in f32 take 4194304.0 "
                               "MiB of memory, and the device \"cpu ("));
  EXPECT_THAT(err(), ::testing::ContainsRegex(
                         " has [0-9.]+ MiB, of which [0-9.]+ MiB are free\\. Give a smaller -c "
                         "\\(it is 16777216\\), --kv f16, or a smaller model \\(-m\\)\\.\n"));
  EXPECT_EQ(Run({"-m", model, "-p", "a", "-c", "16000000"}), 2);
  EXPECT_THAT(err(), HasSubstr("Give a smaller -c (it is 16000000), or a smaller model (-m)."));
  EXPECT_EQ(Run({"-m", model, "-p", "a", "-n", "1", "-c", "16"}), 0) << err();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(RunCommandTest, E12_AModelLargerThanTheMemoryNamesTheFlagsThatAskForLess) {
  // Room for everything but the 13 MiB of weights.
  const int status = [&] {
    const AddressSpaceLimit limit(MappedBytes() + (uint64_t{10} << 20));
    return Run({"-p", "a", "-n", "1", "-t", "1", "--loaders", "1"});
  }();
  EXPECT_EQ(status, 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("The weights of \"tiny-tales"), HasSubstr(" MiB are free. "),
                           HasSubstr("Give a smaller model (-m), or leave the weights in the file "
                                     "(--mmap).\n")));
}
#endif

TEST_F(RunCommandTest, LimitsOfSamplingAreUsage) {
  EXPECT_EQ(Run({"-p", "a", "--top-p", "0"}), 64);
  EXPECT_EQ(Run({"-p", "a", "--temp", "nan"}), 64);
  EXPECT_EQ(Run({"-p", "a", "--min-p", "1.5"}), 64);
  EXPECT_EQ(Run({"--prompt-ids", "1,,2"}), 64);
  EXPECT_THAT(err(), HasSubstr("Item 2 of flag --prompt-ids (\"\") is not a whole number"));
}

}  // namespace
}  // namespace assay::cli
