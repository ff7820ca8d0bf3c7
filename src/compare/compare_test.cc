#include "assay/compare.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

#include "base/file.h"
#include "compare/trace_text_for_test.h"
#include "support/temp_folder.h"

namespace assay::compare {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kProgram = R"(
meta backend cpu
buffer #0 size=4096 kind=weight label="w"
buffer #1 size=1024 kind=scratch
buffer #2 size=1024 kind=scratch
kernel k0 name=copy digest=aa workgroup=64,1,1
begin
dispatch k0 grid=1,1,1 args=0000 w#1[0,64) r#0[0,64)
barrier
dispatch k0 grid=2,1,1 args=0000 w#2[0,64) r#1[0,64)
commit
wait
begin
dispatch k0 grid=3,1,1 args=0000 w#1[0,64) r#2[0,64)
commit
wait
read #1[0,64)
)";

LineList Program() { return SplitLines(kProgram); }

Report CompareLines(const LineList& a, const LineList& b, int version_a = 2, int version_b = 2) {
  return CompareTraceTexts(Seal(a, version_a), Seal(b, version_b));
}

// The index of the first line that begins with `beginning`.
size_t LineOf(const LineList& lines, std::string_view beginning) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with(beginning)) return i;
  }
  ADD_FAILURE() << "no line " << beginning;
  return 0;
}

LineList Replaced(LineList lines, std::string_view beginning, std::string with) {
  lines[LineOf(lines, beginning)] = std::move(with);
  return lines;
}

LineList Renamed(const LineList& lines,
                 const std::vector<std::pair<std::string, std::string>>& names) {
  LineList renamed = lines;
  for (std::string& line : renamed) {
    std::string out;
    for (size_t i = 0; i < line.size();) {
      const auto hit = std::ranges::find_if(names, [&](const auto& name) {
        return std::string_view(line).substr(i).starts_with(name.first) &&
               !(i + name.first.size() < line.size() && std::isdigit(line[i + name.first.size()]));
      });
      if (hit == names.end()) {
        out += line[i++];
      } else {
        out += hit->second;
        i += hit->first.size();
      }
    }
    line = out;
  }
  return renamed;
}

TEST(CompareTest, C1_SameBytesAreIdentical) {
  const Report report = CompareLines(Program(), Program());
  EXPECT_EQ(report.verdict, Verdict::kIdentical);
  EXPECT_EQ(report.lines_a, Program().size() + 1);
  EXPECT_THAT(report.differences, IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST(CompareTest, C1_WhatIsNotWholeIsRefusedAndNamed) {
  const std::string whole = Seal(Program());
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_EQ(CompareTraceTexts(whole, cut).verdict, Verdict::kRefused) << size;
    EXPECT_EQ(CompareTraceTexts(cut, cut).verdict, Verdict::kRefused) << size;
  }
  const Report report = CompareTraceTexts(whole, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(report.reason, HasSubstr("\"B\", line 18: The file is cut short"));
  EXPECT_THAT(CompareTraceTexts(whole.substr(0, 100), whole).reason, HasSubstr("\"A\", line "));
}

TEST(CompareTest, C1_AnyChangedByteIsRefused) {
  const std::string whole = Seal(Program());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const Report report = CompareTraceTexts(changed, changed);
    EXPECT_EQ(report.verdict, Verdict::kRefused) << at;
    EXPECT_THAT(report.reason, HasSubstr("\"A\"")) << at;
  }
}

TEST(CompareTest, C1_TornAndTrailingTextIsRefused) {
  const std::string whole = Seal(Program());
  for (const std::string& torn : {whole + whole, whole + "\n", whole + "wait\n"}) {
    EXPECT_EQ(CompareTraceTexts(torn, torn).verdict, Verdict::kRefused);
  }
}

TEST(CompareTest, C5_LinesThatOnlyLookLikeBuffersAreNotReadForEver) {
  for (const std::string_view line : {"buffer # size=%", "buffer #0 size=%"}) {
    LineList a = Program(), b = Program();
    a.emplace_back(line);
    b.emplace_back(line);
    a.back().back() = '1';
    b.back().back() = '2';
    const Verdict verdict = CompareLines(a, b).verdict;
    EXPECT_TRUE(verdict == Verdict::kDifferent || verdict == Verdict::kRefused) << line;
  }
}

TEST(CompareTest, C1_SealedTextThatIsNoTraceIsRefused) {
  const LineList program = Program();
  const auto with = [&program](std::string_view beginning, const std::string& line) {
    return Replaced(program, beginning, line);
  };
  const auto plus = [&program](const std::string& line) {
    LineList lines = program;
    lines.push_back(line);
    return lines;
  };
  LineList windows = program, twice = program;
  for (std::string& line : windows) line += '\r';
  twice.push_back("assay-trace 2");
  twice.insert(twice.end(), program.begin(), program.end());
  LineList no_begin = program, no_commit = program;
  no_begin.erase(no_begin.begin() + static_cast<ptrdiff_t>(LineOf(program, "begin")));
  no_commit.erase(no_commit.begin() + static_cast<ptrdiff_t>(LineOf(program, "commit")));
  const LineList cases[] = {
      {"hello world"},
      {std::string("\0\xff", 2)},
      windows,
      twice,
      no_begin,
      no_commit,
      with("read #1", "read #9[0,64)"),
      with("read #1", "read #?[0,64)"),
      with("buffer #2", "buffer #1 size=1024 kind=scratch"),
      plus("begin"),
      plus("submit q1"),
      plus("Refused off-thread: 2"),
      plus("refused  off-thread: 2"),
      plus(" refused off-thread: 2"),
      plus("refused off-thread: 0"),
      plus(""),
  };
  for (const LineList& lines : cases) {
    const Report report = CompareLines(lines, lines);
    EXPECT_EQ(report.verdict, Verdict::kRefused) << lines.back();
    EXPECT_THAT(report.reason, HasSubstr("\"A\", line ")) << lines.back();
  }
}

TEST(CompareTest, C1_RefusedBuffersAreNoProof) {
  LineList lines = Program();
  lines.push_back("refused off-thread: 2");
  const Report report = CompareLines(lines, lines);
  EXPECT_EQ(report.verdict, Verdict::kRefused);
  EXPECT_THAT(report.reason, HasSubstr("off-thread: 2"));
  EXPECT_EQ(CompareLines(Program(), lines).verdict, Verdict::kRefused);
  EXPECT_THAT(CompareLines(Program(), lines).reason, HasSubstr("\"B\""));
}

TEST(CompareTest, RefusedLineFarFromTheEndIsSeen) {
  // More text behind it than any edge that is looked at apart.
  LineList lines = Program();
  lines.push_back("refused off-thread: 2");
  for (int i = 0; i < 100000; ++i) lines.push_back("wait");
  EXPECT_EQ(CompareLines(lines, lines).verdict, Verdict::kRefused);
}

TEST(CompareTest, WordRefusedInALabelIsNoRefusal) {
  LineList lines = Program();
  lines[1] = "buffer #0 size=4096 kind=weight label=\"refused \"";
  EXPECT_EQ(CompareLines(lines, lines).verdict, Verdict::kIdentical);
}

TEST(CompareTest, C1_MissingFileIsRefused) {
  const Report report = CompareTraces("/nonexistent/a.trace", "/nonexistent/b.trace");
  EXPECT_EQ(report.verdict, Verdict::kRefused);
  EXPECT_THAT(report.reason, HasSubstr("/nonexistent/a.trace"));
}

TEST(CompareTest, PlainAndCompressedFilesAreOneText) {
  const TempFolder temp;
  const std::filesystem::path& dir = temp.path();
  const auto write = [&](const char* name, uint64_t size) {
    const std::string path = (dir / name).string();
    auto writer = trace::TraceWriter::Create(path, {}).value();
    for (uint64_t i = 1; i <= 5000; ++i) {
      writer->BufferMade(i, {.size_bytes = i == 2500 ? size : i, .kind = BufferKind::kScratch});
    }
    EXPECT_TRUE(writer->Close());
    return path;
  };
  const std::string plain = write("a.trace", 1), compressed = write("a.trace.zst", 1);
  const std::string other = write("b.trace.zst", 2);
  EXPECT_EQ(CompareTraces(plain, compressed).verdict, Verdict::kIdentical);
  EXPECT_EQ(CompareTraces(compressed, compressed).verdict, Verdict::kIdentical);
  const Report report = CompareTraces(compressed, other);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  ASSERT_THAT(report.differences, SizeIs(1));
  EXPECT_EQ(report.differences[0].field, "size");
  std::string cut = ReadFile(compressed).value();
  cut.resize(cut.size() / 2);
  EXPECT_EQ(CompareTraceTexts(cut, cut).verdict, Verdict::kRefused);
  std::filesystem::remove_all(dir);
}

TEST(CompareTest, StopEndsTheComparison) {
  const std::string text = Seal(Program());
  const Report report = CompareTraceTexts(text, text, {.stop = [] { return true; }});
  EXPECT_EQ(report.verdict, Verdict::kRefused);
  EXPECT_THAT(report.reason, HasSubstr("stopped"));
}

TEST(CompareTest, StopEndsTheCheckOfTheLines) {
  // Counts how often a comparison asks; the last time it asks it is checking lines.
  const std::string text = Seal(Program());
  int asked = 0;
  EXPECT_EQ(CompareTraceTexts(text, text, {.stop = [&] { return ++asked < 0; }}).verdict,
            Verdict::kIdentical);
  const Report report =
      CompareTraceTexts(text, text, {.stop = [&, left = asked]() mutable { return --left == 0; }});
  EXPECT_EQ(report.verdict, Verdict::kRefused);
  EXPECT_THAT(report.reason, HasSubstr("stopped"));
}

// --- Versions ---

TEST(CompareTest, C2_MixedVersionsAreNeverIdentical) {
  const Report report = CompareLines(Program(), Program(), 1, 2);
  EXPECT_EQ(report.verdict, Verdict::kRenumbered);
  EXPECT_EQ(report.buffers, 3U);
  EXPECT_EQ(report.buffers_renumbered, 0U);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("A is version 1 and B is version 2")));
  EXPECT_EQ(CompareLines(Program(), Program(), 2, 1).verdict, Verdict::kRenumbered);
}

TEST(CompareTest, C2_BothOldAreIdenticalOnlyByBytes) {
  const Report same = CompareLines(Program(), Program(), 1, 1);
  EXPECT_EQ(same.verdict, Verdict::kIdentical);
  EXPECT_THAT(same.notes, ElementsAre(HasSubstr("luck of the schedule")));
  const LineList renamed = Renamed(Program(), {{"#1", "#2"}, {"#2", "#1"}});
  EXPECT_EQ(CompareLines(Program(), renamed, 1, 1).verdict, Verdict::kRenumbered);
  EXPECT_EQ(CompareLines(Program(), renamed, 1, 2).verdict, Verdict::kRenumbered);
}

TEST(CompareTest, C2_MixedVersionsDifferWhereTheyDiffer) {
  const LineList edited = Replaced(Program(), "dispatch k0 grid=2",
                                   "dispatch k0 grid=7,1,1 args=0000 "
                                   "w#2[0,64) r#1[0,64)");
  const Report report = CompareLines(Program(), edited, 1, 2);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  EXPECT_THAT(report.notes, SizeIs(1));
}

// --- Renumbering ---

TEST(CompareTest, C3_ConsistentRenumberingIsNamedAsSuch) {
  const Report report = CompareLines(Program(), Renamed(Program(), {{"#0", "#2"}, {"#2", "#0"}}));
  EXPECT_EQ(report.verdict, Verdict::kRenumbered);
  EXPECT_EQ(report.buffers, 3U);
  EXPECT_EQ(report.buffers_renumbered, 2U);
  EXPECT_THAT(report.differences, IsEmpty());
}

TEST(CompareTest, C3_OtherOrderOfMakingIsARenumbering) {
  LineList other = Renamed(Program(), {{"#0", "#1"}, {"#1", "#0"}});
  std::swap(other[1], other[2]);
  EXPECT_EQ(other[1], "buffer #0 size=1024 kind=scratch");
  const Report report = CompareLines(Program(), other);
  EXPECT_EQ(report.verdict, Verdict::kRenumbered);
  EXPECT_EQ(report.buffers_renumbered, 2U);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("another order")));
}

TEST(CompareTest, C3_OtherOrderOfTheSameNumbersIsADifference) {
  LineList other = Program();
  std::swap(other[1], other[2]);
  const Report report = CompareLines(Program(), other);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  EXPECT_THAT(report.differences, SizeIs(2));
  // Alike but for their numbers.
  LineList alike = Program();
  std::swap(alike[2], alike[3]);
  EXPECT_EQ(CompareLines(Program(), alike).verdict, Verdict::kDifferent);
  EXPECT_THAT(CompareLines(Program(), alike).differences, SizeIs(2));
}

TEST(CompareTest, C3_OtherOrderOfUnusedBuffersIsADifferenceThatIsShown) {
  const LineList a = {"buffer #0 size=8 kind=kv", "buffer #1 size=8 kind=kv"};
  const LineList b = {"buffer #1 size=8 kind=kv", "buffer #0 size=8 kind=kv"};
  const Report report = CompareLines(a, b);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  EXPECT_THAT(report.differences, SizeIs(2));
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST(CompareTest, C3_InconsistentMappingIsDifferent) {
  // #1 and #2 are alike; exchanging them in one dispatch only fits no mapping.
  const LineList edited = Replaced(Program(), "dispatch k0 grid=3",
                                   "dispatch k0 grid=3,1,1 args=0000 w#2[0,64) r#1[0,64)");
  EXPECT_EQ(CompareLines(Program(), edited).verdict, Verdict::kDifferent);
}

TEST(CompareTest, C3_MappingIsOneToOne) {
  // Both of A's buffers would have to become #1.
  const LineList edited =
      Replaced(Replaced(Program(), "dispatch k0 grid=2",
                        "dispatch k0 grid=2,1,1 args=0000 w#1[0,64) r#1[0,64)"),
               "dispatch k0 grid=3", "dispatch k0 grid=3,1,1 args=0000 w#1[0,64) r#1[0,64)");
  EXPECT_EQ(CompareLines(Program(), edited).verdict, Verdict::kDifferent);
  EXPECT_EQ(CompareLines(edited, Program()).verdict, Verdict::kDifferent);
}

TEST(CompareTest, C3_MappingIsOneToOneWithoutALaterConflict) {
  const LineList declared = {"buffer #0 size=8 kind=kv", "buffer #1 size=8 kind=kv", "wait"};
  LineList two = declared, one = declared;
  two.insert(two.end(), {"read #1[0,8)", "read #0[0,8)"});
  one.insert(one.end(), {"read #1[0,8)", "read #1[0,8)"});
  EXPECT_EQ(CompareLines(two, one).verdict, Verdict::kDifferent);
  EXPECT_EQ(CompareLines(one, two).verdict, Verdict::kDifferent);
  LineList exchanged = declared;
  exchanged.insert(exchanged.end(), {"read #0[0,8)", "read #1[0,8)"});
  EXPECT_EQ(CompareLines(two, exchanged).verdict, Verdict::kRenumbered);
}

TEST(CompareTest, C3_RenumberingExcusesNothingElse) {
  LineList base = Program();
  base.insert(base.begin() + 5, "kernel k1 name=move digest=bb workgroup=64,1,1");
  base.insert(base.begin() + 4, "buffer #9 size=64 kind=host label=\"unused\"");
  const auto renamed = [](const LineList& lines) {
    return Renamed(lines, {{"#1", "#2"}, {"#2", "#1"}});
  };
  EXPECT_EQ(CompareLines(base, renamed(base)).verdict, Verdict::kRenumbered);
  // Another kernel, and another size of a buffer that nothing uses.
  const LineList kernel =
      Replaced(base, "dispatch k0 grid=3", "dispatch k1 grid=3,1,1 args=0000 w#1[0,64) r#2[0,64)");
  EXPECT_EQ(CompareLines(base, renamed(kernel)).verdict, Verdict::kDifferent);
  const LineList size = Replaced(base, "buffer #9", "buffer #9 size=65 kind=host label=\"unused\"");
  EXPECT_EQ(CompareLines(base, renamed(size)).verdict, Verdict::kDifferent);
  EXPECT_EQ(CompareLines(renamed(size), base).verdict, Verdict::kDifferent);
}

TEST(CompareTest, C3_OrderOfOlderBuffersIsKept) {
  const LineList a = SplitLines(
      "buffer #0 size=1 kind=kv\nbuffer #1 size=2 kind=kv\nwait\n"
      "buffer #2 size=3 kind=kv\nwrite #0[0,1)\nwrite #1[0,1)\n");
  const LineList renumbered = SplitLines(
      "buffer #1 size=1 kind=kv\nbuffer #0 size=2 kind=kv\nwait\n"
      "buffer #2 size=3 kind=kv\nwrite #1[0,1)\nwrite #0[0,1)\n");
  LineList reordered = renumbered;
  std::swap(reordered[4], reordered[5]);
  EXPECT_EQ(CompareLines(a, renumbered).verdict, Verdict::kRenumbered);
  EXPECT_EQ(CompareLines(a, reordered).verdict, Verdict::kDifferent);
}

TEST(CompareTest, C3_UnusedBuffersKeepTheirNumberWhereTheyCan) {
  const LineList a = {"buffer #0 size=8 kind=kv", "buffer #1 size=8 kind=kv"};
  const LineList b = {"buffer #1 size=8 kind=kv", "buffer #2 size=8 kind=kv"};
  const Report report = CompareLines(a, b);
  EXPECT_EQ(report.verdict, Verdict::kRenumbered);
  EXPECT_EQ(report.buffers_renumbered, 1U);
}

TEST(CompareTest, C3_MappingKeepsSizeKindLabelAndDigest) {
  const LineList base = SplitLines(
      "buffer #0 size=64 kind=kv\nbuffer #1 size=64 kind=kv\n"
      "write #0[0,8)\nread #1[0,8)\n");
  // The same uses of exchanged numbers: a renumbering as long as the two are declared alike.
  const LineList swapped = Renamed(base, {{"#0", "#1"}, {"#1", "#0"}});
  EXPECT_EQ(CompareLines(base, swapped).verdict, Verdict::kRenumbered);
  for (const char* second : {"size=65 kind=kv", "size=64 kind=scratch",
                             "size=64 kind=kv label=\"x\"", "size=64 kind=kv digest=ab"}) {
    // Declared differently on the one side, the exchange is none.
    const LineList a = {base[0], std::string("buffer #1 ") + second, "begin", "commit", base[2],
                        base[3]};
    const LineList b = {base[0],         std::string("buffer #1 ") + second,
                        "begin",         "commit",
                        "write #1[0,8)", "read #0[0,8)"};
    EXPECT_EQ(CompareLines(a, b).verdict, Verdict::kDifferent) << second;
  }
}

TEST(CompareTest, C3_BuffersDeclaredAlikeAreToldApartByTheirUse) {
  const LineList a = SplitLines(
      "buffer #0 size=64 kind=kv\nbuffer #1 size=64 kind=kv\nbuffer #2 size=64 kind=kv\n"
      "wait\nread #0[0,8)\nread #1[0,16)\n");
  const LineList b = SplitLines(
      "buffer #0 size=64 kind=kv\nbuffer #1 size=64 kind=kv\nbuffer #2 size=64 kind=kv\n"
      "wait\nread #2[0,8)\nread #1[0,16)\n");
  const Report report = CompareLines(a, b);
  EXPECT_EQ(report.verdict, Verdict::kRenumbered);
  EXPECT_EQ(report.buffers_renumbered, 2U);
}

// --- Differences ---

TEST(CompareTest, C4_ChangedFieldIsNamedWithPlaceAndValues) {
  const LineList edited = Replaced(Program(), "dispatch k0 grid=2",
                                   "dispatch k0 grid=2,1,1 args=0001 w#2[0,64) r#1[0,64)");
  const Report report = CompareLines(Program(), edited);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  ASSERT_THAT(report.differences, SizeIs(1));
  const Difference& difference = report.differences[0];
  EXPECT_EQ(difference.kind, Difference::Kind::kChanged);
  EXPECT_EQ(difference.a.line, 10U);
  EXPECT_EQ(difference.a.command_buffer, 1U);
  EXPECT_EQ(difference.a.dispatch, 2U);
  EXPECT_EQ(difference.a.kernel, "copy");
  EXPECT_EQ(difference.b.line, 10U);
  EXPECT_EQ(difference.field, "args");
  EXPECT_EQ(difference.value_a, "0000");
  EXPECT_EQ(difference.value_b, "0001");
  EXPECT_EQ(report.counts.changed, 1U);
}

TEST(CompareTest, C4_EveryFieldHasItsName) {
  const struct {
    const char* a;
    const char* b;
    const char* field;
    const char* value_a;
    const char* value_b;
  } cases[] = {
      {"meta backend cpu", "meta backend gpu", "value of backend", "cpu", "gpu"},
      {"meta backend cpu", "meta driver cpu", "key", "backend", "driver"},
      {"buffer #0 size=4096 kind=weight label=\"w\"", "buffer #0 size=8192 kind=weight label=\"w\"",
       "size", "4096", "8192"},
      {"buffer #1 size=1024 kind=scratch", "buffer #1 size=1024 kind=kv", "kind", "scratch", "kv"},
      {"buffer #0 size=4096 kind=weight label=\"w\"", "buffer #0 size=4096 kind=weight label=\"v\"",
       "label", "w", "v"},
      {"buffer #1 size=1024 kind=scratch", "buffer #1 size=1024 kind=scratch digest=12", "digest",
       "none", "12"},
      {"kernel k0 name=copy", "kernel k0 name=move digest=aa workgroup=64,1,1", "name", "copy",
       "move"},
      {"kernel k0 name=copy", "kernel k0 name=copy digest=ab workgroup=64,1,1", "digest", "aa",
       "ab"},
      {"kernel k0 name=copy", "kernel k0 name=copy digest=aa workgroup=32,1,1", "workgroup",
       "64,1,1", "32,1,1"},
      {"kernel k0 name=copy", "kernel k0 name=copy digest=aa workgroup=64,1,1 spec=n=4", "spec",
       "none", "n=4"},
      {"kernel k0 name=copy", "kernel k0 name=copy digest=aa workgroup=64,1,1 shared=16", "shared",
       "0", "16"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,2,1 args=0000 w#1[0,64) r#0[0,64)", "grid",
       "1,1,1", "1,2,1"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 shared=8 args=0000 w#1[0,64) r#0[0,64)",
       "shared", "0", "8"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 w#1[0,64) r#0[0,64)", "args", "0000", "none"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 args=0000 w#2[0,64) r#0[0,64)",
       "binding 1 buffer", "#1", "#2"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 args=0000 w#1[0,64) r#0[0,32)",
       "binding 2 range", "[0,64)", "[0,32)"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 args=0000 rw#1[0,64) r#0[0,64)",
       "binding 1 access", "w", "rw"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 args=0000 w#1[0,64) r#0[0,64)?",
       "binding 2 exactness", "exact", "upper bound"},
      {"dispatch k0 grid=1", "dispatch k0 grid=1,1,1 args=0000 w#1[0,64)", "number of bindings",
       "2", "1"},
      {"read #1", "read #1[0,32)", "range", "[0,64)", "[0,32)"},
      {"read #1", "read #2[0,64)", "buffer", "#1", "#2"},
  };
  for (const auto& each : cases) {
    const LineList edited = Replaced(Program(), each.a, each.b);
    const Report report = CompareLines(Program(), edited);
    EXPECT_EQ(report.verdict, Verdict::kDifferent) << each.b;
    ASSERT_THAT(report.differences, SizeIs(1)) << each.b << "\n" << FormatText(report);
    EXPECT_EQ(report.differences[0].field, each.field) << each.b;
    EXPECT_EQ(report.differences[0].value_a, each.value_a) << each.b;
    EXPECT_EQ(report.differences[0].value_b, each.value_b) << each.b;
  }
}

TEST(CompareTest, C4_OtherKernelIsNamedByName) {
  LineList base = Program();
  base.insert(base.begin() + 5, "kernel k1 name=move digest=bb workgroup=64,1,1");
  const LineList edited =
      Replaced(base, "dispatch k0 grid=3", "dispatch k1 grid=3,1,1 args=0000 w#1[0,64) r#2[0,64)");
  const Report report = CompareLines(base, edited);
  ASSERT_THAT(report.differences, SizeIs(1));
  EXPECT_EQ(report.differences[0].field, "kernel");
  EXPECT_EQ(report.differences[0].value_a, "copy");
  EXPECT_EQ(report.differences[0].value_b, "move");
  EXPECT_EQ(report.differences[0].a.kernel, "copy");
  EXPECT_EQ(report.differences[0].b.kernel, "move");
}

TEST(CompareTest, C4_InsertedDispatchIsOneInsertion) {
  LineList longer = Program();
  longer.insert(longer.begin() + 8, "dispatch k0 grid=9,1,1 w#2[0,8) r#0[0,8)");
  const Report report = CompareLines(Program(), longer);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  ASSERT_THAT(report.differences, SizeIs(1));
  EXPECT_EQ(report.differences[0].kind, Difference::Kind::kOnlyInB);
  EXPECT_EQ(report.differences[0].b.line, 10U);
  EXPECT_EQ(report.differences[0].b.dispatch, 2U);
  EXPECT_EQ(report.differences[0].a.line, 0U);
  const Report reverse = CompareLines(longer, Program());
  ASSERT_THAT(reverse.differences, SizeIs(1));
  EXPECT_EQ(reverse.differences[0].kind, Difference::Kind::kOnlyInA);
}

TEST(CompareTest, C4_InsertedBufferDoesNotBlowUpTheRest) {
  // The numbers of all later buffers shift by one.
  LineList longer = Renamed(Program(), {{"#1", "#2"}, {"#2", "#3"}});
  longer.insert(longer.begin() + 2, "buffer #1 size=7 kind=host");
  const Report report = CompareLines(Program(), longer);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  ASSERT_THAT(report.differences, SizeIs(1));
  EXPECT_EQ(report.differences[0].b.text, "buffer #1 size=7 kind=host");
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("2 buffers have another number")));
}

TEST(CompareTest, C4_InsertedKernelDoesNotBlowUpTheRest) {
  LineList longer = Renamed(Program(), {{"k0", "k1"}});
  longer.insert(longer.begin() + 4, {"kernel k0 name=fill digest=cc workgroup=1,1,1", "begin",
                                     "dispatch k0 grid=1,1,1 w#1[0,4)", "commit"});
  const Report report = CompareLines(Program(), longer);
  EXPECT_EQ(report.counts.only_in_b, 4U);
  EXPECT_EQ(report.counts.changed, 0U);
  EXPECT_EQ(report.counts.only_in_a, 0U);
}

TEST(CompareTest, C4_ExchangedNumbersOfKernelsAreTheDifference) {
  LineList base = Program();
  base.insert(base.begin() + 5, "kernel k1 name=move digest=bb workgroup=64,1,1");
  base =
      Replaced(base, "dispatch k0 grid=3", "dispatch k1 grid=3,1,1 args=0000 w#1[0,64) r#2[0,64)");
  const LineList exchanged = Renamed(base, {{"k0", "k1"}, {"k1", "k0"}});
  const Report report = CompareLines(base, exchanged);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  EXPECT_EQ(report.counts.changed, 2U);
  ASSERT_THAT(report.differences, SizeIs(2));
  EXPECT_EQ(report.differences[0].field, "number");
  EXPECT_EQ(report.differences[0].value_a, "k0");
  EXPECT_EQ(report.differences[0].value_b, "k1");
  EXPECT_EQ(report.differences[0].a.line, 6U);
  EXPECT_EQ(report.differences[1].value_a, "k1");
  EXPECT_EQ(report.differences[1].b.line, 7U);
  // With other numbers of buffers besides, no renumbering excuses these either.
  const LineList both = Renamed(exchanged, {{"#2", "#7"}});
  EXPECT_EQ(CompareLines(base, both).counts.changed, 3U) << FormatText(CompareLines(base, both));
}

TEST(CompareTest, C4_ChangedDeclarationIsOneDifferenceHoweverOftenItIsUsed) {
  LineList lines = Program();
  for (int i = 0; i < 50; ++i) lines.push_back("read #0[0,8)");
  const LineList edited =
      Replaced(lines, "buffer #0", "buffer #0 size=8192 kind=kv label=\"other\"");
  const Report report = CompareLines(lines, edited);
  EXPECT_EQ(report.counts.changed, 1U);
  EXPECT_THAT(report.differences, SizeIs(1));
}

TEST(CompareTest, C4_UsesDecideWhichOfTheBuffersDeclaredAlikeIsWhich) {
  LineList a = Program();
  for (int i = 0; i < 20; ++i) a.push_back(fmt::format("read #{}[0,{})", 1 + i % 2, i + 1));
  a.push_back("read #1[0,999)");
  // #1 and #2 are made in the other order, and the last use names the other one.
  LineList b = a;
  std::swap(b[2], b[3]);
  b.back() = "read #2[0,999)";
  const Report report = CompareLines(a, b);
  EXPECT_EQ(report.counts.changed, 1U);
  EXPECT_EQ(report.counts.only_in_a + report.counts.only_in_b, 2U);
  ASSERT_THAT(report.differences, SizeIs(3));
  EXPECT_EQ(report.differences[2].field, "buffer");
  EXPECT_EQ(report.differences[2].value_a, "#1");
  EXPECT_EQ(report.differences[2].value_b, "#2");
}

TEST(CompareTest, C4_PlaceOfLinesBetweenCommandBuffers) {
  const LineList edited = Replaced(Program(), "read #1", "read #1[0,32)");
  const Report report = CompareLines(Program(), edited);
  ASSERT_THAT(report.differences, SizeIs(1));
  EXPECT_EQ(report.differences[0].a.command_buffer, 0U);
  EXPECT_EQ(report.differences[0].a.dispatch, 0U);
  const LineList without_commit_text = Replaced(Program(), "commit", "barrier");
  EXPECT_EQ(CompareLines(Program(), without_commit_text).differences[0].a.command_buffer, 1U);
}

TEST(CompareTest, CountsGoOnBehindTheDifferencesShown) {
  LineList lines, other;
  for (int i = 0; i < 300; ++i) {
    lines.push_back(fmt::format("meta key{:04} a", i));
    other.push_back(fmt::format("meta key{:04} {}", i, i % 3 == 0 ? "b" : "a"));
  }
  const std::string a = Seal(lines), b = Seal(other);
  const Report report = CompareTraceTexts(a, b, {.max_differences = 5});
  EXPECT_THAT(report.differences, SizeIs(5));
  EXPECT_EQ(report.counts.changed, 100U);
}

TEST(CompareTest, C4_LongStretchOfChangesIsPairedLineByLine) {
  LineList a = Program(), b = Program();
  for (int i = 0; i < 100; ++i) {
    a.push_back(fmt::format("write #0[0,{})", i));
    b.push_back(fmt::format("write #0[1,{})", i + 1000));
    // Not of one kind with anything on the other side.
    if (i % 10 == 0) a.push_back("begin");
    if (i % 10 == 0) a.push_back("commit");
    if (i % 20 == 5) b.push_back("wait");
  }
  const Report report = CompareLines(a, b);
  EXPECT_EQ(report.counts.changed, 100U);
  EXPECT_EQ(report.counts.only_in_a, 20U);
  EXPECT_EQ(report.counts.only_in_b, 5U);
}

TEST(CompareTest, C4_AFactThatDiffersDoesNotHideTheFirstEvent) {
  LineList a = Program(), b = Program();
  a.insert(a.begin(), "meta barriers manual");
  b.insert(b.begin(), "meta barriers serial");
  a.push_back("write #0[0,8)");
  b.push_back("write #0[0,4)");
  for (const size_t shown : {size_t{1}, size_t{20}}) {
    const Report report = CompareTraceTexts(Seal(a, 2), Seal(b, 2), {.max_differences = shown});
    ASSERT_TRUE(report.first_event.has_value());
    EXPECT_EQ(report.first_event->a.text, "write #0[0,8)");
    EXPECT_THAT(FormatVerdict(report), HasSubstr("; the first event: line "));
  }
}

// --- Properties ---

void ForSeeds(const std::function<void(uint32_t seed)>& check) {
  for (uint32_t seed = 0; seed < 60 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    check(seed);
  }
}

TEST(CompareProperty, EqualToItself) {
  ForSeeds([](uint32_t seed) {
    const LineList program = RandomProgram(seed, 20);
    EXPECT_EQ(CompareLines(program, program).verdict, Verdict::kIdentical);
  });
}

TEST(CompareProperty, C3_RandomRenumberingIsFound) {
  ForSeeds([](uint32_t seed) {
    std::mt19937 rng(seed);
    const LineList program = RandomProgram(seed, 20);
    bool changed = false;
    LineList renumbered = RenumberInPlace(program, &rng, &changed);
    if (!changed) return;
    EXPECT_EQ(CompareLines(program, renumbered).verdict, Verdict::kRenumbered);
    EXPECT_EQ(CompareLines(renumbered, program).verdict, Verdict::kRenumbered);
  });
}

// Changes one number of one field of one dispatch and expects to be told which.
TEST(CompareProperty, C4_RandomEditIsNamed) {
  ForSeeds([](uint32_t seed) {
    std::mt19937 rng(seed);
    const LineList program = RandomProgram(seed, 20);
    std::vector<size_t> dispatches;
    for (size_t i = 0; i < program.size(); ++i) {
      if (program[i].starts_with("dispatch")) dispatches.push_back(i);
    }
    const size_t at = dispatches[rng() % dispatches.size()];
    LineList edited = program;
    auto event = std::get<trace::DispatchEvent>(trace::ParseEvent(program[at]).value());
    std::string field;
    switch (rng() % 4) {
      case 0:
        ++event.grid.y;
        field = "grid";
        break;
      case 1:
        event.args[0] ^= std::byte{1};
        field = "args";
        break;
      case 2: {
        const size_t binding = rng() % event.accesses.size();
        ++event.accesses[binding].range.end;
        field = fmt::format("binding {} range", binding + 1);
        break;
      }
      default:
        event.accesses.pop_back();
        field = "number of bindings";
        break;
    }
    edited[at] = trace::FormatEvent(event);
    for (const bool swapped : {false, true}) {
      const Report report = swapped ? CompareLines(edited, program) : CompareLines(program, edited);
      EXPECT_EQ(report.verdict, Verdict::kDifferent);
      ASSERT_THAT(report.differences, SizeIs(1)) << FormatText(report);
      EXPECT_EQ(report.differences[0].field, field);
      EXPECT_EQ(report.differences[0].a.line, at + 2);
      EXPECT_EQ(report.differences[0].b.line, at + 2);
    }
  });
}

TEST(CompareProperty, C4_RandomInsertionsAndRemovalsAreCounted) {
  ForSeeds([](uint32_t seed) {
    std::mt19937 rng(seed);
    const LineList program = RandomProgram(seed, 40);
    LineList edited = program;
    // Events that stand nowhere else, so that only one alignment is shortest.
    const size_t inserted = 1 + rng() % 5;
    std::vector<size_t> waits;
    for (size_t i = 0; i < program.size(); ++i) {
      if (program[i] == "wait") waits.push_back(i);
    }
    std::ranges::shuffle(waits, rng);
    waits.resize(std::min(waits.size(), inserted));
    std::ranges::sort(waits, std::greater());
    for (const size_t at : waits) {
      edited.insert(edited.begin() + static_cast<ptrdiff_t>(at),
                    fmt::format("read #0[{},9999)", at));
    }
    const Report report = CompareLines(program, edited);
    EXPECT_EQ(report.counts.only_in_b, waits.size());
    EXPECT_EQ(report.counts.only_in_a + report.counts.changed, 0U);
    const Report reverse = CompareLines(edited, program);
    EXPECT_EQ(reverse.counts.only_in_a, waits.size());
    EXPECT_EQ(reverse.verdict, report.verdict);
  });
}

TEST(CompareProperty, VerdictIsSymmetric) {
  ForSeeds([](uint32_t seed) {
    const LineList a = RandomProgram(seed, 10), b = RandomProgram(seed / 2, 10);
    const Report forward = CompareLines(a, b), backward = CompareLines(b, a);
    EXPECT_EQ(forward.verdict, backward.verdict);
    EXPECT_EQ(forward.differences.empty(), forward.verdict == Verdict::kIdentical);
  });
}

// Whatever is done to the numbers: what is different has a difference to show.
TEST(CompareProperty, C4_DifferentHasADifference) {
  ForSeeds([](uint32_t seed) {
    std::mt19937 rng(seed);
    const LineList program = RandomProgram(seed, 10);
    std::vector<uint32_t> numbers = {0, 1, 2, 3, 4, 5};
    std::ranges::shuffle(numbers, rng);
    std::vector<std::pair<std::string, std::string>> names;
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      names.emplace_back(fmt::format("kernel k{}", i), fmt::format("kernel k{}", numbers[i]));
      names.emplace_back(fmt::format("dispatch k{}", i), fmt::format("dispatch k{}", numbers[i]));
    }
    bool changed = false;
    LineList edited = Renamed(program, names);
    if (seed % 2 == 1) edited = RenumberInPlace(edited, &rng, &changed);
    const Report report = CompareLines(program, edited);
    EXPECT_EQ(report.verdict == Verdict::kDifferent, !report.differences.empty());
    EXPECT_NE(report.verdict, Verdict::kRefused) << report.reason;
  });
}

// Renumbered and edited: the edit alone is reported.
TEST(CompareProperty, C4_EditIsFoundUnderARenumbering) {
  ForSeeds([](uint32_t seed) {
    std::mt19937 rng(seed);
    const LineList program = RandomProgram(seed, 20);
    bool changed = false;
    LineList edited = RenumberInPlace(program, &rng, &changed);
    edited.push_back("wait");
    edited.push_back("wait");
    const Report report = CompareLines(program, edited);
    EXPECT_EQ(report.verdict, Verdict::kDifferent);
    EXPECT_EQ(report.counts.only_in_b, 2U);
    EXPECT_EQ(report.counts.only_in_a + report.counts.changed, 0U) << FormatText(report);
  });
}

}  // namespace
}  // namespace assay::compare
