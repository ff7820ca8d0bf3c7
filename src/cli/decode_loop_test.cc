// That the work of a command stops when the user asks the program to, and in whose words.
#include "cli/decode_loop.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/engine_flags.h"
#include "gpu/backend.h"
#include "support/engine.h"
#include "support/tiny_model.h"

namespace assay::cli {
namespace {

constexpr std::string_view kStopped = "Stopped before the test was done.";

class DecodeLoopTest : public ::testing::Test {
 protected:
  DecodeLoopTest()
      : engine_(testing::MakeTinyModel({}).Build(),
                gpu::Device::Create(MakeBackend(context_, flags_, 2).value()).value()),
        decoder_(engine_.NewDecoder()),
        ids_(testing::SomeIds(9, engine_.model().config().vocabulary)) {}

  StringOutput out_, err_;
  std::atomic<int> signal_{0};
  Context context_{{.out = &out_, .err = &err_, .stop_signal = &signal_}};
  EngineFlags flags_;
  testing::Engine engine_;
  std::unique_ptr<llm::Decoder> decoder_;
  std::vector<llm::TokenId> ids_;
};

TEST_F(DecodeLoopTest, E12_AStopSignalEndsThePassThatRuns) {
  signal_ = SIGINT;
  // Straight to the decoder: what stops it is the backend that it runs on.
  const Status fed = decoder_->Feed(ids_);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(decoder_->position(), 0U);

  // Nothing of it is left in what follows.
  signal_ = 0;
  const std::vector<float> after = testing::LogitsOf(*decoder_, ids_, 2);
  EXPECT_EQ(after, testing::LogitsOf(*engine_.NewDecoder(), ids_, 2));
}

TEST_F(DecodeLoopTest, E12_TheLoopSaysSoInTheWordsOfTheCommand) {
  DecodeLoop loop(&context_, decoder_.get(), kStopped);
  size_t fed = 0;
  ASSERT_TRUE(loop.FeedPrompt(ids_, 4, [&](size_t done) { fed = done; }));
  EXPECT_EQ(fed, ids_.size());
  // The signal comes while a step is looked at.
  size_t steps = 0;
  const Status stepped = loop.Steps(3, 8, [&](size_t step) -> Result<llm::TokenId> {
    steps = step + 1;
    if (step == 2) signal_ = SIGTERM;
    return decoder_->Greedy();
  });
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().ToString(), kStopped);
  EXPECT_EQ(steps, 3U);
  EXPECT_EQ(loop.FeedPrompt(ids_, ids_.size()).error().ToString(), kStopped);
}

TEST_F(DecodeLoopTest, ANegativeIdEndsTheSteps) {
  DecodeLoop loop(&context_, decoder_.get(), kStopped);
  size_t steps = 0;
  EXPECT_TRUE(
      loop.Steps(3, 8, [&](size_t) -> Result<llm::TokenId> { return ++steps == 2 ? -1 : 3; }));
  EXPECT_EQ(steps, 2U);
}

}  // namespace
}  // namespace assay::cli
