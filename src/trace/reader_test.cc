#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include "assay/trace.h"

#include "base/file.h"
#include "support/temp_folder.h"
#include "support/trace_text.h"

namespace assay::trace {
namespace {

using assay::testing::ReadAll;
using assay::testing::Sealed;
using ::testing::HasSubstr;

constexpr std::string_view kSmall =
    "assay-trace 2\n"
    "meta backend cpu\n"
    "buffer #0 size=64 kind=weight label=\"a \\x0a b\" digest=0f\n"
    "buffer #1 size=64 kind=host\n"
    "write #1[0,64)\n"
    "kernel k0 name=add digest=5c1f workgroup=64,1,1 spec=a=1 shared=16\n"
    "begin\n"
    "dispatch k0 grid=1,2,3 shared=8 args=00ff r#0[0,64) rw#1[0,64)?\n"
    "barrier\n"
    "commit\n"
    "wait\n"
    "read #1[0,64)\n"
    "free #1\n"
    "refused off-thread: 2\n";

std::string Zstd(std::string_view text, int level = 1) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), level));
  return out;
}

// The error that refuses `text`; fails the test when it is read.
Error Refused(std::string_view text, const ReaderLimits& limits = {}) {
  Result<std::vector<Event>> events = ReadAll(text, limits);
  if (events) {
    ADD_FAILURE() << "Taken for whole:\n" << text;
    return {ErrorCode::kInternal, "", ""};
  }
  return std::move(events).error();
}

TEST(TraceReaderTest, T12_ReadsAWholeTrace) {
  const std::string text = Sealed(std::string(kSmall));
  auto reader = TraceReader::FromMemory(text, "small.trace").value();
  EXPECT_EQ(reader->version(), 2);
  EXPECT_EQ(reader->name(), "small.trace");
  std::string lines = "assay-trace 2\n";
  uint64_t number = 1;
  for (;;) {
    const auto event = reader->Next();
    ASSERT_TRUE(event) << event.error().message();
    if (!*event) break;
    EXPECT_EQ(reader->line_number(), ++number);
    EXPECT_EQ(reader->line(), FormatEvent(**event));
    lines += std::string(reader->line()) + "\n";
  }
  EXPECT_EQ(lines, kSmall);
  EXPECT_EQ(reader->refusals(), std::vector({RefusedEvent{Refusal::kOffThread, 2}}));
  EXPECT_EQ(reader->Next().value(), std::nullopt);
}

TEST(TraceReaderTest, T12_AFileCutAtAnyByteIsRefused) {
  const std::string text = Sealed(std::string(kSmall));
  for (size_t length = 0; length < text.size(); ++length) {
    const Error error = Refused(std::string_view(text).substr(0, length));
    EXPECT_EQ(error.code(), ErrorCode::kFormat) << length;
    EXPECT_THAT(error.message(), HasSubstr("line ")) << length;
  }
}

TEST(TraceReaderTest, T12_AnyByteChangedIsRefused) {
  const std::string text = Sealed(std::string(kSmall));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string values(" \n\r\t#\"\\[])?019aefkxz");
    values += '\0';
    for (int bit = 0; bit < 8; ++bit) values += static_cast<char>(text[at] ^ 1 << bit);
    for (const char value : values) {
      if (text[at] == value) continue;
      std::string changed = text;
      changed[at] = value;
      ASSERT_FALSE(ReadAll(changed)) << "byte " << at << " to " << static_cast<int>(value);
    }
  }
}

TEST(TraceReaderTest, T12_AnyByteRemovedOrRepeatedIsRefused) {
  const std::string text = Sealed(std::string(kSmall));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string shorter = text;
    shorter.erase(at, 1);
    EXPECT_FALSE(ReadAll(shorter)) << at;
    std::string longer = text;
    longer.insert(at, 1, text[at]);
    EXPECT_FALSE(ReadAll(longer)) << at;
  }
}

TEST(TraceReaderTest, T12_AnyLineRemovedRepeatedOrSwappedIsRefused) {
  const std::string text = Sealed(std::string(kSmall));
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  const auto join = [](const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += part;
    return all;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> changed = lines;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(ReadAll(join(changed))) << lines[i];
    changed = lines;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
    EXPECT_FALSE(ReadAll(join(changed))) << lines[i];
    if (i + 1 == lines.size()) continue;
    changed = lines;
    std::swap(changed[i], changed[i + 1]);
    EXPECT_FALSE(ReadAll(join(changed))) << lines[i];
  }
}

TEST(TraceReaderTest, T12_AnErrorStays) {
  const std::string text = "assay-trace 2\nnonsense\n";
  auto reader = TraceReader::FromMemory(text, "x").value();
  const auto first = reader->Next();
  const auto second = reader->Next();
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(first.error().message(), second.error().message());
}

struct BadTrace {
  std::string text;
  std::string message;
};

TEST(TraceReaderTest, T12_RefusesABadFirstOrLastLine) {
  const std::string digest(32, '0');
  const std::vector<BadTrace> cases = {
      {"", "\"test\", line 1: The file is empty."},
      {"\n", "line 1, column 1: The file is not a trace"},
      {"GGUF\n", "line 1, column 1: The file is not a trace"},
      {"assay-trace\n", "not a trace"},
      {"assay-trace 2", "cut short"},
      {"assay-trace 2\r\n", "line 1, column 14: The line should end here, but found a carriage"},
      {"assay-trace 02\n", "superfluous 0"},
      {"assay-trace +2\n", "Expected a number"},
      {"assay-trace 2\n", "line 2: The file is cut short: it has no end line."},
      {"assay-trace 2\nend\n", "line 2, column 1: Expected \"end events=\""},
      {"assay-trace 2\nend events=1\n", "Expected \" digest=\""},
      {"assay-trace 2\nend events=01 digest=" + digest + "\n", "superfluous 0"},
      {"assay-trace 2\nend events=1 digest=" + digest + " \n", "should end here"},
      {"assay-trace 2\nend events=2 digest=" + digest + "\n",
       "line 2: The end line counts 2 lines before it, but there are 1."},
      {"assay-trace 2\nend events=1 digest=" + digest + "\n", "The end line says digest 0000"},
      {Sealed("assay-trace 2\n") + "\n", "line 3: Something stands behind the end line"},
      {Sealed("assay-trace 2\n") + "x", "Something stands behind the end line"},
      {Sealed("assay-trace 2\n") + Sealed("assay-trace 2\n"), "line 3: A second trace begins here"},
      {"assay-trace 2\nmeta a b\nassay-trace 2\n",
       "line 3: A second trace begins here: the file is torn"},
  };
  for (const BadTrace& bad : cases) {
    const Error error = Refused(bad.text);
    EXPECT_EQ(error.code(), ErrorCode::kFormat) << bad.text;
    EXPECT_EQ(error.subject(), "test");
    EXPECT_THAT(error.message(), HasSubstr(bad.message)) << bad.text;
  }
}

TEST(TraceReaderTest, T8_OtherVersionsAreUnsupported) {
  for (const std::string_view version :
       {"0", "3", "18446744073709551615", "99999999999999999999"}) {
    const Error error = Refused(Sealed("assay-trace " + std::string(version) + "\n"));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << version;
    EXPECT_THAT(error.message(), HasSubstr("versions 1 and 2 can be read")) << version;
  }
}

TEST(TraceReaderTest, T8_Version1IsRead) {
  auto text = Sealed("assay-trace 1\nbuffer #1 size=1 kind=kv\nbuffer #0 size=1 kind=kv\n");
  auto reader = TraceReader::FromMemory(text, "x").value();
  EXPECT_EQ(reader->version(), 1);
  EXPECT_EQ(ReadAll(reader.get()).value().size(), 2U);
}

TEST(TraceReaderTest, T12_RefusesLinesThatDoNotGoTogether) {
  const std::string buffer = "buffer #0 size=64 kind=kv\n";
  const std::string kernel = "kernel k0 name=a digest=0 workgroup=1,1,1\n";
  const std::vector<BadTrace> cases = {
      {buffer + "meta a b\n", "line 3: A meta line stands behind the other events."},
      {"meta b x\nmeta a x\n", "The meta key \"a\" stands behind \"b\""},
      {"meta a x\nmeta a x\n", "The meta key \"a\" stands behind \"a\""},
      {buffer + buffer, "Buffer #0 is declared a second time."},
      {kernel + kernel, "Kernel k0 is declared a second time."},
      {"buffer #268435456 size=1 kind=kv\n", "largest number that is read (268435455)"},
      {"kernel k268435456 name=a digest=0 workgroup=1,1,1\n", "largest number that is read"},
      {"free #0\n" + buffer, "line 2: Buffer #0 is used before a line declares it."},
      {"write #0[0,1)\n", "Buffer #0 is used before"},
      {"read #0[0,1)\n", "Buffer #0 is used before"},
      {buffer + "begin\ndispatch k0 grid=1,1,1\n", "Kernel k0 is used before"},
      {kernel + "begin\ndispatch k0 grid=1,1,1 r#0[0,1)\n", "Buffer #0 is used before"},
      {"begin\nbegin\n", "before the one that is open was committed"},
      {"commit\n", "A commit line stands outside begin and commit."},
      {"barrier\n", "A barrier line stands outside"},
      {kernel + "dispatch k0 grid=1,1,1\n", "A dispatch line stands outside"},
      {"begin\nwait\n", "A wait line stands between begin and commit"},
      {"begin\nmeta a b\n", "A meta line stands behind"},
      {"begin\n" + buffer, "A buffer line stands between"},
      {"begin\n" + kernel, "A kernel line stands between"},
      {buffer + "begin\nfree #0\n", "A free line stands between"},
      {buffer + "begin\nwrite #0[0,1)\n", "A write line stands between"},
      {buffer + "begin\nread #0[0,1)\n", "A read line stands between"},
      {"begin\nrefused stale-job: 1\n", "A refused line stands between"},
      {"begin\n", "ends inside a command buffer"},
      {"refused stale-job: 1\nrefused off-thread: 1\n", "off-thread stands behind stale-job"},
      {"refused stale-job: 1\nrefused stale-job: 1\n", "stale-job stands behind stale-job"},
      {"refused stale-job: 1\nwait\n", "stands behind the refusals"},
      {"read #?[0,1)\n", "uses #? but holds no refused line"},
  };
  for (const BadTrace& bad : cases) {
    const Error error = Refused(Sealed("assay-trace 2\n" + bad.text));
    EXPECT_EQ(error.code(), ErrorCode::kFormat) << bad.text;
    EXPECT_THAT(error.message(), HasSubstr(bad.message)) << bad.text;
  }
}

TEST(TraceReaderTest, T12_SaysLineAndColumn) {
  const Error error = Refused(Sealed("assay-trace 2\nwait\nbuffer #0 size=x kind=kv\n"));
  EXPECT_EQ(error.message(),
            "\"test\", line 3, column 16: Expected a number here, but found \"x kind=kv\".");
}

TEST(TraceReaderTest, T12_LinesUpToTheLimitAreRead) {
  const std::string head = "meta a \"";
  const auto text = [&](size_t line_bytes) {
    return Sealed("assay-trace 2\n" + head + std::string(line_bytes - head.size() - 1, ' ') +
                  "\"\n");
  };
  EXPECT_TRUE(ReadAll(text(200), {.max_line_bytes = 200}));
  EXPECT_THAT(Refused(text(201), {.max_line_bytes = 200}).message(),
              HasSubstr("line 2: The line is longer than the limit (200 bytes)"));
  EXPECT_TRUE(ReadAll(text(1 << 20)));
  EXPECT_THAT(Refused(text((1 << 20) + 1)).message(), HasSubstr("longer than the limit (1048576"));
  // No newline ever comes.
  EXPECT_THAT(Refused("assay-trace 2\n" + std::string(3 << 20, 'x')).message(),
              HasSubstr("longer than the limit"));
}

TEST(TraceReaderTest, T12_TextPastTheLimitIsRefused) {
  std::string lines = "assay-trace 2\n";
  for (int i = 0; i < 1000; ++i) lines += "wait\n";
  const std::string text = Sealed(lines);
  EXPECT_TRUE(ReadAll(text, {.max_bytes = text.size()}));
  EXPECT_THAT(Refused(text, {.max_bytes = text.size() - 1}).message(),
              HasSubstr("The text is longer than the limit"));
}

TEST(TraceReaderTest, T12_LinesAcrossBlocksAreWhole) {
  // Blocks of the reader end inside lines of every length.
  std::string lines = "assay-trace 2\n";
  for (size_t i = 0; lines.size() < (size_t{5} << 20); ++i) {
    lines += "buffer #" + std::to_string(i) + " size=1 kind=kv label=\"" +
             std::string(1 + i * 7919 % 5000, 'x') + "\"\n";
  }
  const std::string text = Sealed(lines);
  EXPECT_TRUE(ReadAll(text));
  EXPECT_TRUE(ReadAll(Zstd(text)));
}

TEST(TraceReaderTest, T13_CompressedTextIsToldByContent) {
  const std::string text = Sealed(std::string(kSmall));
  EXPECT_EQ(ReadAll(Zstd(text)).value(), ReadAll(text).value());
  EXPECT_EQ(ReadAll(Zstd(text, 19)).value(), ReadAll(text).value());
  // Two frames are one text.
  EXPECT_TRUE(ReadAll(Zstd(text.substr(0, 100)) + Zstd(text.substr(100))));
}

TEST(TraceReaderTest, T12_CompressedDataCutAtAnyByteIsRefused) {
  const std::string data = Zstd(Sealed(std::string(kSmall)));
  for (size_t length = 0; length < data.size(); ++length) {
    EXPECT_FALSE(ReadAll(std::string_view(data).substr(0, length))) << length;
  }
  EXPECT_THAT(Refused(std::string_view(data).substr(0, data.size() - 1)).message(),
              HasSubstr("cut short"));
}

TEST(TraceReaderTest, T12_CompressedDataChangedIsRefusedOrTheSameText) {
  // A few bits of a frame's header, a hint of the window's size for one, do not change the text.
  const std::string text = Sealed(std::string(kSmall));
  const std::vector<Event> events = ReadAll(text).value();
  const std::string data = Zstd(text);
  size_t refused = 0;
  for (size_t at = 0; at < data.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = data;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      const auto read = ReadAll(changed);
      if (read) {
        EXPECT_EQ(*read, events) << at;
      }
      refused += read ? 0 : 1;
    }
  }
  EXPECT_GT(refused, data.size() * 8 - 8);
}

TEST(TraceReaderTest, T12_GarbageBehindCompressedDataIsRefused) {
  const std::string data = Zstd(Sealed(std::string(kSmall)));
  EXPECT_THAT(Refused(data + "garbage").message(), HasSubstr("compressed data"));
  EXPECT_THAT(Refused(data + Zstd("x\n")).message(), HasSubstr("behind the end line"));
}

TEST(TraceReaderTest, T12_ABombStopsAtTheLimits) {
  // 64 MiB of zeros in a few kilobytes: one line that never ends.
  const std::string zeros = Zstd(std::string(size_t{1} << 26, '\0'));
  EXPECT_THAT(Refused(zeros).message(), HasSubstr("longer than the limit (1048576 bytes)"));
  std::string waits = "assay-trace 2\n";
  for (int i = 0; i < (1 << 20); ++i) waits += "wait\n";
  EXPECT_THAT(Refused(Zstd(waits), {.max_bytes = 1 << 20}).message(),
              HasSubstr("The text is longer than the limit"));
}

TEST(TraceReaderTest, T12_AWindowAboveTheLimitIsRefused) {
  // A frame header that asks for a window of 2^41 bytes, and one raw block.
  const std::string data("\x28\xB5\x2F\xFD\x00\xF8\x09\x00\x00x", 10);
  EXPECT_THAT(Refused(data).message(), HasSubstr("compressed data of \"test\" is damaged"));
}

TEST(TraceReaderTest, T13_ZstdFramesToBeSkippedMayStandBeforeAndBetween) {
  const std::string text = Sealed(std::string(kSmall));
  for (const char low : {'\x50', '\x5f'}) {
    const std::string skipped = low + std::string("\x2a\x4d\x18\x03\0\0\0abc", 10);
    EXPECT_EQ(ReadAll(skipped + Zstd(text)).value(), ReadAll(text).value());
    EXPECT_EQ(ReadAll(skipped + Zstd(text.substr(0, 20)) + skipped + Zstd(text.substr(20))).value(),
              ReadAll(text).value());
  }
  EXPECT_THAT(Refused("\x60\x2a\x4d\x18\n").message(), HasSubstr("not a trace"));
}

class TraceFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
};

TEST_F(TraceFileTest, ReadsFilesPlainAndCompressed) {
  const std::string text = Sealed(std::string(kSmall));
  ASSERT_TRUE(WriteFile(Path("a.trace"), text));
  ASSERT_TRUE(WriteFile(Path("b"), Zstd(text)));
  EXPECT_EQ(assay::testing::ReadAllOf(Path("a.trace")).value(), ReadAll(text).value());
  EXPECT_EQ(assay::testing::ReadAllOf(Path("b")).value(), ReadAll(text).value());
}

TEST_F(TraceFileTest, SaysWhatCannotBeOpened) {
  const auto missing = TraceReader::Open(Path("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("none"));
  const auto folder = TraceReader::Open(folder_.string());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), ErrorCode::kIo);
}

TEST_F(TraceFileTest, SealAddsTheEndLineOrReplacesIt) {
  const std::string sealed = Sealed(std::string(kSmall));
  const std::string body(kSmall);
  for (const std::string& before :
       {body, body.substr(0, body.size() - 1), body + "end", body + "end\n",
        body + "end events=? digest=?\n", body + "end events=1 digest=00", sealed}) {
    ASSERT_TRUE(WriteFile(Path("a"), before));
    const Status status = Seal(Path("a"));
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_EQ(ReadFile(Path("a")).value(), sealed);
  }
}

TEST_F(TraceFileTest, SealKeepsCompression) {
  ASSERT_TRUE(WriteFile(Path("a.zst"), Zstd(kSmall)));
  ASSERT_TRUE(Seal(Path("a.zst")));
  EXPECT_EQ(ReadFile(Path("a.zst")).value().substr(0, 4), "\x28\xB5\x2F\xFD");
  EXPECT_TRUE(assay::testing::ReadAllOf(Path("a.zst")));
}

TEST_F(TraceFileTest, SealRefusesWhatIsWrongAndLeavesTheFile) {
  const std::vector<BadTrace> cases = {
      {"", "empty"},
      {"assay-trace 3\n", "version 3"},
      {"assay-trace 2\nnonsense\n", "line 2, column 1"},
      {"assay-trace 2\nbegin\n", "ends inside a command buffer"},
      {"assay-trace 2\nread #0[0,1)\n", "used before"},
      {"assay-trace 2\nend\nwait\n", "behind the end line"},
      {"assay-trace 2\nwait\r\n", "carriage return"},
      {Sealed("assay-trace 2\n") + Sealed("assay-trace 2\n"), "torn"},
  };
  for (const BadTrace& bad : cases) {
    ASSERT_TRUE(WriteFile(Path("a"), bad.text));
    const Status status = Seal(Path("a"));
    ASSERT_FALSE(status) << bad.text;
    EXPECT_THAT(status.error().message(), HasSubstr(bad.message));
    EXPECT_EQ(ReadFile(Path("a")).value(), bad.text);
  }
  EXPECT_EQ(Seal(Path("none")).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace assay::trace
