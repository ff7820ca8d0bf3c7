// The export: parsed back, and its arrows held against a search byte by byte.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/perfetto_export.h"
#include "cli/runner.h"
#include "support/temp_folder.h"
#include "support/trace_text.h"

namespace assay::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int kBuffers = 3;
constexpr uint64_t kBytes = 16;
constexpr uint32_t kAllArrows = 1000;

// A random trace of small buffers.
std::string RandomTrace(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](uint64_t below) { return random() % below; };
  std::string text = "assay-trace 2\n";
  for (int i = 0; i < kBuffers; ++i) {
    text += fmt::format("buffer #{} size={} kind=scratch label=\"b{}\"\n", i, kBytes, i);
  }
  text += "kernel k0 name=f digest=a1 workgroup=1,1,1\n";
  const auto range = [&] {
    const uint64_t begin = pick(kBytes), end = begin + pick(kBytes + 1 - begin);
    return fmt::format("#{}[{},{})", pick(kBuffers), begin, end);
  };
  for (int commands = 0; commands < 6; ++commands) {
    for (uint64_t i = pick(3); i > 0; --i) text += fmt::format("write {}\n", range());
    text += "begin\n";
    for (uint64_t i = pick(9); i > 0; --i) {
      text += "dispatch k0 grid=1,1,1";
      constexpr std::array<const char*, 3> kWords = {"r", "w", "rw"};
      for (uint64_t k = 1 + pick(3); k > 0; --k) {
        text += fmt::format(" {}{}", kWords.at(pick(3)), range());
      }
      text += '\n';
      if (pick(3) == 0) text += "barrier\n";
    }
    text += "commit\nwait\n";
    for (uint64_t i = pick(3); i > 0; --i) text += fmt::format("read {}\n", range());
  }
  return assay::testing::Sealed(text);
}

json Export(const std::string& text, const PerfettoOptions& options = {}) {
  std::string out;
  PerfettoExport exporting(options, [&out](std::string_view part) -> Status {
    out += part;
    return {};
  });
  EXPECT_TRUE(exporting.Begin("a \"trace\""));
  auto reader = trace::TraceReader::FromMemory(text, "test").value();
  for (;;) {
    const auto event = reader->Next();
    EXPECT_TRUE(event) << text;
    if (!event || !*event) break;
    EXPECT_TRUE(exporting.Add(**event, reader->line_number()));
  }
  EXPECT_TRUE(exporting.Finish());
  return json::parse(out);
}

// Who wrote, who reads (as lines), the buffer, and from where to where the bytes lie.
using Pair = std::tuple<uint64_t, uint64_t, std::string, std::string>;

// Looks at every byte.
std::set<Pair> PairsByBytes(const std::string& text) {
  std::array<std::array<uint64_t, kBytes>, kBuffers> writer{};
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, std::pair<uint64_t, uint64_t>> found;
  auto reader = trace::TraceReader::FromMemory(text, "test").value();
  const auto touch = [&](const std::vector<trace::BufferAccess>& accesses, uint64_t line) {
    for (const trace::BufferAccess& access : accesses) {
      if (!Reads(access.access)) continue;
      for (uint64_t byte = access.range.begin; byte < access.range.end; ++byte) {
        const uint64_t by = writer.at(access.buffer.value()).at(byte);
        if (by == 0) continue;
        const auto [at, added] =
            found.try_emplace({by, line, access.buffer.value()}, byte, byte + 1);
        if (added) continue;
        at->second.first = std::min(at->second.first, byte);
        at->second.second = std::max(at->second.second, byte + 1);
      }
    }
    for (const trace::BufferAccess& access : accesses) {
      if (!Writes(access.access)) continue;
      for (uint64_t byte = access.range.begin; byte < access.range.end; ++byte) {
        writer.at(access.buffer.value()).at(byte) = line;
      }
    }
  };
  for (;;) {
    const auto event = reader->Next().value();
    if (!event) break;
    const uint64_t line = reader->line_number();
    if (const auto* dispatch = std::get_if<trace::DispatchEvent>(&*event)) {
      touch(dispatch->accesses, line);
    } else if (const auto* write = std::get_if<trace::HostWriteEvent>(&*event)) {
      touch({{Access::kWrite, write->buffer, write->range}}, line);
    } else if (const auto* read = std::get_if<trace::HostReadEvent>(&*event)) {
      touch({{Access::kRead, read->buffer, read->range}}, line);
    }
  }
  std::set<Pair> pairs;
  for (const auto& [key, bytes] : found) {
    const auto& [from, to, buffer] = key;
    pairs.insert({from, to, fmt::format("#{0} b{0}", buffer),
                  fmt::format("[{},{})", bytes.first, bytes.second)});
  }
  return pairs;
}

// The line of the one slice of a track that is open at a time.
uint64_t LineAt(const json& events, const json& end) {
  uint64_t line = 0;
  for (const json& event : events) {
    if (event.at("ph") != "X" || event.at("tid") != end.at("tid")) continue;
    const int64_t begin = event.at("ts"), length = event.at("dur"), at = end.at("ts");
    if (at < begin || at >= begin + length) continue;
    EXPECT_EQ(line, 0U) << "two slices of one lane overlap";
    line = event.at("args").at("line");
  }
  EXPECT_NE(line, 0U) << "an arrow ends in no slice: " << end;
  return line;
}

std::set<Pair> PairsOfArrows(const json& trace) {
  const json& events = trace.at("traceEvents");
  std::map<uint64_t, json> starts;
  std::set<Pair> pairs;
  for (const json& event : events) {
    if (event.at("ph") == "s") {
      EXPECT_TRUE(starts.emplace(event.at("id"), event).second);
    }
  }
  size_t ends = 0;
  for (const json& event : events) {
    if (event.at("ph") != "f") continue;
    ++ends;
    EXPECT_EQ(event.at("bp"), "e");
    const auto start = starts.find(event.at("id"));
    EXPECT_NE(start, starts.end());
    if (start == starts.end()) continue;
    const json& from = start->second;
    EXPECT_EQ(from.at("name"), event.at("name"));
    EXPECT_EQ(from.at("cat"), event.at("cat"));
    EXPECT_LT(from.at("ts").get<int64_t>(), event.at("ts").get<int64_t>());
    pairs.insert({LineAt(events, from), LineAt(events, event), event.at("name"),
                  event.at("args").at("within")});
  }
  EXPECT_EQ(ends, starts.size());
  EXPECT_EQ(ends, pairs.size()) << "an arrow is drawn twice";
  return pairs;
}

TEST(PerfettoExportTest, E4_ArrowsAreThoseOfEveryByte) {
  size_t arrows = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = RandomTrace(seed);
    const std::set<Pair> pairs = PairsByBytes(text);
    EXPECT_EQ(PairsOfArrows(Export(text, {.arrows = kAllArrows})), pairs);
    // Lanes change where slices lie, and nothing else.
    EXPECT_EQ(PairsOfArrows(Export(text, {.lanes = 1, .arrows = kAllArrows})), pairs);
    arrows += pairs.size();
  }
  EXPECT_GT(arrows, 500U);
}

TEST(PerfettoExportTest, E1_WhatNoBarrierOrdersIsShownAtOnce) {
  const std::string text = assay::testing::Sealed(
      "assay-trace 2\nmeta backend cpu\nbuffer #0 size=64 kind=scratch label=\"</x>\\\"\"\n"
      "kernel k0 name=f digest=a1 workgroup=8,1,1\nbegin\n"
      "dispatch k0 grid=1,1,1 w#0[0,8)\ndispatch k0 grid=1,1,1 args=07 w#0[8,16)\n"
      "dispatch k0 grid=1,1,1 r#0[0,8) w#0[16,24)\nbarrier\ndispatch k0 grid=2,1,1 r#0[0,24)?\n"
      "commit\nwait\nwrite #0[32,40)\nread #0[32,40)\n");
  const json trace = Export(text);
  std::vector<std::pair<int64_t, int64_t>> slices;  // Time and track.
  std::map<std::string, int> categories;
  for (const json& event : trace.at("traceEvents")) {
    if (event.contains("cat") && event.at("ph") != "f") ++categories[event.at("cat")];
    if (event.value("cat", "") == "dispatch") slices.emplace_back(event.at("ts"), event.at("tid"));
  }
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[0].first, slices[1].first);
  EXPECT_EQ(slices[0].first, slices[2].first);
  EXPECT_NE(slices[0].second, slices[1].second);
  EXPECT_GT(slices[3].first, slices[0].first);
  EXPECT_EQ(slices[3].second, slices[0].second);
  // Three arrows into the last dispatch, one inside the group, and one from the host to itself.
  EXPECT_EQ(categories, (std::map<std::string, int>{{"dispatch", 4},
                                                    {"bytes", 4},
                                                    {"unordered", 1},
                                                    {"barrier", 1},
                                                    {"commands", 1},
                                                    {"host", 3}}));
  EXPECT_EQ(trace.at("otherData").at("backend"), "cpu");
  EXPECT_THAT(trace.dump(), HasSubstr("#0 </x>"));
  // With one lane the group takes three steps.
  int64_t last = 0;
  const json narrow = Export(text, {.lanes = 1});
  for (const json& event : narrow.at("traceEvents")) {
    if (event.value("cat", "") == "dispatch") last = event.at("ts");
  }
  EXPECT_EQ(last, 30);
}

// A cache that every step adds a row to and reads whole, as attention does.
std::string TraceOfACache(int steps) {
  std::string text =
      "assay-trace 2\nbuffer #0 size=65536 kind=scratch label=\"cache\"\n"
      "buffer #1 size=4 kind=scratch label=\"out\"\n"
      "kernel k0 name=f digest=a1 workgroup=1,1,1\nbegin\n";
  for (int i = 0; i < steps; ++i) {
    text += fmt::format("dispatch k0 grid=1,1,1 w#0[{},{})\nbarrier\n", 4 * i, 4 * i + 4);
    text += fmt::format("dispatch k0 grid=1,1,1 r#0[0,{}) r#1[0,4) w#1[0,4)\nbarrier\n", 4 * i + 4);
  }
  return assay::testing::Sealed(text + "commit\n");
}

TEST(PerfettoExportTest, E4_ArrowsGrowAsDispatchesDo) {
  const json trace = Export(TraceOfACache(100), {.arrows = 3});
  const std::set<Pair> pairs = PairsOfArrows(trace);
  // The latest three rows, and what the step before wrote to the other buffer.
  EXPECT_EQ(pairs.size(), 1U + 2 + 98 * 3 + 99);
  EXPECT_EQ(trace.at("otherData").at("assay.arrows_left_out"), 100 * 101 / 2 - (1 + 2 + 98 * 3));
  uint64_t reader = 0;
  for (const Pair& pair : pairs) reader = std::max(reader, std::get<1>(pair));
  std::set<std::string> bytes;
  for (const auto& [from, to, buffer, within] : pairs) {
    if (to == reader && buffer == "#0 cache") bytes.insert(within);
  }
  EXPECT_EQ(bytes, (std::set<std::string>{"[388,392)", "[392,396)", "[396,400)"}));
  EXPECT_EQ(Export(TraceOfACache(100)).at("otherData").at("assay.arrows_left_out"),
            100 * 101 / 2 - (93 * 8 + 28));
  EXPECT_TRUE(PairsOfArrows(Export(TraceOfACache(5), {.arrows = 0})).empty());
}

TEST(PerfettoExportTest, WhatLiesBehindTheLimitIsCounted) {
  const json whole = Export(RandomTrace(7));
  const uint64_t all = whole.at("otherData").at("assay.dispatches");
  ASSERT_GT(all, 5U);
  const json cut = Export(RandomTrace(7), {.max_dispatches = 5});
  EXPECT_EQ(cut.at("otherData").at("assay.dispatches"), 5);
  EXPECT_EQ(cut.at("otherData").at("assay.left_out"), all - 5);
  PairsOfArrows(cut);
}

class ExportCommandTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), "export");
    out_ = std::make_unique<StringOutput>();
    err_ = std::make_unique<StringOutput>();
    return RunProgram(words, Commands(),
                      {.out = out_.get(), .err = err_.get(), .stop_signal = &signal_});
  }
  std::string In(const char* name) const { return (temp_.path() / name).string(); }

  const TempFolder temp_;
  std::unique_ptr<StringOutput> out_, err_;
  std::atomic<int> signal_{0};
};

TEST_F(ExportCommandTest, WritesAWholeFileOrNone) {
  ASSERT_TRUE(WriteFile(In("t.trace"), RandomTrace(3)));
  EXPECT_EQ(Run({In("t.trace")}), 64);
  EXPECT_THAT(err_->text(), HasSubstr("The format is missing: give --perfetto."));
  EXPECT_EQ(Run({"--perfetto", "--arrows", "1000", In("t.trace"), "-o", In("t.json")}), 0);
  EXPECT_THAT(out_->text(), HasSubstr("t.json: "));
  EXPECT_EQ(err_->text(), "");
  const std::string text = ReadFile(In("t.json")).value();
  EXPECT_EQ(PairsOfArrows(json::parse(text)), PairsByBytes(RandomTrace(3)));
  EXPECT_EQ(Run({"--perfetto", "--arrows", "1000", In("t.trace")}), 0);
  EXPECT_EQ(out_->text(), text);
  EXPECT_EQ(Run({"--perfetto", "--arrows", "1", In("t.trace")}), 0);
  EXPECT_THAT(err_->text(), HasSubstr("were left out; --arrows says from how many of a buffer's "
                                      "latest writers one leads to a reader."));
  EXPECT_EQ(Run({"--perfetto", "--limit", "2", "-o", In("u.json"), In("t.trace")}), 0);
  EXPECT_THAT(err_->text(), HasSubstr("dispatches were left out; --limit says"));
  // A trace that is cut leaves the older file as it was.
  const std::string cut = RandomTrace(3);
  ASSERT_TRUE(WriteFile(In("t.trace"), cut.substr(0, cut.size() / 2)));
  EXPECT_EQ(Run({"--perfetto", In("t.trace"), "-o", In("t.json")}), 2);
  EXPECT_EQ(ReadFile(In("t.json")).value(), text);
}

TEST_F(ExportCommandTest, AStopSignalEndsItWithoutAFile) {
  ASSERT_TRUE(WriteFile(In("t.trace"), RandomTrace(3)));
  signal_ = SIGINT;
  EXPECT_EQ(Run({"--perfetto", In("t.trace"), "-o", In("t.json")}), 130);
  EXPECT_EQ(err_->text(), "assay export: error: The trace was not exported to its end.\n");
  EXPECT_FALSE(ReadFile(In("t.json")));
}

}  // namespace
}  // namespace assay::cli
