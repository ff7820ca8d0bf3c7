// The page of a proof in a browser: what its script makes of the streams, driven by the fragment of
// the address, and read back as the document stands when the script is done.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/prove_report.h"

#include "base/file.h"
#include "prove/process.h"
#include "support/temp_folder.h"
#include "support/trace_text.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

constexpr int kGroup = 4;  // Dispatches between two barriers: three products and what joins them.

// A trace of `dispatches` in command buffers of a hundred; `change` may replace the lines of the
// n-th dispatch, which get a barrier behind them when they close a group.
std::string TraceText(int dispatches,
                      const std::function<std::string(int n, std::string line)>& change) {
  std::string text =
      "assay-trace 2\nmeta backend cpu\n"
      "buffer #0 size=65536 kind=weight label=\"blk.0.weights\"\n"
      "buffer #1 size=4096 kind=activation label=\"hidden\"\n"
      "buffer #2 size=4096 kind=activation label=\"queries\"\n"
      "buffer #3 size=65536 kind=kv label=\"k_cache\"\n"
      "buffer #4 size=4096 kind=scratch label=\"</script><img src=x onerror=alert(1)>\"\n"
      "kernel k0 name=matmul.q8_0 digest=a1 workgroup=64,1,1\n"
      "kernel k1 name=attention digest=b2 workgroup=32,1,1\n";
  for (int n = 0; n < dispatches; ++n) {
    if (n % 100 == 0) text += "begin\n";
    const int place = n % kGroup;
    std::string line =
        place < kGroup - 1
            ? fmt::format(
                  "dispatch k0 grid=4,1,1 args=20000000 r#0[{0},{1}) r#1[0,4096) w#2[{2},{3})\n",
                  place * 4096, place * 4096 + 4096, place * 1024, place * 1024 + 1024)
            : fmt::format(
                  "dispatch k1 grid={},1,1 args={:08x} r#2[0,3072) rw#3[0,{}) w#4[0,4096)\n",
                  n / 100 % 8 + 1, n, n % 60000 + 64);
    text += change(n, std::move(line));
    if (place == kGroup - 1) text += "barrier\n";
    if (n % 100 == 99) text += "commit\nwait\n";
  }
  return assay::testing::Sealed(text);
}

std::string AsItIs(int, std::string line) { return line; }

std::string Replaced(std::string line, std::string_view from, std::string_view to) {
  const size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << line;
  return line.replace(at, from.size(), to);
}

// One change of each kind, between dispatches 200 and 1000.
std::string Planted(int n, std::string line) {
  switch (n) {
    case 200:
      return Replaced(line, "grid=4", "grid=5");
    case 300:
      return Replaced(line, "args=20", "args=21");
    case 400:
      return Replaced(line, "w#2[0,1024)", "w#2[0,1008)");
    case 500:
      return Replaced(line, "dispatch k0", "dispatch k1");
    case 600:
      return line + "dispatch k1 grid=9,9,1 args=01 r#1[0,64) w#4[0,64)\n";
    case 701:
      return "";
    case 801:
      return line + "barrier\n";
    case 903:  // Behind dispatch 907.
      return "";
    case 907:
      return line + "dispatch k1 grid=2,1,1 args=00000387 r#2[0,3072) rw#3[0,967) w#4[0,4096)\n";
    default:
      return line;
  }
}

struct Shown {
  std::string document;
  std::string console;  // Lines that the page or the browser about it wrote.
};

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What stands between two marks, the first after `from`.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return {};
  const size_t start = from + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

class ReportBrowserTest : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return (temp_.path() / name).string(); }

  // Writes the page on two traces and returns its path.
  std::string Page(const std::string& a, const std::string& b) const {
    EXPECT_TRUE(WriteFile(In("a.trace"), a));
    EXPECT_TRUE(WriteFile(In("b.trace"), b));
    const compare::Report report = compare::CompareTraces(
        In("a.trace"), In("b.trace"), {.max_differences = kClassifiedDifferences});
    const std::string page = FormatHtml(Summarize(report).value(), {}).value();
    EXPECT_TRUE(WriteFile(In("page.html"), page));
    return In("page.html");
  }
  std::string Page(int dispatches) const {
    return Page(TraceText(dispatches, AsItIs), TraceText(dispatches, Planted));
  }

  ProcessResult Chromium(const std::string& path, const std::string& fragment,
                         std::vector<std::string> flags) const {
    std::vector<std::string> words = {ASSAY_CHROMIUM,
                                      "--headless",
                                      "--no-sandbox",
                                      "--disable-gpu",
                                      "--disable-dev-shm-usage",
                                      "--disable-background-networking",
                                      "--disable-component-update",
                                      "--no-first-run",
                                      "--hide-scrollbars",
                                      "--enable-logging=stderr",
                                      "--virtual-time-budget=10000",
                                      "--window-size=1500,1000",
                                      "--user-data-dir=" + In("profile")};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back("file://" + path + "#" + fragment);
    const Result<ProcessResult> result = RunProcess(words, {.folder = temp_.path().string()});
    EXPECT_TRUE(result);
    if (!result) return {};
    EXPECT_EQ(result->exit_status, 0) << result->err;
    return *result;
  }

  // The document when its script is done, which left nothing on the console.
  std::string Dom(const std::string& path, const std::string& fragment) const {
    const ProcessResult result = Chromium(path, fragment, {"--dump-dom"});
    EXPECT_THAT(result.err, Not(HasSubstr("CONSOLE")));
    EXPECT_THAT(result.out, HasSubstr("data-ready=\"yes\""));
    return result.out;
  }
  static std::string Status(const std::string& dom) {
    return Between(dom, "aria-live=\"polite\">", "</span>");
  }
  static std::string Rows(const std::string& dom) {
    return Between(dom, "id=\"layer\"", "<p id=\"empty\"");
  }

  // The same page with a script of the test at its end, which the page's policy would not let run.
  std::string WithScript(const std::string& path, const std::string& script) const {
    std::string page = ReadFile(path).value();
    const size_t policy = page.find("<meta http-equiv");
    page.erase(policy, page.find('>', policy) + 1 - policy);
    page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
    EXPECT_TRUE(WriteFile(In("driven.html"), page));
    return In("driven.html");
  }

  std::string Screenshot(const std::string& page, const std::string& name,
                         const std::string& fragment) const {
    const fs::path folder = fs::path(ASSAY_SCREENSHOTS);
    fs::create_directories(folder);
    const std::string path = (folder / (name + ".png")).string();
    std::error_code ignored;
    fs::remove(path, ignored);
    const ProcessResult result = Chromium(page, fragment, {"--screenshot=" + path});
    EXPECT_THAT(result.err, Not(HasSubstr("CONSOLE")));
    const std::string image = ReadFile(path).value_or(std::string());
    EXPECT_EQ(image.substr(0, 4), "\x89PNG");
    EXPECT_GT(image.size(), 20'000U);
    return image;
  }

  const TempFolder temp_;
};

TEST_F(ReportBrowserTest, P1_EachPlantedChangeIsShownAsItself) {
  const std::string page = Page(1000);
  const std::string dom = Dom(page, "diffs=1");
  EXPECT_EQ(Status(dom), "9 rows shown of 1,291; 9 differences, at 1");
  std::map<std::string, size_t> kinds;
  for (const char* kind : {"grid", "constants", "bindings", "kernel", "added", "removed", "barrier",
                           "moved", "numbering", "same", "other"}) {
    kinds[kind] = Count(Rows(dom), fmt::format("data-kind=\"{}\"", kind));
  }
  EXPECT_EQ(kinds, (std::map<std::string, size_t>{{"grid", 1},
                                                  {"constants", 1},
                                                  {"bindings", 1},
                                                  {"kernel", 1},
                                                  {"added", 1},
                                                  {"removed", 1},
                                                  {"barrier", 1},
                                                  {"moved", 2},
                                                  {"numbering", 0},
                                                  {"same", 0},
                                                  {"other", 0}}));
}

TEST_F(ReportBrowserTest, P1_RowsAreMadeOnlyWhereTheyAreSeen) {
  const std::string page = Page(100'000);
  for (const std::string fragment : {"first=0", "row=120000"}) {
    const std::string rows = Rows(Dom(page, fragment));
    EXPECT_THAT(Count(rows, "role=\"row\""), AllOf(::testing::Ge(10U), Le(80U))) << fragment;
  }
  const std::string dom = Dom(page, "row=120000");
  EXPECT_THAT(Rows(dom), HasSubstr("id=\"row-120000\""));
  EXPECT_THAT(Status(dom), HasSubstr("127,003 rows shown of 128,011; 9 differences"));
}

TEST_F(ReportBrowserTest, P1_FiltersShowWhatTheyName) {
  const std::string page = Page(1000);
  const std::string kernels = Dom(page, "kernel=ATTENT&row=0");
  EXPECT_EQ(Status(kernels), "254 rows shown of 1,291; 9 differences");
  const std::string rows = Rows(kernels);
  EXPECT_EQ(Count(rows, "role=\"row\""), Count(rows, "data-row="));
  EXPECT_GT(Count(rows, "<b>attention</b>"), 20U);
  // Only where the other side runs attention is there another kernel.
  EXPECT_LE(Count(rows, "<b>matmul.q8_0</b>"), 1U);
  EXPECT_THAT(Status(Dom(page, "buffer=k_cache")), HasSubstr("252 rows shown"));
  EXPECT_THAT(Status(Dom(page, "buffer=%233")), HasSubstr("252 rows shown"));
  EXPECT_THAT(Status(Dom(page, "buffer=k_cache&diffs=1")), HasSubstr("2 rows shown"));
  EXPECT_THAT(Dom(page, "kernel=nothing"), Not(HasSubstr("id=\"empty\" hidden")));
}

TEST_F(ReportBrowserTest, P1_ARowsDetailHasItsBindings) {
  const std::string dom = Dom(Page(1000), "row=12");
  const std::string detail = Between(dom, "id=\"detail\"", "</aside>");
  EXPECT_THAT(detail, HasSubstr("k_cache"));
  EXPECT_THAT(detail, HasSubstr("rw"));
  EXPECT_THAT(detail, HasSubstr("one of 4 between two barriers"));
  EXPECT_THAT(detail, HasSubstr(">32,1,1<"));
}

TEST_F(ReportBrowserTest, P1_NamesStayTextInTheDocument) {
  const std::string dom = Dom(Page(1000), "row=12");
  EXPECT_THAT(dom, Not(HasSubstr("<img")));
  EXPECT_THAT(Between(dom, "id=\"detail\"", "</aside>"),
              HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

TEST_F(ReportBrowserTest, P1_TheKeyboardGoesFromDifferenceToDifference) {
  const std::string page = WithScript(Page(1000), R"(
    const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {key}));
    const at = () => document.querySelector(".row.selected").dataset.kind;
    const seen = [at()];
    for (let i = 0; i < 8; ++i) { press("n"); seen.push(at()); }
    press("n");
    seen.push(document.getElementById("status").textContent);
    press("p");
    press("p");
    seen.push(at());
    press("d");
    seen.push(String(document.querySelectorAll(".row").length));
    const kernel = document.getElementById("kernel");
    kernel.value = "attention";
    kernel.dispatchEvent(new Event("input"));
    seen.push(String(document.querySelectorAll(".row").length));
    document.title = seen.join(" ");)");
  EXPECT_EQ(Between(Dom(page, ""), "<title>", "</title>"),
            "grid constants bindings kernel added removed barrier moved moved "
            "There is no further difference. barrier 9 4");
}

TEST_F(ReportBrowserTest, P1_LightAndDarkAreDrawn) {
  const std::string page = Page(1000);
  EXPECT_THAT(Dom(page, "theme=light"), HasSubstr("name=\"theme-color\" content=\"#ffffff\""));
  EXPECT_THAT(Dom(page, "theme=dark"), HasSubstr("name=\"theme-color\" content=\"#171c25\""));
  // Without a choice the page is as the system has it.
  const ProcessResult system =
      Chromium(page, "", {"--dump-dom", "--blink-settings=preferredColorScheme=0"});
  EXPECT_THAT(system.out, HasSubstr("name=\"theme-color\" content=\"#171c25\""));
  EXPECT_NE(Screenshot(page, "light", "theme=light"), Screenshot(page, "dark", "theme=dark"));
}

TEST_F(ReportBrowserTest, P1_AHundredThousandDispatchesAreDrawn) {
  Screenshot(Page(100'000), "large", "row=700");
}

}  // namespace
}  // namespace assay::prove
