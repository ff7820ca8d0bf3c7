#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/runner.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;

class BenchCommandTest : public ::testing::Test {
 protected:
  BenchCommandTest() {
    model_ = (folder_ / "model.gguf").string();
    std::ofstream(model_, std::ios::binary) << testing::MakeTinyModel({}).Build();
  }
  int Bench(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"bench", "-m", model_};
    all.insert(all.end(), words.begin(), words.end());
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(all, Commands(), {.out = out_.get(), .err = err_.get()});
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
  std::string model_;
  std::unique_ptr<StringOutput> out_, err_;
};

TEST_F(BenchCommandTest, MeasuresEveryCombination) {
  ASSERT_EQ(Bench({"-p", "4,9", "-n", "3", "--depth", "0,8", "-t", "1,2", "-r", "3", "--json"}), 0)
      << err();
  const auto json = nlohmann::json::parse(out());
  // For each thread count: one load, and at each depth two prefills and one decode.
  ASSERT_EQ(json["rows"].size(), 2U * (1 + 2 * 3));
  for (const auto& row : json["rows"]) {
    EXPECT_EQ(row["values"].size(), 3U);
    EXPECT_GT(row["median"].get<double>(), 0);
  }
  EXPECT_EQ(json["rows"][0]["what"], "load");
  EXPECT_EQ(json["rows"][0]["unit"], "s");
  EXPECT_EQ(json["rows"][1]["what"], "prefill");
  EXPECT_EQ(json["rows"][1]["tokens"], 4);
  EXPECT_EQ(json["rows"][3]["what"], "decode");
  EXPECT_EQ(json["rows"][3]["unit"], "tok/s");
  EXPECT_EQ(json["rows"][6]["depth"], 8);
  EXPECT_EQ(json["rows"][7]["threads"], 2);
  EXPECT_TRUE(json["rows"][0]["tokens"].is_null());
  EXPECT_TRUE(json["rows"][0]["depth"].is_null());
  EXPECT_GT(json["peak_rss_bytes"].get<uint64_t>(), 1U << 20);
}

TEST_F(BenchCommandTest, E6_SaysWhenItIsChecked) {
  const std::vector<std::string> words = {"-p", "4", "-n", "2", "-r", "1", "--checked"};
  ASSERT_EQ(Bench(words), 0) << err();
  EXPECT_THAT(out(), HasSubstr("barriers manual, checked\n"));
}

TEST_F(BenchCommandTest, E10_ReportsDispatchesAndBarriersOfATokenBeforeAndAfter) {
  const std::vector<std::string> words = {"-p", "0", "-n", "2", "-r", "1", "--json", "--graph"};
  const auto token = [&](const std::string& graph) {
    auto with = words;
    with.push_back(graph);
    EXPECT_EQ(Bench(with), 0) << err();
    return nlohmann::json::parse(out())["rows"][1]["token"];
  };
  const auto off = token("off");
  const auto on = token("on");
  EXPECT_EQ(off["dispatches"], off["dispatches_encoded"]);
  EXPECT_EQ(off["barriers"], off["barriers_encoded"]);
  EXPECT_EQ(on["dispatches_encoded"], off["dispatches"]);
  EXPECT_EQ(on["barriers_encoded"], off["barriers"]);
  EXPECT_LT(on["dispatches"], off["dispatches"]);
  EXPECT_LT(on["barriers"], off["barriers"]);
}

TEST_F(BenchCommandTest, PrintsATable) {
  ASSERT_EQ(Bench({"-p", "4", "-n", "0", "-r", "1"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("prefill"));
  EXPECT_THAT(out(), ::testing::Not(HasSubstr("decode")));
  EXPECT_THAT(out(), HasSubstr("peak memory"));
}

TEST_F(BenchCommandTest, RecordsOnRequest) {
  const std::string trace = (folder_ / "bench.trace").string();
  ASSERT_EQ(Bench({"-p", "4", "-n", "2", "-r", "1", "--trace", trace}), 0) << err();
  EXPECT_GT(std::filesystem::file_size(trace), 1000U);
}

TEST_F(BenchCommandTest, ThreadsAreThoseThatComputeAndNoneOnOtherBackends) {
  const std::vector<std::string> sizes = {"-p", "4", "-n", "1", "-r", "1"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), sizes.begin(), sizes.end());
    EXPECT_EQ(Bench(words), 0) << err();
  };
  with({"--json"});
  // 0 of --threads stands for as many as there are.
  EXPECT_GE(nlohmann::json::parse(out())["rows"][1]["threads"], 1);
  with({"--backend", "null", "-t", "1,2", "--json"});
  const auto json = nlohmann::json::parse(out());
  EXPECT_EQ(json["rows"].size(), 3U) << "one run, whatever the threads";
  for (const auto& row : json["rows"]) EXPECT_TRUE(row["threads"].is_null());
  with({"--backend", "null"});
  EXPECT_THAT(out(), ::testing::ContainsRegex("\n +-  load +- +- "));
  EXPECT_THAT(out(), ::testing::ContainsRegex("\n +-  prefill +4 +0 "));
}

TEST_F(BenchCommandTest, AWholeContextCanBeDecoded) {
  EXPECT_EQ(Bench({"-p", "0", "-n", "128", "-r", "1", "-t", "1"}), 0) << err();
}

TEST_F(BenchCommandTest, RefusesSizesBeyondTheContextWithBothNumbers) {
  EXPECT_EQ(Bench({"-p", "129", "-n", "0"}), 2);
  EXPECT_THAT(err(), HasSubstr("Depth 0 (--depth) and 129 tokens (--n-prompt) need a context of "
                               "129; the model's holds 128. Give a smaller --depth or a smaller "
                               "--n-prompt; 128 is all that the model goes up to.\n"));
  EXPECT_EQ(Bench({"-p", "0", "-n", "2", "-d", "0,7", "-c", "8"}), 2);
  EXPECT_THAT(err(), HasSubstr("Depth 7 (--depth) and 2 tokens (--n-gen) need a context of 9; "
                               "that of -c holds 8. Give a smaller --depth or a smaller --n-gen, "
                               "or give a larger -c (up to 128).\n"));
  EXPECT_EQ(Bench({"-p", "4", "-n", "0", "-c", "129"}), 2);
  EXPECT_THAT(err(), HasSubstr("A context of 129 (-c) is more than the model goes up to (128)"));
}

TEST_F(BenchCommandTest, RefusesBadUsage) {
  EXPECT_EQ(Bench({"-r", "0"}), 64);
  EXPECT_EQ(Bench({"-t", "x"}), 64);
  EXPECT_THAT(err(), HasSubstr("-t"));
}

}  // namespace
}  // namespace assay::cli
