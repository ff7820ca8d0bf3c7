// compare, show and seal, run as programs on files.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "cli/runner.h"
#include "prove/evidence.h"
#include "support/golden.h"
#include "support/temp_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TraceCommandsTest : public testing::Test {
 protected:
  TraceCommandsTest() : whole_(GoldenTrace("decode_step.trace")) {}

  static std::string GoldenTrace(const std::string& name) {
    return std::string(ASSAY_SOURCE_DIR) + "/tests/golden/traces/" + name;
  }
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = (dir_ / name).string();
    EXPECT_TRUE(WriteFile(path, text));
    return path;
  }
  // A copy of the golden trace with the first `from` replaced, sealed anew.
  std::string Edited(const std::string& name, const std::string& from,
                     const std::string& to) const {
    std::string text = ReadFile(whole_).value();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const std::string path = Write(name, text);
    EXPECT_EQ(RunAssay({"seal", path, "--quiet"}).status, 0);
    return path;
  }
  std::string Evidence(const std::string& name, const std::string& trace_600,
                       const std::vector<int32_t>& ids_600) const {
    const std::string folder = (dir_ / name).string();
    auto writer = prove::EvidenceWriter::Create(folder, false).value();
    EXPECT_TRUE(WriteFile(writer.TracePath(0), ReadFile(whole_).value()));
    EXPECT_TRUE(WriteFile(writer.TracePath(600), ReadFile(trace_600).value()));
    prove::EvidenceFacts facts;
    facts.tool_version = "0.0.0";
    facts.trace_version = 2;
    facts.command_options = {{"loaders", name == "a" ? "4" : "1"}};
    facts.model_digest = "8f0c52a1d7b3e946";
    facts.steps = 3;
    const std::vector<prove::IdSequence> sequences = {{0, {1, 2, 3}}, {600, ids_600}};
    EXPECT_TRUE(writer.Finish(facts, sequences));
    return folder;
  }

  const TempFolder temp_;
  const fs::path dir_ = temp_.path();
  const std::string whole_;
};

// --- compare ---

TEST_F(TraceCommandsTest, C1_CompareSaysIdentical) {
  const ProgramResult result = RunAssay({"compare", whole_, whole_ + ".zst"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, StartsWith("identical: the same bytes, 38 lines, digest a472f30e"));
}

TEST_F(TraceCommandsTest, C1_CompareSaysDifferentAndWhere) {
  const std::string other = Edited("other.trace", "grid=16,1,1", "grid=8,1,1");
  const ProgramResult result = RunAssay({"compare", whole_, other});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              EndsWith("different: 1 changed, 0 only in A, 0 only in B; the first: command buffer "
                       "1, dispatch 3 (matvec_f16): grid is 16,1,1 in A and 8,1,1 in B\n"));
}

TEST_F(TraceCommandsTest, C1_CompareSaysRenumbered) {
  std::string text = ReadFile(whole_).value();
  for (size_t at = 0; (at = text.find("#7", at)) != std::string::npos;) text.replace(at, 2, "#9");
  const std::string other = Write("other.trace", text);
  EXPECT_EQ(RunAssay({"seal", other}).out, "sealed " + other + "\n");
  const ProgramResult result = RunAssay({"compare", whole_, other});
  EXPECT_EQ(result.status, 6);
  EXPECT_THAT(result.out, HasSubstr("1 of 8 buffers renumbered"));
}

TEST_F(TraceCommandsTest, C1_CompareRefusesWhatIsNotWhole) {
  const std::string text = ReadFile(whole_).value();
  const struct {
    std::string path;
    const char* reason;
  } cases[] = {
      {Write("cut.trace", text.substr(0, text.size() / 2)), "cut short"},
      {Write("empty.trace", ""), "empty"},
      {Write("changed.trace", std::string(text).replace(100, 1, "Z")), "line "},
      {Write("other.txt", "hello\n"), "not a trace"},
      {Write("version.trace", "assay-trace 9\n"), "version 9"},
      {GoldenTrace("refused.trace"), "off-thread: 1"},
      {(dir_ / "missing.trace").string(), "No such file"},
  };
  for (const auto& each : cases) {
    for (const auto& pair : {std::vector{whole_, each.path}, std::vector{each.path, whole_},
                             std::vector{each.path, each.path}}) {
      const ProgramResult result = RunAssay({"compare", pair[0], pair[1]});
      EXPECT_EQ(result.status, 2) << each.path;
      EXPECT_THAT(result.out, StartsWith("refused: nothing can be said."));
      EXPECT_THAT(result.err, AllOf(StartsWith("assay compare: error: "), HasSubstr(each.reason),
                                    HasSubstr(fs::path(each.path).filename().string())));
    }
  }
}

TEST_F(TraceCommandsTest, CompareQuietlyOnlySetsTheStatus) {
  const std::string other = Edited("other.trace", "grid=16,1,1", "grid=8,1,1");
  const ProgramResult different = RunAssay({"compare", "--quiet", whole_, other});
  EXPECT_EQ(different.status, 1);
  EXPECT_EQ(different.out + different.err, "");
  const ProgramResult refused = RunAssay({"compare", "-q", whole_, "missing.trace"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("missing.trace"));
}

TEST_F(TraceCommandsTest, C4_CompareAsJson) {
  const std::string other = Edited("other.trace", "barrier\n", "");
  const ProgramResult result = RunAssay({"compare", whole_, other, "--json"});
  EXPECT_EQ(result.status, 1);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["verdict"], "different");
  EXPECT_EQ(json["exit_status"], 1);
  EXPECT_EQ(json["counts"]["only_in_a"], 1);
  ASSERT_EQ(json["differences"].size(), 1U);
  EXPECT_EQ(json["differences"][0]["kind"], "only-in-a");
  EXPECT_EQ(json["differences"][0]["a"]["command_buffer"], 1);
  EXPECT_EQ(json["differences"][0]["a"]["text"], "barrier");
  EXPECT_TRUE(json["differences"][0]["b"].is_null());
}

TEST_F(TraceCommandsTest, CompareTakesTwoArgumentsAndLimits) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } cases[] = {
      {{"compare", whole_}, "The argument B is missing."},
      {{"compare", whole_, whole_, whole_}, "is one too many: compare takes at most 2."},
      {{"compare", whole_, whole_, "--max-differences", "0"},
       "Flag --max-differences (\"0\") is not a whole number from 1 to 1000000."},
      {{"compare", whole_, whole_, "--jsn"}, "There is no flag --jsn; did you mean --json?"},
  };
  for (const auto& each : cases) {
    const ProgramResult result = RunAssay(each.words);
    EXPECT_EQ(result.status, 64) << each.message;
    EXPECT_THAT(result.err, HasSubstr(each.message));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(TraceCommandsTest, CompareShowsAsManyDifferencesAsAsked) {
  std::string text = ReadFile(whole_).value();
  for (size_t at = 0; (at = text.find("args=2", at)) != std::string::npos;) text[at + 5] = '3';
  const std::string other = Write("other.trace", text);
  ASSERT_EQ(RunAssay({"seal", other}).status, 0);
  const ProgramResult result = RunAssay({"compare", whole_, other, "--max-differences=2"});
  EXPECT_THAT(result.out, HasSubstr("... and 4 more\n"));
  EXPECT_THAT(result.out, HasSubstr("6 changed"));
}

TEST_F(TraceCommandsTest, CompareFoldersComparesTracesAndIds) {
  const std::string other = Edited("other.trace", "grid=16,1,1", "grid=8,1,1");
  const std::string a = Evidence("a", whole_, {4, 5, 6});
  const std::string same = Evidence("same", whole_, {4, 5, 6});
  const std::string trace_differs = Evidence("trace_differs", other, {4, 5, 6});
  const std::string ids_differ = Evidence("ids_differ", whole_, {4, 7, 8});
  const std::string refused = Evidence("refused", GoldenTrace("refused.trace"), {4, 7, 6});

  ProgramResult result = RunAssay({"compare", a, same});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("note: loaders: 4 in A, 1 in B\n"));
  EXPECT_THAT(result.out,
              EndsWith("compare: rc 0 (trace depth 0 rc 0, depth 600 rc 0; ids equal)\n"
                       "identical: the traces of 2 depths are the same bytes, and the ids are "
                       "equal\n"));

  result = RunAssay({"compare", a, trace_differs});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out,
              HasSubstr("compare: rc 1 (trace depth 0 rc 0, depth 600 rc 1; ids equal)\n"));

  result = RunAssay({"compare", a, ids_differ});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, HasSubstr("ids at depth 600: 2 differ, first index 1 (5 in A, 7 in B); 3 "
                                    "and 3 ids\n"));
  EXPECT_THAT(result.out,
              HasSubstr("compare: rc 1 (trace depth 0 rc 0, depth 600 rc 0; ids differ 2)\n"));

  result = RunAssay({"compare", a, refused});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.out, HasSubstr("compare: rc 2 (trace depth 0 rc 0, depth 600 rc 2;"));

  result = RunAssay({"compare", a, ids_differ, "--json"});
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["verdict"], "different");
  EXPECT_EQ(json["ids"][1]["first_index"], 1);
  EXPECT_EQ(json["traces"][1]["report"]["verdict"], "identical");
}

TEST_F(TraceCommandsTest, CompareRefusesHalfAFolderAndMixedKinds) {
  const std::string a = Evidence("a", whole_, {4, 5, 6});
  const std::string b = Evidence("b", whole_, {4, 5, 6});
  fs::remove(fs::path(b) / "manifest.json");
  ProgramResult result = RunAssay({"compare", a, b});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("has no manifest.json"));
  EXPECT_THAT(result.out, HasSubstr("compare: rc 2\n"));
  result = RunAssay({"compare", b, b});
  EXPECT_EQ(result.out.find("has no manifest.json"), result.out.rfind("has no manifest.json"));
  result = RunAssay({"compare", a, whole_});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("name two traces or two folders"));
}

TEST_F(TraceCommandsTest, CompareRefusesAManifestThatContradictsItsTraces) {
  const std::string meta =
      Edited("meta.trace", "meta kv-type f16\n", "meta depth 600\nmeta kv-type f16\n");
  const std::string wrong_depth =
      Edited("depth.trace", "meta kv-type f16\n", "meta depth 7\nmeta kv-type f16\n");
  const std::string wrong_steps =
      Edited("steps.trace", "8f0c52a1d7b3e946\n", "8f0c52a1d7b3e946\nmeta steps 9\n");
  const std::string wrong_model = Edited("model.trace", "8f0c52a1d7b3e946", "8f0ce946");
  const std::string good = Evidence("good", meta, {4, 5, 6});
  EXPECT_EQ(RunAssay({"compare", good, good}).status, 0);
  const struct {
    const char* name;
    std::string trace;
    const char* message;
  } cases[] = {
      {"bad_depth", wrong_depth, "says depth 600, but "},
      {"bad_steps", wrong_steps, "says steps 3, but "},
      {"bad_model", wrong_model, "says model-digest 8f0c52a1d7b3e946, but "},
      {"bad_version", GoldenTrace("version_1.trace"), "says trace version 2, but "},
  };
  for (const auto& each : cases) {
    const std::string folder = Evidence(each.name, each.trace, {4, 5, 6});
    const ProgramResult result = RunAssay({"compare", folder, folder});
    EXPECT_EQ(result.status, 2) << each.name;
    EXPECT_THAT(result.err, HasSubstr(each.message));
  }
}

TEST_F(TraceCommandsTest, CompareEscapesWhatAManifestSays) {
  const std::string a = Evidence("a", whole_, {4, 5, 6});
  const std::string b = Evidence("b", whole_, {4, 5, 6});
  const std::string manifest = (fs::path(b) / "manifest.json").string();
  std::string text = ReadFile(manifest).value();
  const std::string before = "\"tool_version\": \"0.0.0\"";
  ASSERT_NE(text.find(before), std::string::npos);
  text.replace(text.find(before), before.size(),
               "\"tool_version\": \"\\u001b[2J\\nidentical: \\u202e\"");
  ASSERT_TRUE(WriteFile(manifest, text));
  const ProgramResult result = RunAssay({"compare", a, b});
  EXPECT_THAT(result.out, HasSubstr("note: program version: 0.0.0 in A, \\x1b[2J\\x0aidentical: "
                                    "\\xe2\\x80\\xae in B\n"));
}

TEST_F(TraceCommandsTest, CompareNoticesADepthThatOnlyOneFolderHas) {
  const std::string a = Evidence("a", whole_, {4, 5, 6});
  const std::string b = (dir_ / "b").string();
  auto writer = prove::EvidenceWriter::Create(b, false).value();
  ASSERT_TRUE(WriteFile(writer.TracePath(0), ReadFile(whole_).value()));
  const std::vector<prove::IdSequence> sequences = {{0, {1, 2, 3}}};
  prove::EvidenceFacts facts;
  facts.trace_version = 2;
  facts.model_digest = "8f0c52a1d7b3e946";
  facts.steps = 3;
  ASSERT_TRUE(writer.Finish(facts, sequences));
  const ProgramResult result = RunAssay({"compare", a, b});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out,
              HasSubstr("compare: rc 1 (trace depth 0 rc 0, depth 600 only in A; ids equal)\n"));
}

TEST_F(TraceCommandsTest, CtrlCStopsCompareWithItsStatus) {
  const std::atomic<int> signal{SIGINT};
  cli::StringOutput out, err;
  const std::vector<std::string> words = {"compare", whole_, whole_};
  EXPECT_EQ(
      cli::RunProgram(words, cli::Commands(), {.out = &out, .err = &err, .stop_signal = &signal}),
      130);
  EXPECT_EQ(out.text(), "");
  EXPECT_EQ(err.text(), "assay compare: error: The comparison was stopped by a signal.\n");
}

// --- show ---

TEST_F(TraceCommandsTest, ShowIsATable) {
  const ProgramResult result = RunAssay({"show", whole_});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  ExpectGolden("cli/show.txt", result.out);
  ExpectGolden("cli/show.jsonl", RunAssay({"show", whole_, "--format", "jsonl"}).out);
  ExpectGolden("cli/show_odd_text.txt", RunAssay({"show", GoldenTrace("odd_text.trace")}).out);
  ExpectGolden("cli/show_refused.jsonl",
               RunAssay({"show", GoldenTrace("refused.trace"), "--format=jsonl"}).out);
}

TEST_F(TraceCommandsTest, ShowSummaryCountsByKernel) {
  const ProgramResult text = RunAssay({"show", whole_, "--summary"});
  EXPECT_EQ(text.status, 0);
  ExpectGolden("cli/show_summary.txt", text.out);
  const auto json =
      nlohmann::json::parse(RunAssay({"show", whole_, "--summary", "--format=jsonl"}).out);
  EXPECT_EQ(json["kernels"][1]["name"], "matvec_f16");
  EXPECT_EQ(json["kernels"][1]["workgroups"], 32);
  EXPECT_EQ(json["events"]["barrier"], 3);
}

TEST_F(TraceCommandsTest, ShowFiltersByKernelBufferAndCommandBuffer) {
  const auto lines = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"show", whole_, "--format", "jsonl"});
    const ProgramResult result = RunAssay(words);
    EXPECT_EQ(result.status, 0);
    std::vector<int> numbers;
    for (size_t begin = 0; begin < result.out.size();) {
      const size_t end = result.out.find('\n', begin);
      numbers.push_back(nlohmann::json::parse(result.out.substr(begin, end - begin))["line"]);
      begin = end + 1;
    }
    return numbers;
  };
  using Numbers = std::vector<int>;
  EXPECT_EQ(lines({"--kernel", "embed_f16"}), (Numbers{17, 21, 32}));
  EXPECT_EQ(lines({"--kernel", "embed_f16", "--kernel=matvec_f16"}),
            (Numbers{17, 19, 21, 25, 26, 32}));
  EXPECT_EQ(lines({"--buffer", "#5"}), (Numbers{10, 23, 25, 26, 34, 37}));
  EXPECT_EQ(lines({"--buffer", "normed"}), (Numbers{10, 23, 25, 26, 34, 37}));
  EXPECT_EQ(lines({"--buffer", "#5", "--kernel", "matvec_f16"}), (Numbers{25, 26}));
  EXPECT_EQ(lines({"--commands", "1", "--kernel=embed_f16"}), (Numbers{21}));
  EXPECT_EQ(lines({"--commands", "2"}), (Numbers{31, 32, 33, 34, 35}));
  EXPECT_EQ(lines({"--commands", "1-2", "--buffer", "ids"}), (Numbers{21, 32}));
}

TEST_F(TraceCommandsTest, ShowHintsAtTheNearestName) {
  EXPECT_EQ(
      RunAssay({"show", whole_, "--kernel", "embd_f16"}).err,
      "assay show: note: The trace has no kernel \"embd_f16\"; did you mean \"embed_f16\"?\n");
  EXPECT_EQ(RunAssay({"show", whole_, "--commands", "7"}).err,
            "assay show: note: The trace has 2 command buffers.\n");
  EXPECT_EQ(RunAssay({"show", whole_, "--commands", "7", "--quiet"}).err, "");
}

TEST_F(TraceCommandsTest, ShowRefusesWhatIsNotWholeAtItsEnd) {
  const std::string text = ReadFile(whole_).value();
  const std::string cut = Write("cut.trace", text.substr(0, text.rfind("end ")));
  const ProgramResult result = RunAssay({"show", cut});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.out, HasSubstr("rms_norm_f32"));
  EXPECT_THAT(result.err, HasSubstr("line 39: The file is cut short"));
  EXPECT_EQ(RunAssay({"show", (dir_ / "missing").string()}).status, 2);
}

TEST_F(TraceCommandsTest, ShowRefusesWrongFlags) {
  for (const char* wrong : {"0", "2-1", "x", "1-", "-1", "1-2-3"}) {
    const ProgramResult result = RunAssay({"show", whole_, std::string("--commands=") + wrong});
    EXPECT_EQ(result.status, 64) << wrong;
    EXPECT_THAT(result.err, HasSubstr("is not N or N-M with 1 <= N <= M"));
  }
  EXPECT_EQ(RunAssay({"show", whole_, "--format", "xml"}).status, 64);
  EXPECT_EQ(RunAssay({"show"}).status, 64);
}

TEST_F(TraceCommandsTest, ShowToAFullOrClosedOutputFails) {
  EXPECT_EQ(RunAssay({"show", whole_}, OutputTo::kFullDevice).status, 2);
  EXPECT_EQ(RunAssay({"show", whole_}, OutputTo::kClosed).status, 2);
}

TEST_F(TraceCommandsTest, CtrlCStopsShowWithItsStatus) {
  std::string text = "assay-trace 2\n";
  for (int i = 0; i < 200000; ++i) text += "wait\n";
  const std::string path = Write("long.trace", text);
  ASSERT_EQ(RunAssay({"seal", path}).status, 0);
  const ProgramResult result = RunAssayAndInterrupt({"show", path}, 1000, SIGINT);
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.err, HasSubstr("not shown to its end"));
  EXPECT_EQ(RunAssayAndInterrupt({"show", path}, 1000, SIGTERM).status, 128 + SIGTERM);
}

// --- seal ---

TEST_F(TraceCommandsTest, SealMakesAHandWrittenTraceWhole) {
  const std::string path = Write("hand.trace", "assay-trace 2\nbegin\nbarrier\ncommit\n");
  EXPECT_EQ(RunAssay({"compare", path, path}).status, 2);
  EXPECT_EQ(RunAssay({"seal", path}).status, 0);
  EXPECT_EQ(RunAssay({"compare", path, path}).status, 0);
  const std::string once = ReadFile(path).value();
  EXPECT_EQ(RunAssay({"seal", path}).status, 0);
  EXPECT_EQ(ReadFile(path).value(), once);
}

TEST_F(TraceCommandsTest, SealKeepsModeAndSymbolicLink) {
  const std::string path = Write("hand.trace", "assay-trace 2\nbegin\nbarrier\ncommit\n");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("hand.trace", dir_ / "link.trace");
  EXPECT_EQ(RunAssay({"seal", (dir_ / "link.trace").string()}).status, 0);
  EXPECT_TRUE(fs::is_symlink(dir_ / "link.trace"));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(RunAssay({"compare", path, path}).status, 0);
}

TEST_F(TraceCommandsTest, PipesAreRefusedAtOnce) {
  const std::string pipe = (dir_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"show", pipe}, {"check", pipe}, {"seal", pipe}, {"compare", pipe, whole_}}) {
    const ProgramResult result = RunAssay(words);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr("is a pipe, not a regular file"));
  }
}

TEST_F(TraceCommandsTest, ARefusalIsSaidOnce) {
  const ProgramResult result = RunAssay({"compare", whole_, (dir_ / "missing").string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.out, Not(HasSubstr("missing")));
  EXPECT_THAT(result.err, HasSubstr("missing"));
}

TEST_F(TraceCommandsTest, C1_ARefusalIsSaidOnceByEveryCommand) {
  const std::string missing = (dir_ / "missing").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", missing},
        std::vector<std::string>{"compare", missing, missing},
        std::vector<std::string>{"scan", "--compare", missing, missing},
        std::vector<std::string>{"show", missing}}) {
    const ProgramResult result = RunAssay(words);
    EXPECT_EQ(result.status, 2) << words[0];
    EXPECT_THAT(result.err, HasSubstr(missing)) << words[0];
    EXPECT_THAT(result.out, Not(HasSubstr(missing))) << words[0];
  }
}

TEST_F(TraceCommandsTest, C1_WithJsonAnErrorIsOneObjectOnStandardOutput) {
  const std::string missing = (dir_ / "missing").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"counts", "--json", missing},
        std::vector<std::string>{"gguf", "--json", missing},
        std::vector<std::string>{"prove", "--json", "--here", dir_.string(), "HEAD"},
        std::vector<std::string>{"mutate", "--json", missing},
        std::vector<std::string>{"perturb", "--json", "-m", missing}}) {
    const ProgramResult result = RunAssay(words);
    EXPECT_EQ(result.status, 2) << words[0];
    const auto json = nlohmann::json::parse(result.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << words[0] << ": " << result.out;
    EXPECT_THAT(result.err, HasSubstr(": error: "));
    EXPECT_FALSE(json.value("error", "").empty()) << result.out;
  }
  const ProgramResult usage = RunAssay({"counts", "--json", "--jsn", missing});
  EXPECT_EQ(usage.status, 64);
  const auto json = nlohmann::json::parse(usage.out, nullptr, false);
  EXPECT_EQ(json.value("exit_status", 0), 64);
  EXPECT_EQ(RunAssay({"show", "--json", missing}).out, "");  // It has no such flag.
}

TEST_F(TraceCommandsTest, AFolderInPlaceOfATraceIsSaidWithOneThatIsInIt) {
  const std::string folder = Evidence("folder", whole_, {4, 5, 6});
  for (const char* command : {"show", "check", "mutate"}) {
    const ProgramResult result = RunAssay({command, folder});
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_THAT(result.err,
                HasSubstr("is a folder, not a trace; name a trace in it: \"" + folder + "/depth-"));
  }
  EXPECT_THAT(RunAssay({"show", dir_.root_path().string()}).err,
              HasSubstr("is a folder, not a trace."));
}

TEST_F(TraceCommandsTest, ShowOfNothingIsStatusOne) {
  EXPECT_EQ(RunAssay({"show", whole_, "--kernel", "nope"}).status, 1);
  EXPECT_EQ(RunAssay({"show", whole_, "--summary", "--kernel", "nope"}).status, 1);
  EXPECT_EQ(RunAssay({"show", whole_, "--kernel", "embed_f16"}).status, 0);
}

TEST_F(TraceCommandsTest, CompareOfAFileWithItselfIsNoted) {
  const std::string note = "is compared with itself";
  EXPECT_THAT(RunAssay({"compare", whole_, whole_}).err, HasSubstr(note));
  EXPECT_EQ(RunAssay({"compare", "-q", whole_, whole_}).err, "");
}

TEST_F(TraceCommandsTest, AVersionPastAllNumbersIsToldAsItStands) {
  const std::string path = Write("v.trace", "assay-trace 99999999999999999999999\n");
  EXPECT_THAT(RunAssay({"show", path}).err, HasSubstr("has version 99999999999999999999999;"));
}

TEST_F(TraceCommandsTest, SealLeavesABrokenTraceAsItIs) {
  const std::string text = "assay-trace 2\nbegin\nbariers\n";
  const std::string path = Write("broken.trace", text);
  const ProgramResult result = RunAssay({"seal", path});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("line 3"));
  EXPECT_EQ(ReadFile(path).value(), text);
  EXPECT_EQ(RunAssay({"seal", (dir_ / "missing").string()}).status, 2);
  EXPECT_EQ(RunAssay({"seal", path, path}).status, 64);
}

}  // namespace
}  // namespace assay
