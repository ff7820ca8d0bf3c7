#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

namespace assay::trace {
namespace {

using testing::HasSubstr;

// The text of a trace without its last line.
std::string Body(const std::string& text) { return text.substr(0, text.rfind("end events=")); }

// The lines of a whole trace; fails the test when it is not whole.
std::vector<Event> ReadAll(std::string_view text) {
  std::vector<Event> events;
  auto reader = TraceReader::FromMemory(text, "test");
  if (!reader) {
    ADD_FAILURE() << reader.error().message();
    return events;
  }
  for (;;) {
    Result<std::optional<Event>> event = (*reader)->Next();
    if (!event) {
      ADD_FAILURE() << event.error().message();
      return events;
    }
    if (!*event) return events;
    events.push_back(**std::move(event));
  }
}

TEST(TraceWriterTest, T1_WritesEveryEventInOrder) {
  std::string text;
  auto writer =
      TraceWriter::CreateInMemory(&text, {.meta = {{"model-digest", "8f0c"}, {"backend", "cpu"}}})
          .value();
  writer->BufferMade(0x1000,
                     {.size_bytes = 64, .kind = BufferKind::kWeight, .label = "w", .digest = "ab"});
  writer->BufferMade(0x2000, {.size_bytes = 128, .kind = BufferKind::kScratch});
  writer->KernelMade(7, {.name = "never_used", .digest = "01"});
  writer->KernelMade(8, {.name = "add", .digest = "02", .workgroup = {64, 1, 1}});
  writer->HostWrite(0x1000, {0, 64});
  auto commands = writer->BeginCommandBuffer();
  const std::vector<std::byte> args = {std::byte{1}, std::byte{0xff}};
  const std::vector<DispatchRecord::Binding> bindings = {
      {0x1000, {0, 64}, Access::kRead},
      {0x2000, {64, 128}, Access::kReadWrite, false},
  };
  commands->Dispatch(
      {.kernel_key = 8, .grid = {2, 3, 4}, .shared_bytes = 32, .args = args, .bindings = bindings});
  commands->Barrier();
  commands->Dispatch({.kernel_key = 8, .grid = {1, 1, 1}, .args = {}, .bindings = {}});
  writer->Commit(*commands);
  writer->Wait();
  writer->HostRead(0x2000, {64, 128});
  writer->BufferFreed(0x2000);
  ASSERT_TRUE(writer->Close());
  EXPECT_EQ(Body(text),
            "assay-trace 2\n"
            "meta backend cpu\n"
            "meta model-digest 8f0c\n"
            "buffer #0 size=64 kind=weight label=\"w\" digest=ab\n"
            "buffer #1 size=128 kind=scratch\n"
            "write #0[0,64)\n"
            "kernel k0 name=add digest=02 workgroup=64,1,1\n"
            "begin\n"
            "dispatch k0 grid=2,3,4 shared=32 args=01ff r#0[0,64) rw#1[64,128)?\n"
            "barrier\n"
            "dispatch k0 grid=1,1,1\n"
            "commit\n"
            "wait\n"
            "read #1[64,128)\n"
            "free #1\n");
  EXPECT_EQ(ReadAll(text).size(), 14U);
  EXPECT_THAT(text, HasSubstr("\nend events=15 digest="));
}

}  // namespace
}  // namespace assay::trace
