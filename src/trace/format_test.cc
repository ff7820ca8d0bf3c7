#include "trace/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

namespace assay::trace {
namespace {

using testing::HasSubstr;

struct Sample {
  Event event;
  std::string line;
};

// One of each event, and of each optional field.
std::vector<Sample> Samples() {
  const std::vector<std::byte> args = {std::byte{0x00}, std::byte{0x0f}, std::byte{0xab}};
  return {
      {MetaEvent{"backend", "cpu"}, "meta backend cpu"},
      {MetaEvent{"note", "two words"}, "meta note \"two words\""},
      {MetaEvent{"empty", ""}, "meta empty \"\""},
      {BufferEvent{BufferId(0), 524288, BufferKind::kWeight, "blk.0.attn_q.weight", ""},
       "buffer #0 size=524288 kind=weight label=\"blk.0.attn_q.weight\""},
      {BufferEvent{BufferId(12), 1, BufferKind::kOther, "", "00ff"},
       "buffer #12 size=1 kind=other digest=00ff"},
      {FreeEvent{BufferId(7)}, "free #7"},
      {KernelEvent{KernelId(0), "rms_norm_f32", "5c1f", {256, 1, 1}, "", 0},
       "kernel k0 name=rms_norm_f32 digest=5c1f workgroup=256,1,1"},
      {KernelEvent{KernelId(3), "odd name", "0", {1, 2, 3}, "a=1,b=2", 4096},
       "kernel k3 name=\"odd name\" digest=0 workgroup=1,2,3 spec=a=1,b=2 shared=4096"},
      {BeginEvent{}, "begin"},
      {DispatchEvent{KernelId(0), {1, 1, 1}, 0, {}, {}}, "dispatch k0 grid=1,1,1"},
      {DispatchEvent{KernelId(1),
                     {4294967295, 2, 3},
                     16,
                     args,
                     {{Access::kRead, BufferId(0), {0, 1024}, true},
                      {Access::kWrite, kUnnamedBuffer, {5, 5}, true},
                      {Access::kReadWrite, BufferId(10), {99, 18446744073709551615U}, false}}},
       "dispatch k1 grid=4294967295,2,3 shared=16 args=000fab r#0[0,1024) w#?[5,5) "
       "rw#10[99,18446744073709551615)?"},
      {BarrierEvent{}, "barrier"},
      {CommitEvent{}, "commit"},
      {WaitEvent{}, "wait"},
      {HostWriteEvent{BufferId(1), {0, 8}}, "write #1[0,8)"},
      {HostReadEvent{kUnnamedBuffer, {8, 8}}, "read #?[8,8)"},
      {RefusedEvent{Refusal::kOffThread, 2}, "refused off-thread: 2"},
      {RefusedEvent{Refusal::kOutsideJob, 1}, "refused outside-job: 1"},
      {RefusedEvent{Refusal::kNestedLoad, 1}, "refused nested-load: 1"},
      {RefusedEvent{Refusal::kStaleJob, 18446744073709551615U},
       "refused stale-job: 18446744073709551615"},
  };
}

TEST(FormatEventTest, T13_EachEventIsTheDocumentedLine) {
  for (const Sample& sample : Samples()) EXPECT_EQ(FormatEvent(sample.event), sample.line);
}

TEST(ParseEventTest, T13_ReadsWhatIsWritten) {
  for (const Sample& sample : Samples()) {
    const Result<Event> event = ParseEvent(sample.line);
    ASSERT_TRUE(event) << sample.line << ": " << event.error().message();
    EXPECT_EQ(*event, sample.event) << sample.line;
  }
}

TEST(FormatEventTest, DecimalsHaveTheirDigitsAtEveryLength) {
  std::vector<uint64_t> values = {0, UINT64_MAX};
  for (uint64_t power = 1;; power *= 10) {
    values.insert(values.end(), {power - 1, power, power + 1, power * 9});
    if (power > UINT64_MAX / 10) break;
  }
  for (unsigned shift = 0; shift < 64; ++shift) {
    values.insert(values.end(), {(uint64_t{1} << shift) - 1, uint64_t{1} << shift});
  }
  for (const uint64_t value : values) {
    std::array<char, 20> text;
    const std::string_view written(text.data(), PutDecimal(text.data(), value));
    EXPECT_EQ(written, std::to_string(value));
  }
}

struct BadLine {
  std::string line;
  size_t column;
  std::string message;
};

TEST(ParseEventTest, T12_RefusesEveryOtherFormAndSaysWhere) {
  const std::vector<BadLine> cases = {
      {"", 1, "name of an event"},
      {"nothing", 1, "name of an event"},
      {" begin", 1, "name of an event"},
      {"Begin", 1, "name of an event"},
      {"end events=1 digest=00", 1, "name of an event"},
      {"begin ", 6, "should end here"},
      {"begin\r", 6, "carriage return"},
      {std::string("begin\0", 6), 6, "\\x00"},
      {"wait x", 5, "should end here"},
      {"meta", 5, "Expected \" \""},
      {"meta  x", 6, "Expected a key"},
      {"meta Key x", 6, "Expected a key"},
      {"meta key", 9, "Expected \" \""},
      {"meta key ", 10, "Expected a word"},
      {"meta key two words", 13, "should end here"},
      {"meta key \"word\"", 10, "without quotes"},
      {"buffer 0 size=1 kind=kv", 8, "Expected \"#\""},
      {"buffer #00 size=1 kind=kv", 9, "superfluous 0"},
      {"buffer #+1 size=1 kind=kv", 9, "Expected a number"},
      {"buffer #? size=1 kind=kv", 9, "Expected a number"},
      {"buffer #18446744073709551615 size=1 kind=kv", 9, "larger than its limit"},
      {"buffer #0 size=18446744073709551616 kind=kv", 16, "larger than its limit"},
      {"buffer #0 size=-1 kind=kv", 16, "Expected a number"},
      {"buffer #0  size=1 kind=kv", 10, "Expected \" size=\""},
      {"buffer #0 kind=kv size=1", 10, "Expected \" size=\""},
      {"buffer #0 size=1 kind=", 23, "kind of a buffer"},
      {"buffer #0 size=1 kind=vk", 23, "kind of a buffer"},
      {"buffer #0 size=1 kind=kv label=x", 32, "quoted string must begin"},
      {"buffer #0 size=1 kind=kv label=\"\"", 32, "empty label"},
      {"buffer #0 size=1 kind=kv label=\"a", 34, "does not end"},
      {"buffer #0 size=1 kind=kv digest=", 33, "lower-case hex"},
      {"buffer #0 size=1 kind=kv digest=AB", 33, "lower-case hex"},
      {"buffer #0 size=1 kind=kv digest=ab label=\"x\"", 35, "should end here"},
      {"free #?", 7, "Expected a number"},
      {"free #1 ", 8, "should end here"},
      {"kernel 0 name=a digest=0 workgroup=1,1,1", 8, "Expected \"k\""},
      {"kernel k4294967296 name=a digest=0 workgroup=1,1,1", 9, "larger than its limit"},
      {"kernel k0 name= digest=0 workgroup=1,1,1", 16, "Expected a word"},
      {"kernel k0 name=a workgroup=1,1,1", 17, "Expected \" digest=\""},
      {"kernel k0 name=a digest=0 workgroup=1,1", 40, "Expected \",\""},
      {"kernel k0 name=a digest=0 workgroup=1,1,4294967296", 41, "larger than its limit"},
      {"kernel k0 name=a digest=0 workgroup=1,1,1 spec=\"\"", 48, "empty specialisation"},
      {"kernel k0 name=a digest=0 workgroup=1,1,1 shared=0", 50, "left out"},
      {"dispatch k0", 12, "Expected \" grid=\""},
      {"dispatch k0 grid=1,1,1 shared=0", 31, "left out"},
      {"dispatch k0 grid=1,1,1 args=", 29, "pairs"},
      {"dispatch k0 grid=1,1,1 args=abc", 32, "odd"},
      {"dispatch k0 grid=1,1,1 args=AB", 29, "pairs"},
      {"dispatch k0 grid=1,1,1 ", 24, "an access"},
      {"dispatch k0 grid=1,1,1 x#0[0,1)", 24, "an access"},
      {"dispatch k0 grid=1,1,1 wr#0[0,1)", 25, "Expected \"#\""},
      {"dispatch k0 grid=1,1,1 r#0[0,1]", 31, "Expected \")\""},
      {"dispatch k0 grid=1,1,1 r#0[2,1)", 27, "begins (2) behind its end (1)"},
      {"dispatch k0 grid=1,1,1 r#0[0,1)??", 33, "should end here"},
      {"write #0", 9, "Expected \"[\""},
      {"read #0(0,1)", 8, "Expected \"[\""},
      {"refused: 1", 8, "Expected \" \""},
      {"refused because: 1", 9, "reason of a refusal"},
      {"refused off-thread 1", 9, "reason of a refusal"},
      {"refused off-thread: 0", 21, "left out"},
      {"refused off-thread: 01", 21, "superfluous 0"},
  };
  for (const BadLine& bad : cases) {
    const Result<Event> event = ParseEvent(bad.line);
    ASSERT_FALSE(event) << bad.line;
    EXPECT_EQ(event.error().code(), ErrorCode::kFormat);
    EXPECT_THAT(event.error().message(), HasSubstr("Column " + std::to_string(bad.column) + ":"))
        << bad.line;
    EXPECT_THAT(event.error().message(), HasSubstr(bad.message)) << bad.line;
  }
}

TEST(RefusalTest, EveryReasonHasAWordThatReadsBack) {
  for (size_t i = 0; i < kRefusalCount; ++i) {
    const auto reason = static_cast<Refusal>(i);
    EXPECT_EQ(ParseRefusal(RefusalName(reason)), reason);
  }
  EXPECT_EQ(ParseRefusal("stale"), std::nullopt);
}

}  // namespace
}  // namespace assay::trace
