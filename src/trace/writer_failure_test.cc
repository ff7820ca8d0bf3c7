// Nothing that goes wrong while a trace is written may leave a file that is taken for whole, or
// touch the file that stood there before.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assay/trace.h"

#include "base/file.h"
#include "support/temp_folder.h"
#include "support/trace_text.h"
#include "trace/format.h"
#include "trace/line_file.h"
#include "trace/sink.h"

namespace assay::trace {
namespace {

using ::testing::HasSubstr;

// Fails at the n-th call, Commit being the last, and says whether it was touched afterwards.
class FailingSink final : public Sink {
 public:
  struct Log {
    std::string written;
    size_t calls = 0;
    bool touched_after_failure = false;
    bool committed = false;
  };
  FailingSink(Log* log, size_t failing_call) : log_(log), failing_call_(failing_call) {}
  Status Write(std::string_view bytes) override {
    ASSAY_TRY(Call());
    log_->written += bytes;
    return {};
  }
  Status Commit() override {
    ASSAY_TRY(Call());
    log_->committed = true;
    return {};
  }

 private:
  Status Call() {
    log_->touched_after_failure = log_->touched_after_failure || failed_;
    failed_ = log_->calls++ == failing_call_;
    if (failed_) return Fail(ErrorCode::kIo, "", "The disk is full.");
    return {};
  }

  Log* log_;
  size_t failing_call_;
  bool failed_ = false;
};

// Some of everything, closed at the end.
Status WriteSmallTrace(TraceWriter* writer) {
  writer->KernelMade(1, {.name = "copy", .digest = "0"});
  for (uint64_t key = 0; key < 8; ++key) {
    writer->BufferMade(key, {.size_bytes = 64, .label = "a label"});
    writer->HostWrite(key, {0, 64});
    auto commands = writer->BeginCommandBuffer();
    const std::array<DispatchRecord::Binding, 1> bindings = {{{key, {0, 64}, Access::kRead}}};
    commands->Dispatch({.kernel_key = 1, .bindings = bindings});
    writer->Commit(*commands);
    writer->Wait();
  }
  return writer->Close();
}

TEST(WriterFailureTest, T12_TheFirstFailedWriteStaysAndIsReturned) {
  // Smaller than a line, so that one call may fill several blocks.
  constexpr size_t kBlock = 16;
  FailingSink::Log whole;
  {
    auto writer =
        TraceWriter::CreateOver(std::make_unique<FailingSink>(&whole, SIZE_MAX), {}, kBlock)
            .value();
    ASSERT_TRUE(WriteSmallTrace(writer.get()));
  }
  ASSERT_TRUE(assay::testing::ReadAll(whole.written));
  ASSERT_GT(whole.calls, 10U);
  for (size_t failing_call = 0; failing_call < whole.calls; ++failing_call) {
    FailingSink::Log log;
    auto writer =
        TraceWriter::CreateOver(std::make_unique<FailingSink>(&log, failing_call), {}, kBlock)
            .value();
    const Status status = WriteSmallTrace(writer.get());
    ASSERT_FALSE(status) << failing_call;
    EXPECT_EQ(status.error().message(), "The disk is full.");
    EXPECT_EQ(writer->Close().error().message(), "The disk is full.");
    EXPECT_FALSE(log.touched_after_failure) << failing_call;
    EXPECT_FALSE(log.committed);
    if (failing_call + 1 < whole.calls) {
      EXPECT_FALSE(assay::testing::ReadAll(log.written)) << failing_call;
    }
  }
}

TEST(WriterFailureTest, T12_AnEventThatThereWasNoMemoryForIsReturned) {
  std::string text;
  LineFile file(MakeStringSink(&text));
  file.Append("a\n", 1);
  file.FailForMemory();
  EXPECT_FALSE(file.ok());
  file.Append("b\n", 1);
  const Status status = file.Finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kAllocation);
  EXPECT_THAT(status.error().message(), ::testing::HasSubstr("no memory for an event"));
  EXPECT_EQ(text, "");
}

TEST(WriterFailureTest, T13_BlocksOfAnySizeGiveTheSameBytes) {
  std::string expected;
  {
    auto writer = TraceWriter::CreateInMemory(&expected, {}).value();
    ASSERT_TRUE(WriteSmallTrace(writer.get()));
  }
  for (size_t block = 1; block < 100; ++block) {
    std::string text;
    auto writer = TraceWriter::CreateOver(MakeStringSink(&text), {}, block).value();
    ASSERT_TRUE(WriteSmallTrace(writer.get()));
    EXPECT_EQ(text, expected) << block;
  }
}

TEST(WriterFailureTest, T12_AFailureBehindTheCompressorIsReturned) {
  for (const size_t failing_call : {0, 1}) {
    FailingSink::Log log;
    auto sink = MakeZstdSink(std::make_unique<FailingSink>(&log, failing_call)).value();
    auto writer = TraceWriter::CreateOver(std::move(sink), {}, 64).value();
    EXPECT_FALSE(WriteSmallTrace(writer.get()));
    EXPECT_FALSE(log.committed);
  }
}

class WriterFileTest : public ::testing::Test {
 protected:
  ptrdiff_t FilesInFolder() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
  const std::string path_ = (folder_ / "a.trace").string();
};

TEST_F(WriterFileTest, T12_TheFileAppearsWhenItIsWhole) {
  ASSERT_TRUE(WriteFile(path_, "old"));
  auto writer = TraceWriter::Create(path_, {}).value();
  EXPECT_EQ(ReadFile(path_).value(), "old");
  ASSERT_TRUE(WriteSmallTrace(writer.get()));
  EXPECT_TRUE(assay::testing::ReadAllOf(path_));
  EXPECT_TRUE(writer->Close());
  writer.reset();
  EXPECT_TRUE(assay::testing::ReadAllOf(path_));
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(WriterFileTest, T12_AnAbandonedTraceLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteFile(path_, "old"));
  std::unique_ptr<TraceWriter::CommandBuffer> open;
  {
    auto writer = TraceWriter::Create(path_, {}).value();
    writer->BufferMade(1, {.size_bytes = 1});
    open = writer->BeginCommandBuffer();
  }
  // A command buffer may outlive its writer.
  open->Barrier();
  open.reset();
  EXPECT_EQ(ReadFile(path_).value(), "old");
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(WriterFileTest, T13_ANameInZstIsCompressedAndReadDirectly) {
  std::string text;
  {
    auto writer = TraceWriter::CreateInMemory(&text, {}).value();
    ASSERT_TRUE(WriteSmallTrace(writer.get()));
  }
  const std::string path = path_ + ".zst";
  auto writer = TraceWriter::Create(path, {}).value();
  ASSERT_TRUE(WriteSmallTrace(writer.get()));
  EXPECT_LT(std::filesystem::file_size(path), text.size());
  EXPECT_EQ(assay::testing::ReadAllOf(path).value(), assay::testing::ReadAll(text).value());
}

TEST_F(WriterFileTest, T12_AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(WriteFile(path_, "old"));
  std::string text;
  {
    auto writer = TraceWriter::CreateInMemory(&text, {}).value();
    ASSERT_TRUE(WriteSmallTrace(writer.get()));
  }
  // A limit on the size of files makes write() fail where a full disk would: at any byte.
  for (size_t limit = 0; limit <= text.size(); limit += limit == 0 ? 1 : 97) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit file_size{limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &file_size) != 0) ::_exit(3);
      auto writer = TraceWriter::Create(path_, {});
      if (!writer) ::_exit(4);
      const Status status = WriteSmallTrace(writer->get());
      if (status) ::_exit(0);
      const bool typed = status.error().code() == ErrorCode::kIo &&
                         status.error().message().find(path_) != std::string::npos;
      writer->reset();
      ::_exit(typed ? 1 : 2);
    }
    int exit = 0;
    ASSERT_EQ(::waitpid(child, &exit, 0), child);
    ASSERT_TRUE(WIFEXITED(exit));
    EXPECT_EQ(WEXITSTATUS(exit), 1) << limit;
    EXPECT_EQ(ReadFile(path_).value(), "old");
    EXPECT_EQ(FilesInFolder(), 1);
  }
}

TEST_F(WriterFileTest, AFolderThatDoesNotExistIsAnError) {
  const auto writer = TraceWriter::Create((folder_ / "none" / "a.trace").string(), {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code(), ErrorCode::kIo);
}

TEST(WriterArgumentsTest, CreateRefusesWhatCannotBeWritten) {
  std::string text;
  EXPECT_EQ(TraceWriter::CreateInMemory(&text, {.version = 3}).error().code(),
            ErrorCode::kUnsupported);
  EXPECT_EQ(TraceWriter::CreateInMemory(&text, {.version = 0}).error().code(),
            ErrorCode::kUnsupported);
  for (const char* key : {"", "Key", "a b", "-a", "a\n"}) {
    const auto writer = TraceWriter::CreateInMemory(&text, {.meta = {{key, "x"}}});
    ASSERT_FALSE(writer) << key;
    EXPECT_EQ(writer.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(TraceWriter::CreateInMemory(&text, {.meta = {{"a", std::string(1 << 20, 'x')}}})
                .error()
                .code(),
            ErrorCode::kInvalidArgument);
}

struct BadCall {
  std::string_view message;
  std::function<void(TraceWriter*)> call;
};

TEST(WriterArgumentsTest, T12_AWrongCallIsReturnedByClose) {
  const auto dispatch = [](TraceWriter* writer, const DispatchRecord& record) {
    auto commands = writer->BeginCommandBuffer();
    commands->Dispatch(record);
    writer->Commit(*commands);
  };
  static constexpr DispatchRecord::Binding kUnknown{.buffer_key = 9, .range = {0, 1}};
  static constexpr DispatchRecord::Binding kBackward{.buffer_key = 1, .range = {2, 1}};
  const std::string long_text(1 << 20, ' ');
  const std::vector<std::byte> long_args(1 << 20);
  const std::vector<BadCall> cases = {
      {"No buffer is recorded under the key 0x9.",
       [](auto* w) {
         w->HostWrite(9, {0, 1});
       }},
      {"No buffer is recorded under the key 0x9.",
       [](auto* w) {
         w->HostRead(9, {0, 1});
       }},
      {"No buffer is recorded under the key 0x9.", [](auto* w) { w->BufferFreed(9); }},
      {"No buffer is recorded under the key 0x9.",
       [&](auto* w) {
         dispatch(w, {.kernel_key = 1, .bindings = {&kUnknown, 1}});
       }},
      {"No kernel is recorded under the key 0x9.",
       [&](auto* w) { dispatch(w, {.kernel_key = 9}); }},
      {"begins (2) behind its end (1)",
       [](auto* w) {
         w->HostWrite(1, {2, 1});
       }},
      {"begins (2) behind its end (1)",
       [&](auto* w) {
         dispatch(w, {.kernel_key = 1, .bindings = {&kBackward, 1}});
       }},
      {"The digest \"XY\" of the buffer \"kv\" is not",
       [](auto* w) { w->BufferMade(2, {.size_bytes = 1, .label = "kv", .digest = "XY"}); }},
      {"The digest \"\" of the kernel \"add\" is not",
       [](auto* w) { w->KernelMade(2, {.name = "add"}); }},
      {"The line of a buffer", [&](auto* w) { w->BufferMade(2, {.label = long_text}); }},
      {"The line of a kernel",
       [&](auto* w) { w->KernelMade(2, {.name = long_text, .digest = "0"}); }},
      {"The line of a dispatch",
       [&](auto* w) { dispatch(w, {.kernel_key = 1, .args = long_args}); }},
      {"closed while a load was running", [](auto* w) { w->load_observer()->OnLoadBegin(1); }},
  };
  for (const BadCall& bad : cases) {
    std::string text;
    auto writer = TraceWriter::CreateInMemory(&text, {}).value();
    writer->BufferMade(1, {.size_bytes = 8});
    writer->KernelMade(1, {.name = "copy", .digest = "0"});
    bad.call(writer.get());
    // What comes later changes nothing, be it right or wrong.
    writer->BufferMade(3, {.size_bytes = 8});
    writer->load_observer()->OnLoadBegin(1);
    const Status status = writer->Close();
    ASSERT_FALSE(status) << bad.message;
    EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().message(), HasSubstr(bad.message));
    EXPECT_FALSE(assay::testing::ReadAll(text));
  }
}

TEST(WriterArgumentsTest, T12_TheLongestLineWrittenIsRead) {
  std::string text;
  auto writer = TraceWriter::CreateInMemory(&text, {}).value();
  writer->BufferMade(1, {.size_bytes = 8, .label = std::string(kMaxLineBytes - 200, 'x')});
  writer->KernelMade(1, {.name = "copy", .digest = "0"});
  auto commands = writer->BeginCommandBuffer();
  const std::vector<std::byte> args((kMaxLineBytes - 200) / 2);
  commands->Dispatch({.kernel_key = 1, .args = args});
  writer->Commit(*commands);
  ASSERT_TRUE(writer->Close());
  EXPECT_TRUE(assay::testing::ReadAll(text));
}

TEST(WriterArgumentsTest, CallsAfterCloseAreIgnored) {
  std::string text;
  auto writer = TraceWriter::CreateInMemory(&text, {}).value();
  auto commands = writer->BeginCommandBuffer();
  ASSERT_TRUE(writer->Close());
  const std::string closed = text;
  writer->BufferMade(1, {.size_bytes = 8});
  writer->HostWrite(7, {0, 1});
  writer->BufferFreed(7);
  writer->KernelMade(1, {});
  commands->Barrier();
  writer->Commit(*commands);
  writer->Wait();
  EXPECT_TRUE(InOrder(2, 2, writer->load_observer(), [](size_t) -> Status { return {}; }));
  EXPECT_TRUE(writer->Close());
  EXPECT_EQ(text, closed);
}

}  // namespace
}  // namespace assay::trace
