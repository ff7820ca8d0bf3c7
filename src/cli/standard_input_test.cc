#include "cli/standard_input.h"

#include <array>
#include <atomic>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace assay::cli {
namespace {

class StandardInputTest : public testing::Test {
 protected:
  StandardInputTest() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~StandardInputTest() override {
    CloseWriter();
    ::close(ends_[0]);
  }
  void Write(const std::string& text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void CloseWriter() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  Result<std::string> Read(uint64_t max_bytes) const {
    const Context context({.out = nullptr, .err = nullptr, .stop_signal = &signal_});
    return ReadToEnd(context, ends_[0], max_bytes);
  }

  std::array<int, 2> ends_{-1, -1};
  std::atomic<int> signal_{0};
};

TEST_F(StandardInputTest, ReadsToTheEnd) {
  Write("one ");
  Write("two");
  CloseWriter();
  EXPECT_EQ(Read(7).value(), "one two");
}

TEST_F(StandardInputTest, StopsAtItsLimitThoughMoreMayCome) {
  Write("12345678");
  EXPECT_THAT(Read(7).error().message(), testing::HasSubstr("more than 7 bytes"));
}

TEST_F(StandardInputTest, CtrlCEndsTheWait) {
  signal_ = SIGINT;
  EXPECT_EQ(Read(7).error().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace assay::cli
