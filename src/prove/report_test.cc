// The reports of a proof as text: Markdown, JUnit, and the page of HTML as a document.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "assay/prove_report.h"

#include "base/file.h"
#include "prove/report_assets.h"
#include "support/golden.h"
#include "support/temp_folder.h"
#include "support/trace_text.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using compare::Verdict;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A proof in which every outcome comes up, made of plain data.
Proof ProofOfAllOutcomes() {
  Proof proof;
  proof.base = {.role = "base",
                .name = "main",
                .commit = "0123456789abcdef",
                .evidence = "/cache/base",
                .cached = true};
  proof.here = {.role = "here",
                .name = "work|tree",
                .commit = "fedcba9876543210",
                .changed = 2,
                .evidence = "/cache/here"};
  proof.require_ids = false;
  proof.allow = {ChangeKind::kBarriersFewer};
  EvidenceReport evidence;
  evidence.verdict = Verdict::kRefused;
  evidence.sides = {"base", "here"};
  evidence.notes = {"only here was recorded with --checked"};
  evidence.kernels = ScanComparison{.reason = {}, .same = 3, .differences = {}};
  compare::Report fewer;
  fewer.verdict = Verdict::kDifferent;
  fewer.name_a = "/cache/base/depth-0.trace";
  fewer.name_b = "/cache/here/depth-0.trace";
  fewer.counts.only_in_a = 1;
  fewer.sides = evidence.sides;
  compare::Report constants = fewer;
  constants.counts = {.changed = 1};
  compare::Report cut;
  cut.verdict = Verdict::kRefused;
  cut.reason = "\"/cache/here/depth-9.trace\" ends in the middle of a line.";
  evidence.depths = {{.depth = 0, .report = fewer, .in_a = true, .in_b = true},
                     {.depth = 6, .report = constants, .in_a = true, .in_b = true},
                     {.depth = 9, .report = cut, .in_a = true, .in_b = true}};
  evidence.ids = {{.depth = 0, .count_a = 4, .count_b = 4, .first_a = {}, .first_b = {}},
                  {.depth = 6,
                   .count_a = 4,
                   .count_b = 4,
                   .differing = 1,
                   .first_index = 3,
                   .first_a = 7,
                   .first_b = 8}};
  proof.evidence = evidence;
  Change barrier;
  barrier.kinds = {ChangeKind::kBarriersFewer};
  barrier.barriers_a = 15;
  barrier.barriers_b = 14;
  Change constant;
  constant.kinds = {ChangeKind::kConstants};
  constant.constants_changed = 1;
  constant.context = {{' ', 11, 11, "begin"},
                      {'-', 12, 0, "dispatch k0 grid=1,1,1 args=07 w#0[0,4)"},
                      {'+', 0, 12, "dispatch k0 grid=1,1,1 args=08 w#0[0,4)"}};
  barrier.sides = constant.sides = evidence.sides;
  proof.changes = {barrier, constant, {}};
  proof.kinds = {ChangeKind::kBarriersFewer, ChangeKind::kConstants};
  proof.not_allowed = {ChangeKind::kConstants};
  proof.refused = {{.by = "trace depth 9", .reason = cut.reason, .log = {}, .log_tail = {}}};
  return proof;
}

std::vector<Outcome> Outcomes(const Summary& summary) {
  std::vector<Outcome> outcomes;
  for (const ReportPart& part : summary.parts) outcomes.push_back(part.outcome);
  return outcomes;
}

TEST(ReportTest, P1_EachPartHasItsOutcome) {
  Proof proof = ProofOfAllOutcomes();
  EXPECT_THAT(Outcomes(Summarize(proof)),
              ElementsAre(Outcome::kSame, Outcome::kAllowed, Outcome::kDifferent, Outcome::kRefused,
                          Outcome::kSame, Outcome::kNotAsked));
  proof.require_ids = true;
  proof.changes[0].looked_at = 5;
  EXPECT_THAT(Outcomes(Summarize(proof)),
              ElementsAre(Outcome::kSame, Outcome::kDifferent, Outcome::kDifferent,
                          Outcome::kRefused, Outcome::kSame, Outcome::kDifferent));
}

TEST(ReportTest, P1_ABuildThatFailedIsAPart) {
  Proof proof;
  proof.base = {.role = "base", .name = "main", .commit = "0123", .evidence = {}};
  proof.here = {.role = "here", .name = ".", .commit = "4567", .evidence = {}};
  proof.refused = {{.by = "base", .reason = "It does not build.", .log = "l", .log_tail = "end\n"}};
  const Summary summary = Summarize(proof);
  ASSERT_EQ(summary.parts.size(), 1U);
  EXPECT_EQ(summary.parts[0].name, "base");
  EXPECT_THAT(FormatJunit(summary), HasSubstr("<error type=\"refused\" message=\"It does not "
                                              "build.\">refused by base: It does not build.\n"
                                              "the end of l:\n  end\n</error>"));
  EXPECT_THAT(FormatMarkdown(summary), StartsWith("**Refused**: `prove: rc 2 (refused by base)`"));
  EXPECT_THAT(FormatHtml(summary, {}).value(), HasSubstr("It does not build."));
}

TEST(ReportTest, P1_MarkdownAndJunitAreWhatTheGoldensSay) {
  const Summary summary = Summarize(ProofOfAllOutcomes());
  ExpectGolden("prove/outcomes.md", FormatMarkdown(summary));
  ExpectGolden("prove/outcomes.junit.xml", FormatJunit(summary));
}

TEST(ReportTest, P1_MarkdownKeepsTextThatHasAMeaningThere) {
  Summary summary;
  summary.headline = "Different";
  summary.verdict = "a `tick` | <b>";
  ReportPart part{.name = "trace", .outcome = Outcome::kDifferent, .says = "x|y ``z``"};
  part.context = {{'+', 0, 1, "```"}};
  part.text = "````\n</details>\n";
  summary.parts.push_back(part);
  const std::string text = FormatMarkdown(summary);
  EXPECT_THAT(text, StartsWith("**Different**: ``a `tick` | <b>``\n"));
  EXPECT_THAT(text, HasSubstr("| ``` x\\|y ``z`` ``` |\n"));
  EXPECT_THAT(text, HasSubstr("\n````diff\n+               1  ```\n````\n"));
  EXPECT_THAT(text, HasSubstr("\n`````\n````\n</details>\n`````\n"));
}

TEST(ReportTest, P1_MarkdownStaysShortEnoughForAComment) {
  Summary summary;
  ReportPart part{.name = "trace", .outcome = Outcome::kDifferent};
  for (int i = 0; i < 100'000; ++i) part.text += "a line of a report\n";
  summary.parts.assign(30, part);
  const std::string text = FormatMarkdown(summary);
  EXPECT_LE(text.size(), 60'100U);
  EXPECT_THAT(text, HasSubstr("lines more\n"));
  EXPECT_THAT(text, HasSubstr("sections were left out for their length."));
}

TEST(ReportTest, P1_JunitHoldsWhatXmlCannot) {
  Summary summary;
  summary.parts.push_back({.name = "<\"&'>",
                           .outcome = Outcome::kDifferent,
                           .says = "\x01\xEF\xBF\xBE\xFF",
                           .text = "]]> \x1B[0m\n"});
  const std::string text = FormatJunit(summary);
  EXPECT_THAT(text, HasSubstr("name=\"&#60;&#34;&#38;&#39;&#62;\""));
  EXPECT_THAT(text, HasSubstr("message=\"\\x01\\xef\\xbf\\xbe\\xff\""));
  EXPECT_THAT(text, HasSubstr("]]&#62; \\x1b[0m\n"));
}

// The data that the page's script reads.
json DataOf(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

class PageTest : public ::testing::Test {
 protected:
  static std::string Case(const std::string& name, const char* side) {
    return (fs::path(ASSAY_SOURCE_DIR) / "tests/golden/compare" / name / side).string();
  }
  std::string Write(const char* name, const std::string& lines) const {
    const std::string path = (temp_.path() / name).string();
    EXPECT_TRUE(WriteFile(path, assay::testing::Sealed(lines)));
    return path;
  }
  static Result<std::string> Page(const std::string& a, const std::string& b,
                                  const PageOptions& options = {}) {
    const compare::Report report =
        compare::CompareTraces(a, b, {.max_differences = kClassifiedDifferences});
    ASSAY_ASSIGN_OR_RETURN(const Summary summary, Summarize(report));
    return FormatHtml(summary, options);
  }
  // The letters of the rows that are not the same, in order.
  static std::string Kinds(const std::string& a, const std::string& b) {
    const json stream = DataOf(Page(a, b).value()).at("streams").at(0);
    std::string kinds = stream.at("kinds");
    std::erase(kinds, 's');
    return kinds;
  }
  static std::string KindsOf(const std::string& name) {
    return Kinds(Case(name, "a.trace"), Case(name, "b.trace"));
  }

  const TempFolder temp_;
};

TEST_F(PageTest, P1_EachKindOfDifferenceIsItself) {
  EXPECT_EQ(KindsOf("identical"), "");
  EXPECT_EQ(KindsOf("inserted_dispatch"), "ab");
  EXPECT_EQ(KindsOf("removed_barrier"), "b");
  EXPECT_EQ(KindsOf("changed_argument"), "c");
  EXPECT_EQ(KindsOf("wrong_buffer"), "i");
  EXPECT_EQ(KindsOf("inserted_buffer").find_first_not_of("on"), std::string::npos);
  EXPECT_EQ(KindsOf("mixed_versions_different"), "g");
  // The line that declares the kernel, and each dispatch that runs the other code.
  EXPECT_EQ(KindsOf("changed_kernel_code"), "kkkk");
  const std::string renumbered = KindsOf("renumbered");
  EXPECT_GT(renumbered.size(), 2U);
  EXPECT_EQ(renumbered.find_first_not_of('n'), std::string::npos);
}

constexpr std::string_view kHead =
    "assay-trace 2\nbuffer #0 size=64 kind=scratch label=\"a\"\nbuffer #1 size=64 kind=scratch "
    "label=\"b\"\nkernel k0 name=f digest=a1 workgroup=1,1,1\nkernel k1 name=g digest=a2 "
    "workgroup=1,1,1\nbegin\n";

TEST_F(PageTest, P1_AMovedDispatchIsNeitherAddedNorRemoved) {
  const std::string first = "dispatch k0 grid=1,1,1 w#0[0,64)\n";
  const std::string rest = "dispatch k1 grid=1,1,1 w#1[0,8)\ndispatch k1 grid=1,1,1 w#1[8,16)\n";
  const std::string a = Write("a.trace", std::string(kHead) + first + rest + "commit\n");
  const std::string b = Write("b.trace", std::string(kHead) + rest + first + "commit\n");
  const json stream = DataOf(Page(a, b).value()).at("streams").at(0);
  EXPECT_EQ(stream.at("kinds"), "sssssmssms");
  EXPECT_EQ(stream.at("moves"), json({5, 8}));
}

// One insertion shifts nothing: every line of either side stands in one row, in order.
TEST_F(PageTest, C4_EveryEventOfBothSidesHasOneRow) {
  for (const auto& entry :
       fs::directory_iterator(fs::path(ASSAY_SOURCE_DIR) / "tests/golden/compare")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const Result<std::string> page = Page(Case(name, "a.trace"), Case(name, "b.trace"));
    ASSERT_TRUE(page);
    const json data = DataOf(*page);
    if (data.at("streams").empty()) continue;  // Refused.
    const json& stream = data.at("streams").at(0);
    const json& rows_b = stream.at("b").is_null() ? stream.at("a") : stream.at("b");
    for (const auto& [rows, side] : {std::pair(&stream.at("a"), "a.trace"), {&rows_b, "b.trace"}}) {
      const auto events = assay::testing::ReadAllOf(Case(name, side)).value();
      std::vector<int> there;
      for (const int index : *rows) {
        if (index >= 0) there.push_back(index);
      }
      ASSERT_EQ(there.size(), events.size());
      for (size_t i = 0; i < events.size(); ++i) {
        const auto* dispatch = std::get_if<trace::DispatchEvent>(&events[i]);
        const json& shown = stream.at("events").at(static_cast<size_t>(there[i]));
        ASSERT_EQ(shown.at(0) == 0, dispatch != nullptr);
        if (dispatch == nullptr) continue;
        EXPECT_EQ(shown.at(1), dispatch->kernel.value());
        ASSERT_EQ(shown.size(), 7 + dispatch->accesses.size());
        for (size_t k = 0; k < dispatch->accesses.size(); ++k) {
          const json& access = stream.at("accesses").at(shown.at(7 + k).get<size_t>());
          EXPECT_EQ(access.at(1), dispatch->accesses[k].buffer.value());
          EXPECT_EQ(access.at(2), dispatch->accesses[k].range.begin);
          EXPECT_EQ(access.at(3), dispatch->accesses[k].range.end);
        }
      }
    }
  }
}

TEST_F(PageTest, P1_NamesFromATraceStayText) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>&\\xe2\\x80\\xae";
  const std::string lines = "assay-trace 2\nbuffer #0 size=64 kind=scratch label=\"" + hostile +
                            "\"\nkernel k0 name=\"" + hostile +
                            "\" digest=a1 workgroup=1,1,1\nbegin\ndispatch k0 grid=1,1,1 "
                            "w#0[0,64)\n";
  const std::string a = Write("a.trace", lines + "commit\n");
  const std::string b = Write("b<i>&'\".trace", lines + "barrier\ncommit\n");
  const std::string page = Page(a, b).value();
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_THAT(page, HasSubstr("b&#60;i&#62;&#38;&#39;&#34;.trace"));
  size_t ends = 0;
  for (size_t at = page.find("</script"); at != std::string::npos;
       at = page.find("</script", at + 1)) {
    ++ends;
  }
  EXPECT_EQ(ends, 2U);
  const json side = DataOf(page).at("streams").at(0).at("side_a");
  EXPECT_EQ(side.at("buffers").at("0").at(2),
            "</script><img src=x onerror=alert(1)>&\\xe2\\x80\\xae");
}

TEST_F(PageTest, P1_ThePageNeedsNothingElse) {
  const std::string page =
      Page(Case("wrong_buffer", "a.trace"), Case("wrong_buffer", "b.trace")).value();
  for (const char* reference : {"http:", "https:", "src=", "href=", "@import", "url(", " style=\"",
                                "onclick", "innerHTML", "fetch(", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; script-src 'sha256-"));
}

TEST_F(PageTest, P1_RowsBeyondTheLimitAreCounted) {
  const json stream = DataOf(Page(Case("changed_argument", "a.trace"),
                                  Case("changed_argument", "b.trace"), {.max_rows = 10})
                                 .value())
                          .at("streams")
                          .at(0);
  EXPECT_EQ(stream.at("kinds").get<std::string>().size(), 10U);
  EXPECT_EQ(stream.at("cut"), "the page ends behind these rows; the traces have 28 and 28 lines");
}

TEST_F(PageTest, P1_TracesThatChangedMeanwhileAreAnError) {
  const std::string a = Write("a.trace", std::string(kHead) + "commit\n");
  const std::string b = Write("b.trace", std::string(kHead) + "barrier\ncommit\n");
  const Summary summary = Summarize(compare::CompareTraces(a, b)).value();
  ASSERT_TRUE(WriteFile(b, "assay-trace 2\nbegin\n"));
  const Result<std::string> page = FormatHtml(summary, {});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::kIo);
  EXPECT_THAT(page.error().message(), HasSubstr("b.trace\" changed while the report was made"));
}

// The colours that the style gives to names in one of its blocks.
std::map<std::string, std::string> ColoursIn(const std::string& style, const std::string& block) {
  std::map<std::string, std::string> colours;
  size_t at = style.find(block);
  EXPECT_NE(at, std::string::npos) << block;
  const size_t end = style.find('}', at);
  while ((at = style.find("--", at)) < end) {
    const size_t colon = style.find(':', at);
    colours[style.substr(at, colon - at)] =
        style.substr(colon + 2, style.find(';', at) - colon - 2);
    at = colon;
  }
  return colours;
}

// Relative luminance of "#rrggbb", as WCAG 2.2 defines it.
double Luminance(const std::string& colour) {
  EXPECT_EQ(colour.size(), 7U) << colour;
  double sum = 0;
  for (const auto& [at, weight] : {std::pair(1U, 0.2126), {3U, 0.7152}, {5U, 0.0722}}) {
    const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    sum += weight * (value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double Contrast(const std::string& one, const std::string& other) {
  const double a = Luminance(one), b = Luminance(other);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

TEST(ReportTest, P1_TextContrastsInLightAndDark) {
  const std::string style(Assets().style);
  const auto light = ColoursIn(style, ":root {");
  const auto dark = ColoursIn(style, ":root[data-theme=\"dark\"] {");
  // Chosen or as the system has it, dark is one set of colours.
  EXPECT_EQ(dark, ColoursIn(style, ":root:not([data-theme=\"light\"]) {"));
  for (const auto& theme : {light, dark}) {
    for (const char* kind : {"numbering", "barrier", "added", "removed", "moved", "constants",
                             "grid", "bindings", "kernel", "other", "good", "bad", "warn"}) {
      const std::string name = std::string("--") + kind;
      EXPECT_GE(Contrast(theme.at(name), theme.at(name + "-back")), 4.5) << name;
      EXPECT_GE(Contrast(theme.at(name), theme.at("--sheet")), 4.5) << name;
      EXPECT_GE(Contrast(theme.at(name), theme.at("--select")), 4.5) << name;
      EXPECT_GE(Contrast(theme.at("--soft"), theme.at(name + "-back")), 4.5) << name;
    }
    for (const char* back : {"--back", "--sheet", "--band", "--select"}) {
      EXPECT_GE(Contrast(theme.at("--ink"), theme.at(back)), 7.0) << back;
      EXPECT_GE(Contrast(theme.at("--soft"), theme.at(back)), 4.5) << back;
    }
    EXPECT_GE(Contrast(theme.at("--focus"), theme.at("--sheet")), 3.0);
    EXPECT_GE(Contrast(theme.at("--accent"), theme.at("--sheet")), 4.5);
  }
}

}  // namespace
}  // namespace assay::prove
