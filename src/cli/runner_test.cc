#include "cli/runner.h"

#include <cerrno>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/toy_command_for_test.h"

namespace assay::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A full disk, or a reader that went away.
class FullOutput final : public Output {
 public:
  explicit FullOutput(int failure = ENOSPC) : failure_(failure) {}

 protected:
  int WriteAll(std::string_view) override { return failure_; }

 private:
  int failure_;
};

class RunnerTest : public testing::Test {
 protected:
  int Run(const std::vector<std::string>& words) {
    const std::vector<CommandEntry> commands = {
        {"toy", [] { return std::unique_ptr<Command>(std::make_unique<ToyCommand>()); }}};
    return RunProgram(words, commands, {.out = &out_, .err = &err_, .stop_signal = &signal_});
  }
  StringOutput out_, err_;
  std::atomic<int> signal_{0};
};

TEST_F(RunnerTest, CommandGivesTheStatus) {
  EXPECT_EQ(Run({"toy", "a"}), 0);
  EXPECT_EQ(Run({"toy", "six"}), 6);
  EXPECT_EQ(out_.text(), "input a\ninput six\n");
}

TEST_F(RunnerTest, ErrorIsOneLineThatNamesTheCommand) {
  EXPECT_EQ(Run({"toy", "fail"}), 2);
  EXPECT_EQ(err_.text(), "assay toy: error: It?failed.\n");
  EXPECT_EQ(out_.text(), "");
}

TEST_F(RunnerTest, ExceptionIsAnErrorToo) {
  EXPECT_EQ(Run({"toy", "throw"}), 2);
  EXPECT_THAT(err_.text(), HasSubstr("thrown"));
}

TEST_F(RunnerTest, StoppedBySignalIs128PlusItsNumber) {
  EXPECT_EQ(Run({"toy", "cancel"}), 2);
  signal_ = SIGINT;
  EXPECT_EQ(Run({"toy", "cancel"}), 130);
}

TEST_F(RunnerTest, C1_UsageErrorsAre64WithAHint) {
  EXPECT_EQ(Run({"toy", "a", "--stpes=1"}), 64);
  EXPECT_EQ(err_.text(),
            "assay toy: error: There is no flag --stpes; did you mean --steps? See \"assay toy "
            "--help\".\n");
  EXPECT_EQ(Run({"tyo"}), 64);
  EXPECT_THAT(err_.text(), HasSubstr("assay: error: There is no command \"tyo\"; did you mean "
                                     "\"toy\"? See \"assay --help\".\n"));
  EXPECT_EQ(Run({}), 64);
  EXPECT_EQ(Run({"--versoin"}), 64);
  EXPECT_THAT(err_.text(), HasSubstr("did you mean --version? See"));
  EXPECT_EQ(Run({"help", "tyo"}), 64);
  EXPECT_EQ(Run({"help", "toy", "a"}), 64);
  EXPECT_THAT(err_.text(), HasSubstr("The argument \"a\" is one too many."));
  EXPECT_EQ(Run({"--version", "b"}), 64);
  EXPECT_EQ(Run({"help", "--nonsense"}), 64);
  EXPECT_EQ(Run({"toy", "a", "--fast", "-n", "1"}), 64);
  EXPECT_THAT(err_.text(), HasSubstr("exclude each other"));
  EXPECT_EQ(out_.text(), "");
}

TEST_F(RunnerTest, HelpInAllForms) {
  EXPECT_EQ(Run({"--help"}), 0);
  const std::string program = out_.text();
  EXPECT_THAT(program, HasSubstr("toy   Does nothing of use."));
  EXPECT_EQ(Run({"help"}), 0);
  EXPECT_EQ(out_.text(), program + program);
  out_ = StringOutput();
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"help", "help"}, {"help", "-h"}}) {
    EXPECT_EQ(Run(words), 0);
  }
  EXPECT_EQ(out_.text(), program + program);
  EXPECT_EQ(Run({"toy", "--help"}), 0);
  const std::string command = out_.text().substr(2 * program.size());
  EXPECT_THAT(command, StartsWith("usage: assay toy"));
  EXPECT_EQ(Run({"help", "toy"}), 0);
  EXPECT_EQ(out_.text(), program + program + command + command);
  // The defaults, not the values given beside --help.
  EXPECT_EQ(Run({"toy", "a", "-n", "9", "-h"}), 0);
  EXPECT_EQ(out_.text(), program + program + command + command + command);
}

TEST_F(RunnerTest, VersionIsOneLine) {
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(out_.text(), "assay " + std::string(Version()) + "\n");
}

TEST_F(RunnerTest, QuietSilencesNotes) {
  EXPECT_EQ(Run({"toy", "a", "-q"}), 0);
  EXPECT_EQ(err_.text(), "");
  EXPECT_EQ(Run({"toy", "a"}), 0);
  EXPECT_EQ(err_.text(), "assay toy: note: a note\n");
}

// Asks for more memory than there is.
class HungryCommand final : public Command {
 public:
  CommandSpec Describe() override {
    CommandSpec spec;
    spec.name = "hungry";
    spec.flags = {{.names = "--json", .value = SwitchValue{&json_}, .help = "JSON."}};
    return spec;
  }
  Result<int> Run(Context&) override { throw std::bad_alloc(); }

 private:
  bool json_ = false;
};

TEST_F(RunnerTest, E12_MemoryThatIsShortIsAnErrorWithHowMuchThereIs) {
  const std::vector<CommandEntry> commands = {
      {"hungry", [] { return std::unique_ptr<Command>(std::make_unique<HungryCommand>()); }}};
  const std::vector<std::string> words = {"hungry", "--json"};
  EXPECT_EQ(RunProgram(words, commands, {.out = &out_, .err = &err_}), 2);
  EXPECT_THAT(err_.text(), ::testing::ContainsRegex(
                               "assay hungry: error: The memory that the program may have "
                               "\\([0-9]+ MiB.*\\) is too little for this; .*ask for less\\.\n"));
  EXPECT_THAT(out_.text(), HasSubstr("\"error\": \"The memory that the program may have"));
}

TEST_F(RunnerTest, AReaderThatHasSeenEnoughEndsItInSilence) {
  FullOutput gone(EPIPE);
  const std::vector<CommandEntry> commands = {
      {"toy", [] { return std::unique_ptr<Command>(std::make_unique<ToyCommand>()); }}};
  const std::vector<std::string> words = {"toy", "a", "-q"};
  EXPECT_EQ(RunProgram(words, commands, {.out = &gone, .err = &err_}), 128 + SIGPIPE);
  EXPECT_EQ(err_.text(), "");
}

TEST_F(RunnerTest, AnErrorBeginsItsOwnLine) {
  EXPECT_EQ(Run({"toy", "half"}), 2);
  EXPECT_EQ(out_.text(), "half a line\n");
}

TEST_F(RunnerTest, FullStandardOutputIsAnError) {
  FullOutput full;
  const std::vector<std::string> words = {"--version"};
  EXPECT_EQ(RunProgram(words, {}, {.out = &full, .err = &err_}), 2);
  EXPECT_EQ(err_.text(),
            "assay: error: Cannot write to standard output: No space left on device. The text "
            "printed is not whole.\n");
}

}  // namespace
}  // namespace assay::cli
