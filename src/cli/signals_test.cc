#include "cli/signals.h"

#include <csignal>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace assay::cli {
namespace {

// Each in a process of its own, since descriptors and signals belong to the process.

TEST(SignalsDeathTest, ClosedStandardOutputIsNotGivenToAnotherFile) {
  EXPECT_EXIT(
      {
        ::close(STDOUT_FILENO);
        HoldStandardDescriptors();
        const bool held = ::open("/dev/null", O_WRONLY) > STDERR_FILENO;
        const bool fails = ::write(STDOUT_FILENO, "x", 1) < 0;
        ::_exit(held && fails ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, FirstSignalSetsTheFlagAndTheSecondEndsTheProgram) {
  EXPECT_EXIT(
      {
        const std::atomic<int>& caught = CatchStopSignals();
        if (caught != 0) ::_exit(1);
        ::raise(SIGINT);
        if (caught != SIGINT) ::_exit(1);
        ::raise(SIGINT);
        ::_exit(1);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(SignalsDeathTest, IgnoredSignalsStayIgnored) {
  EXPECT_EXIT(
      {
        ::signal(SIGINT, SIG_IGN);
        const std::atomic<int>& caught = CatchStopSignals();
        ::raise(SIGINT);
        ::_exit(caught == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, C1_AFileThatGrowsPastALimitIsAFailedWriteAndNoSignal) {
  for (const int number : {SIGXFSZ, SIGPIPE}) {
    EXPECT_EXIT(
        {
          CatchStopSignals();
          ::raise(number);
          ::_exit(0);
        },
        testing::ExitedWithCode(0), "")
        << number;
  }
}

}  // namespace
}  // namespace assay::cli
