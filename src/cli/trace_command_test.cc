#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "assay/gpu_devices.h"
#include "assay/trace.h"

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/runner.h"
#include "prove/evidence.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

using prove::EvidenceFolder;
using prove::IdSequence;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TraceCommandTest : public ::testing::Test {
 protected:
  TraceCommandTest() {
    testing::TinyModelOptions options;
    options.experts = 4;
    options.experts_used = 2;
    options.weights = testing::kQ8_0;
    model_ = Path("model.gguf");
    std::ofstream(model_, std::ios::binary) << testing::MakeTinyModel(options).Build();
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Runs `assay trace -m the tiny model -o NAME WORDS`.
  int Trace(const std::string& name, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"trace", "-m", model_, "-o", Path(name)};
    all.insert(all.end(), words.begin(), words.end());
    return Run(all);
  }
  int Run(const std::vector<std::string>& words) {
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = &signal_});
  }
  const std::string& out() const { return out_->text(); }
  const std::string& err() const { return err_->text(); }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
  std::string model_;
  std::unique_ptr<StringOutput> out_, err_;
  std::atomic<int> signal_{0};
};

TEST_F(TraceCommandTest, WritesATraceForEachDepthAndTheIds) {
  ASSERT_EQ(Trace("a", {"--depth", "0,10", "--steps", "3"}), 0) << err();
  const auto evidence = EvidenceFolder::Open(Path("a"));
  ASSERT_TRUE(evidence.has_value()) << evidence.error().ToString();
  EXPECT_EQ(evidence->manifest().depths, (std::vector<int64_t>{0, 10}));
  EXPECT_EQ(evidence->manifest().facts.steps, 3);
  for (const IdSequence& sequence : evidence->sequences()) EXPECT_EQ(sequence.ids.size(), 3U);
  EXPECT_THAT(out(), AllOf(HasSubstr("3 steps at depth 0"), HasSubstr("3 steps at depth 10")));
}

TEST_F(TraceCommandTest, T2_CommitEveryIsAMetaLineHoweverItCameAbout) {
  const auto recorded = [&](const std::string& name, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--depth", "0", "--steps", "1"});
    EXPECT_EQ(Trace(name, flags), 0) << err();
    return ReadAll(Path(name + "/depth-0.trace"));
  };
  const std::string whole = recorded("whole", {});
  EXPECT_THAT(whole, Not(HasSubstr("meta commit-every")));
  EXPECT_EQ(recorded("zero", {"--commit-every", "0"}), whole);
  EXPECT_THAT(recorded("seven", {"--commit-every", "7"}), HasSubstr("\nmeta commit-every 7\n"));
  if (!gpu::ListDevices("vulkan")) return;
  // As on a device with memory of its own.
  const std::vector<std::string> apart = {"--backend", "vulkan", "--vulkan-disable",
                                          "unified-memory"};
  std::vector<std::string> given = apart;
  given.insert(given.end(), {"--commit-every", "64"});
  const std::string parts = recorded("parts", apart);
  EXPECT_THAT(parts, HasSubstr("\nmeta commit-every 64\n"));
  EXPECT_EQ(recorded("given", given), parts);
  const auto options = EvidenceFolder::Open(Path("parts")).value().manifest().facts.command_options;
  EXPECT_EQ(options.at("commit-every"), "64");
  EXPECT_EQ(options.at("vulkan-disable"), "unified-memory");
  EXPECT_EQ(options.at("kernels"), "spirv");
  EXPECT_FALSE(options.at("device").empty());
}

TEST_F(TraceCommandTest, T2_TheSameBytesAtAnyNumberOfLoadersAndThreads) {
  ASSERT_EQ(Trace("first", {"--depth", "0,20", "--steps", "2", "--loaders", "1", "-t", "1"}), 0);
  const std::string zero = ReadAll(Path("first/depth-0.trace"));
  const std::string twenty = ReadAll(Path("first/depth-20.trace"));
  ASSERT_FALSE(zero.empty());
  ASSERT_FALSE(twenty.empty());
  for (const std::string loaders : {"2", "4", "8"}) {
    for (const std::string threads : {"2", "3"}) {
      const std::string name = "loaders" + loaders + "threads" + threads;
      ASSERT_EQ(
          Trace(name, {"--depth", "0,20", "--steps", "2", "--loaders", loaders, "-t", threads}), 0)
          << err();
      EXPECT_EQ(ReadAll(Path(name + "/depth-0.trace")), zero) << name;
      EXPECT_EQ(ReadAll(Path(name + "/depth-20.trace")), twenty) << name;
    }
  }
}

TEST_F(TraceCommandTest, E8_TheSameBytesAndIdsUnderEverySchedule) {
  ASSERT_EQ(Trace("recorded", {"--depth", "0,20", "--steps", "2"}), 0) << err();
  for (const std::string name : {"0", "20"})
    ASSERT_FALSE(ReadAll(Path("recorded/depth-" + name + ".trace")).empty());
  for (const std::string schedule :
       {"reversed", "late-writes", "random:1", "random:2", "interleaved:5"}) {
    ASSERT_EQ(Trace(schedule, {"--depth", "0,20", "--steps", "2", "--schedule", schedule}), 0)
        << err();
    for (const std::string file : {"depth-0.trace", "depth-20.trace", "ids.json"}) {
      EXPECT_EQ(ReadAll(Path(schedule + "/" + file)), ReadAll(Path("recorded/" + file)))
          << schedule << ", " << file;
    }
  }
}

TEST_F(TraceCommandTest, E8_AnUnknownScheduleIsAUsageError) {
  EXPECT_EQ(Trace("a", {"--schedule", "shuffled"}), 64);
  EXPECT_THAT(err(),
              HasSubstr("\"shuffled\" is no schedule; the schedules are recorded, reversed"));
  EXPECT_EQ(Trace("a", {"--depth", "0", "--schedule", "interleaved", "--backend", "null"}), 2);
  EXPECT_THAT(err(), HasSubstr("cannot run workgroups interleaved"));
}

TEST_F(TraceCommandTest, SaysWhatDecidesTheDispatchesAndNothingOfTheRun) {
  ASSERT_EQ(
      Trace("a", {"--depth", "4", "--steps", "2", "--kv", "f32", "-t", "3", "--loaders", "5"}), 0);
  const std::string text = ReadAll(Path("a/depth-4.trace"));
  for (const std::string line :
       {"\nmeta backend cpu\n", "\nmeta barriers manual\n", "\nmeta context 128\n",
        "\nmeta depth 4\n", "\nmeta graph on\n", "\nmeta kv f32\n", "\nmeta steps 2\n",
        "\nmeta weights read\n", "\nmeta model-digest "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, ::testing::Not(HasSubstr("threads")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("loaders")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr(folder_.string())));
  EXPECT_THAT(text, HasSubstr("kind=weight label=\"blk.0.attn_q.weight\" digest="));
}

TEST_F(TraceCommandTest, HoldsEverythingFromTheLoadToTheLastFree) {
  ASSERT_EQ(Trace("a", {"--depth", "4", "--steps", "3"}), 0);
  auto reader = trace::TraceReader::Open(Path("a/depth-4.trace"));
  ASSERT_TRUE(reader.has_value());
  size_t made = 0, freed = 0, commits = 0, waits = 0, weights = 0, weight_writes = 0;
  std::vector<bool> is_weight;
  for (;;) {
    const auto event = (*reader)->Next();
    ASSERT_TRUE(event.has_value()) << event.error().ToString();
    if (!event->has_value()) break;
    if (const auto* buffer = std::get_if<trace::BufferEvent>(&**event)) {
      EXPECT_EQ(buffer->buffer.value(), made);
      is_weight.push_back(buffer->kind == BufferKind::kWeight);
      weights += is_weight.back() ? 1 : 0;
      EXPECT_EQ(buffer->digest.empty(), !is_weight.back());
      ++made;
    } else if (const auto* write = std::get_if<trace::HostWriteEvent>(&**event)) {
      weight_writes += is_weight[write->buffer.value()] ? 1 : 0;
    }
    freed += std::holds_alternative<trace::FreeEvent>(**event) ? 1 : 0;
    commits += std::holds_alternative<trace::CommitEvent>(**event) ? 1 : 0;
    waits += std::holds_alternative<trace::WaitEvent>(**event) ? 1 : 0;
  }
  // The prompt's pass and three steps.
  EXPECT_EQ(commits, 4U);
  EXPECT_EQ(waits, 4U);
  EXPECT_EQ(made, freed);
  EXPECT_EQ(weights, 27U);
  EXPECT_EQ(weight_writes, weights);
}

TEST_F(TraceCommandTest, E9_TheEngineIssuesTheLeastBarriersThatWillDo) {
  ASSERT_EQ(Trace("a", {"--depth", "20", "--steps", "2"}), 0) << err();
  EXPECT_EQ(Run({"check", Path("a/depth-20.trace")}), 0) << out();
  EXPECT_THAT(out(),
              AllOf(HasSubstr("hazards 0 "), HasSubstr("possible 0;"), HasSubstr("redundant 0 ")));
}

TEST_F(TraceCommandTest, WhatDoesNotFitIsRefusedInTheWordsOfTheFlags) {
  EXPECT_EQ(Trace("a", {"--depth", "0,127", "--steps", "2"}), 2);
  EXPECT_THAT(err(),
              HasSubstr("Depth 127 (--depth) and 2 steps (--steps) need a context of 129; "
                        "the model's holds 128. Give a smaller --depth or a smaller --steps; "
                        "128 is all that the model goes up to.\n"));
  EXPECT_EQ(Trace("a", {"-c", "129"}), 2);
  EXPECT_THAT(err(), HasSubstr("A context of 129 (-c) is more than the model goes up to (128)"));
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

TEST_F(TraceCommandTest, TheFirstStepContinuesTheFixedSequence) {
  ASSERT_EQ(Trace("a", {"--depth", "0,5", "--steps", "3"}), 0) << err();
  const auto evidence = EvidenceFolder::Open(Path("a"));
  ASSERT_TRUE(evidence.has_value());
  const auto vocabulary = static_cast<uint32_t>(testing::MakeTinyVocabulary().tokens.size());
  for (const IdSequence& sequence : evidence->sequences()) {
    const auto fed = FixedIds(static_cast<size_t>(sequence.depth) + 1, vocabulary);
    ASSERT_EQ(Run({"run", "-m", model_, "--prompt-ids", fmt::format("{}", fmt::join(fed, ",")),
                   "-n", "3", "--ignore-eos", "--ids"}),
              0)
        << err();
    EXPECT_EQ(out(), fmt::format("{}\n", fmt::join(sequence.ids, ",")));
  }
}

TEST_F(TraceCommandTest, TheFixedSequenceIsTheDocumentedOne) {
  EXPECT_EQ(FixedIds(4, 4096), (std::vector<llm::TokenId>{214, 89, 204, 230}));
  EXPECT_EQ(FixedIds(2, 100), (std::vector<llm::TokenId>{74, 53}));
}

TEST_F(TraceCommandTest, E6_CheckedRecordsTheSameBytes) {
  ASSERT_EQ(Trace("plain", {"--depth", "3", "--steps", "2"}), 0) << err();
  ASSERT_EQ(Trace("checked", {"--depth", "3", "--steps", "2", "--checked"}), 0) << err();
  EXPECT_EQ(ReadAll(Path("checked/depth-3.trace")), ReadAll(Path("plain/depth-3.trace")));
  EXPECT_EQ(ReadAll(Path("checked/ids.json")), ReadAll(Path("plain/ids.json")));
  EXPECT_EQ(Run({"compare", Path("plain"), Path("checked")}), 0) << err();
}

TEST_F(TraceCommandTest, TheNullBackendIsSaidToHaveComputedNothing) {
  const std::vector<std::string> words = {"--depth", "0", "--steps", "2", "--backend", "null"};
  ASSERT_EQ(Trace("null", words), 0) << err();
  EXPECT_THAT(out(), HasSubstr("no ids: backend null computes nothing"));
  const auto evidence = EvidenceFolder::Open(Path("null"));
  ASSERT_TRUE(evidence.has_value()) << evidence.error().ToString();
  EXPECT_THAT(evidence->sequences(), ::testing::IsEmpty());
  // The trace says "steps 2", and the manifest knows of none.
  EXPECT_EQ(Run({"compare", Path("null"), Path("null")}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("no ids"));
  std::vector<std::string> checked = words;
  checked.emplace_back("--checked");
  EXPECT_EQ(Trace("refused", checked), 2);
  EXPECT_THAT(err(), HasSubstr("Backend null cannot verify what a dispatch touches"));
}

TEST_F(TraceCommandTest, T8_WritesVersion1OnRequest) {
  ASSERT_EQ(Trace("a", {"--depth", "0", "--steps", "1", "--trace-version", "1"}), 0) << err();
  EXPECT_THAT(ReadAll(Path("a/depth-0.trace")), ::testing::StartsWith("assay-trace 1\n"));
}

TEST_F(TraceCommandTest, CompressesOnRequest) {
  ASSERT_EQ(Trace("plain", {"--depth", "0", "--steps", "1"}), 0) << err();
  ASSERT_EQ(Trace("packed", {"--depth", "0", "--steps", "1", "--zst"}), 0) << err();
  EXPECT_LT(std::filesystem::file_size(Path("packed/depth-0.trace.zst")),
            std::filesystem::file_size(Path("plain/depth-0.trace")));
}

TEST_F(TraceCommandTest, KeepsAFolderThatHoldsSomethingUnlessForced) {
  ASSERT_EQ(Trace("a", {"--depth", "0", "--steps", "1"}), 0) << err();
  const std::string before = ReadAll(Path("a/manifest.json"));
  EXPECT_EQ(Trace("a", {"--depth", "0", "--steps", "2"}), 2);
  EXPECT_THAT(err(), HasSubstr("a"));
  EXPECT_EQ(ReadAll(Path("a/manifest.json")), before);
  EXPECT_EQ(Trace("a", {"--depth", "0", "--steps", "2", "--force"}), 0) << err();
  EXPECT_NE(ReadAll(Path("a/manifest.json")), before);
}

TEST_F(TraceCommandTest, AStopLeavesNothingBehind) {
  signal_ = 2;
  EXPECT_EQ(Trace("a", {"--depth", "0,10", "--steps", "3"}), 130);
  EXPECT_EQ(err(), "assay trace: error: Stopped while the model was digested.\n");
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

TEST_F(TraceCommandTest, RefusesDepthsBeyondTheContextBeforeItWritesAnything) {
  EXPECT_EQ(Trace("a", {"--depth", "0,126", "--steps", "3"}), 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("129"), HasSubstr("128"), HasSubstr("--depth"),
                           HasSubstr("128 is all that the model goes up to")));
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
  EXPECT_EQ(Trace("a", {"--depth", "125", "--steps", "3"}), 0) << err();
}

TEST_F(TraceCommandTest, RefusesBadUsage) {
  EXPECT_EQ(Run({"trace", "-m", model_}), 64);
  EXPECT_THAT(err(), HasSubstr("-o"));
  EXPECT_EQ(Trace("a", {"--depth", "3,3"}), 64);
  EXPECT_THAT(err(), HasSubstr("3 twice"));
  EXPECT_EQ(Trace("a", {"--steps", "0"}), 64);
  EXPECT_EQ(Trace("a", {"--trace-version", "3"}), 64);
  EXPECT_THAT(err(), HasSubstr("1 to 2"));
}

}  // namespace
}  // namespace assay::cli
