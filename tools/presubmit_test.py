#!/usr/bin/env python3
"""Tests of the rules: for each a small tree that it must catch and a near miss that it must let pass."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import presubmit  # noqa: E402
from checks import counts, cpp, lint, orphans, tidy  # noqa: E402
from checks.tree import Tree  # noqa: E402


def header(guard, body="", comment="// A: what it is for.\n"):
    return f"{comment}#ifndef {guard}\n#define {guard}\n{body}\n#endif  // {guard}\n"


COUNTS = json.dumps({"lint_exceptions": 1, "expected_failures": 0, "skipped_tests": 1})

# Rule -> (trees it must catch, trees it must let pass). A tree is a path -> text.
CASES = {
    "ascii": (
        [{"src/base/a.cc": "// caf\u00e9\n"}, {"README.md": "a \u2013 b\n"}],
        [{"src/base/a.cc": '// cafe "\\u00e9"\n'}, {"tests/data/words.txt": "\u00e9\n"}],
    ),
    "whitespace": (
        [{"a.py": "x = 1 \n"}, {"a.py": "x = 1"}, {"a.cc": "\tint x;\n"}, {"a.cc": "int x;\r\n"}, {"a.md": "a\n\n"}],
        [{"a.py": "x = 1\n"}, {"Makefile": "a:\n\tb\n"}, {"a.py": ""}],
    ),
    "length": (
        [{"src/a/a.h": "//\n" * 401}, {"src/a/a.cc": "//\n" * 801}],
        [{"src/a/a.h": "//\n" * 400, "src/a/a.cc": "//\n" * 800, "include/assay/a.h": "//\n" * 500,
          "README.md": "a\n" * 900}],
    ),
    "todo": (
        [{"a.cc": "// TODO: later\n"}, {"a.cc": "// TODO(me): later\n"}, {"a.cc": "// TODO(#3) later\n"},
         {"a.py": "# FIXME\n"}],
        [{"a.cc": "// TODO(#3): later\n"}, {"a.cc": "int todos;\n"}],
    ),
    "words": (
        [{"a.cc": "// see /work/x\n"}, {"README.md": "an agent wrote it\n"}, {"a.cc": "// Previously a list.\n"},
         {"README.md": "Co-authored-by: somebody\n"}],
        [{"a.cc": 'auto p = "/home/x";\n'}, {"a.cc": "// The reagent of src/work/x.\n"}, {"README.md": "~/work/x\n"}],
    ),
    "references": (
        [{"a.cc": "// See docs/none.md.\n"}, {"Makefile": "a:\n\tpython3 tools/none.py\n"}],
        [{"a.cc": "// See docs/a.md.\n", "docs/a.md": "\n"}, {"a.cc": "// See src/<name>/a.cc, build/src/a.cc.\n"},
         {"a.cc": 'auto p = "docs/none.md";\n'}],
    ),
    "guards": (
        [{"src/base/a.h": header("ASSAY_A_H_")}, {"src/base/a.h": "// A.\n#pragma once\n"},
         {"src/base/a.h": header("ASSAY_BASE_A_H_", comment="")},
         {"src/base/a.h": header("ASSAY_BASE_A_H_").replace("#endif  // ASSAY_BASE_A_H_", "#endif")},
         {"include/assay/a.h": header("ASSAY_INCLUDE_ASSAY_A_H_")}],
        [{"src/base/a.h": header("ASSAY_BASE_A_H_")}, {"include/assay/a.h": header("ASSAY_A_H_")},
         {"tests/x/a.h": header("ASSAY_TESTS_X_A_H_")},
         {"src/kernels/a-inl.h": "// A.\n#if defined(ASSAY_KERNELS_A_INL_H_) == defined(HWY_TARGET_TOGGLE)\n"
                                 "#endif  // ASSAY_KERNELS_A_INL_H_\n"}],
    ),
    "nolint": (
        [{"a.cc": "int x;  // NOLINT\n"}, {"a.cc": "// NOLINTNEXTLINE\nint x;\n"}],
        [{"a.cc": "int x;  // NOLINT(google-explicit-constructor): converts on purpose\n"}],
    ),
    "includes": (
        [{"include/assay/a.h": '#include "base/file.h"\n'}, {"include/assay/a.h": "#include <fmt/core.h>\n"},
         {"src/trace/a.cc": '#include "assay/gpu.h"\n'}, {"src/compare/a.cc": '#include "record/x.h"\n'},
         {"src/base/a.cc": '#include "trace/x.h"\n'}, {"src/llm/a.cc": '#include "gpu/cpu/pool.h"\n'},
         {"src/record/a.cc": '#include "gpu/null/null.h"\n'}, {"src/llm/a.cc": '#include "gpu/cpu/cpu_kernel.h"\n'},
         {"src/gpu/a.h": "#include <hwy/highway.h>\n"}, {"src/cli/a.h": "#include <CLI/CLI.hpp>\n"},
         {"src/cli/a.h": "#include <nlohmann/json.hpp>\n"}, {"src/gpu/a.cc": '#include "backend.h"\n'},
         {"src/gpu/a.cc": '#include "../base/file.h"\n'}, {"examples/a.cc": '#include "base/file.h"\n'},
         {"include/assay/trace.h": '#include "assay/gpu.h"\n'},
         {"include/assay/trace.h": '#include "assay/gpu_schedule.h"\n'}, {"src/tools/a.cc": "int x;\n"}],
        [{"include/assay/gpu.h": '#include "assay/gpu_schedule.h"\n'},
         {"include/assay/gpu.h": '#include <vector>\n#include <tl/expected.hpp>\n#include "assay/base.h"\n'},
         {"src/record/a.cc": '#include "assay/gpu.h"\n#include "assay/trace.h"\n#include "gpu/backend.h"\n'},
         {"src/gpu/backends.cc": '#include "gpu/cpu/cpu.h"\n#include "gpu/null/null.h"\n'},
         {"src/kernels/add/cpu.cc": '#include "gpu/cpu/cpu_kernel.h"\n#include <hwy/highway.h>\n'},
         {"tests/gpu/a.cc": '#include "gpu/cpu/cpu_kernel.h"\n'}, {"src/trace/a.cc": '// #include "assay/gpu.h"\n'}, {"src/cli/a.cc": "#include <CLI/CLI.hpp>\n"},
         {"src/cli/a.h": "#include <nlohmann/json_fwd.hpp>\n"}, {"examples/a.cc": '#include "assay/base.h"\n'},
         {"src/gpu/cpu/pool_test.cc": '#include "gpu/cpu/pool.h"\n#include <gtest/gtest.h>\n'},
         {"src/kernels/dot-inl.h": "#include <hwy/highway.h>\n"}],
    ),
    "links": (
        [{"README.md": "[a](docs/none.md)\n"}, {"docs/a.md": "[a](../b.md)\n"}, {"a.md": "# X\n[a](#y)\n"},
         {"a.md": "[a](b.md#no)\n", "b.md": "# Yes\n"}],
        [{"README.md": "[a](docs/a.md) [b](docs) [c](https://example.org/x)\n", "docs/a.md": "[b](../README.md)\n"},
         {"a.md": "# X y\n[a](#x-y)\n"}, {"a.md": "```\n[a](none.md)\n```\n"}],
    ),
    "names": (
        [{"a.md": "see `src/none.cc`\n"}, {"a.md": "`src/a.{h,cc}`\n", "src/a.h": ""}, {"a.md": "`docs/<name>.txt`\n"}],
        [{"a.md": "see `src/a.cc`, `src/` and `build/assay`\n", "src/a.cc": ""},
         {"a.md": "`src/<name>/x.cc`\n", "src/b/x.cc": ""}, {"a.md": "`src/a.{h,cc}`\n", "src/a.h": "", "src/a.cc": ""}],
    ),
    "documents": (
        [{"README.md": ""},
         dict.fromkeys(("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"), "")
         | {"ARCHITECTURE.md": "a\n" * 201},
         dict.fromkeys(("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "ARCHITECTURE.md"), "")
         | {"docs/README.md": "", "docs/a.md": ""}],
        [dict.fromkeys(("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "ARCHITECTURE.md"), "")
         | {"docs/README.md": "[a](a.md)\n", "docs/a.md": ""}],
    ),
    "counts": (
        [{}, {counts.PATH: COUNTS, "a.cc": "// NOLINT(a)\n// NOLINT(b)\nGTEST_SKIP();\n"},
         {counts.PATH: COUNTS, "a.cc": "GTEST_SKIP();\n"}, {counts.PATH: "{}"},
         {counts.PATH: COUNTS, "a.cc": "// NOLINT(a)\nTEST(A, DISABLED_B) {}\nGTEST_SKIP();\n"},
         {counts.PATH: COUNTS, "a.cc": "// NOLINT(a)\nGTEST_SKIP();\n",
          "tests/CMakeLists.txt": "set_tests_properties(a PROPERTIES WILL_FAIL TRUE)\n"},
         {counts.PATH: COUNTS, "a.cc": "// NOLINT(a)\nGTEST_SKIP();\n", "tests/cpu_expected_failures.txt": "A.B\n"}],
        [{counts.PATH: COUNTS, "a.cc": "// NOLINT(a)\nGTEST_SKIP();  // GTEST_SKIP\n",
          "tests/compile_fail/CMakeLists.txt": "set_tests_properties(a PROPERTIES WILL_FAIL TRUE)\n",
          "tests/cpu_expected_failures.txt": "# none\n"}],
    ),
    "scripts": (
        [{"a.sh": "set -euo pipefail\nif\n"}, {"a.sh": "#!/bin/bash\n"}, {"a.py": "def f(:\n"}],
        [{"a.sh": "#!/bin/bash\nset -euo pipefail\n"}, {"a.py": "x = 1\n"}],
    ),
    "links-cmake": (
        [{"src/trace/CMakeLists.txt": "assay_library(assay_trace\n  SOURCES a.cc DEPS assay_pool)\n",
          "src/gpu/x/CMakeLists.txt": "assay_library(assay_pool SOURCES a.cc)\n"}],
        [{"src/record/CMakeLists.txt": "assay_library(assay_record SOURCES a.cc DEPS assay_gpu fmt::fmt)\n",
          "src/gpu/CMakeLists.txt": "assay_library(assay_gpu SOURCES a.cc)\n"},
         {"src/trace/CMakeLists.txt": "assay_test(trace_test SOURCES a_test.cc DEPS assay_gpu)\n",
          "src/gpu/CMakeLists.txt": "assay_library(assay_gpu SOURCES a.cc)\n"}],
    ),
}

# Banned pattern -> (lines it must catch in src/base/a.cc, lines it must let pass there), or with a path before them.
LINES = {
    "print": (["std::cout << 1;", 'printf("x");', 'std::fprintf(stderr, "x");'],
              ['snprintf(b, n, "x");', "x.puts();", "// std::cout", 'auto s = "std::cout";']),
    "exit": (["exit(1);", "std::abort();"], ["atexit(f);", "x.exit();", "void Pool::Exit();"]),
    "throw": (["throw Error();"], ["throw;", "// throw it", "nothrow(x);"]),
    "using-namespace": (["using namespace std;"], ["using std::vector;", "namespace fs = std::filesystem;"]),
    "rand": (["int x = rand();", "std::random_device d;"], ["g.rand();", "brand(x);", "std::mt19937_64 random(7);"]),
    "assert": (["assert(x);", "#include <cassert>"], ["static_assert(x);", "my_assert(x);"]),
    "thread-local": (["thread_local int x = 0;"], ["// thread_local"]),
    "endl": (["o << std::endl;"], ["o << '\\n';"]),
    "pragma-once": (["#pragma once"], ["// #pragma once"]),
    "delete": (["delete x;  // it", "delete[] x + 1;"], ["A(const A&) = delete;", "Delete(x);"]),
    "malloc": (["auto* p = malloc(3);", "std::free(p);"], ["x.free();", "Malloc(3);", "is_free(x);"]),
    "regex": (["std::regex r;"], ["pcre2_code* regex;"]),
    "clang-14": (["for (auto x : std::views::iota(0, 3)) {}", "#include <format>"], ["std::string_view views;"]),
    "mutable-static": (["static int count = 0;", "  static std::vector<int> seen;", "static std::atomic<int> n{0};"],
                       ["static const int kCount = 0;", "static constexpr int kN = 1;", "static int Count();",
                        "static Result<A> Make(int x);", "static_assert(x == 1);", "static_cast<int>(x);"]),
    "mutable-global": (["int g_count = 0;", "std::atomic<bool> stop{false};", "std::string name;", "volatile int x[3];"],
                       ["constexpr int kN = 1;", "const std::string kName = f();", "inline constexpr int kN = 1;",
                        "  int local = 0;", "using A = int;", "int Count();", "return x;"]),
}
TEST_LINES = {"sleep": (["std::this_thread::sleep_for(x);", "usleep(3);", "sleep(1);"], ["x.sleep(1);", "DoSleep(1);"])}


def run(rule, files):
    return [p for p in presubmit.RULES[rule](Tree.from_dict(files)) if p.rule != "unrelated"]


class RulesTest(unittest.TestCase):
    def test_every_rule_has_a_case(self):
        tested_here = {"banned", "format", "tidy", "orphans", "spelling"}
        self.assertEqual(set(presubmit.RULES), set(CASES) | tested_here)
        self.assertEqual({name for name, *_ in cpp.BANNED}, set(LINES) | set(TEST_LINES))

    def test_rules(self):
        for rule, (bad, good) in CASES.items():
            for files in bad:
                with self.subTest(rule=rule, bad=files):
                    self.assertTrue(run(rule, files))
            for files in good:
                with self.subTest(rule=rule, good=files):
                    self.assertEqual([str(p) for p in run(rule, files)], [])

    def test_banned_lines(self):
        for path, table in (("src/base/a.cc", LINES), ("src/base/a_test.cc", TEST_LINES)):
            for rule, (bad, good) in table.items():
                # At the start of a line a declaration is a global; only that rule's own lines stand there.
                indent = "" if rule.startswith("mutable") else "  "
                bad, good = [[indent + line for line in lines] for lines in (bad, good)]
                for line in bad:
                    with self.subTest(rule=rule, bad=line):
                        self.assertEqual([p.rule for p in run("banned", {path: line + "\n"})], [rule])
                        excused = f"{line}  // NOLINT(assay-{rule}): needed\n"
                        self.assertEqual(run("banned", {path: excused}), [])
                for line in good:
                    with self.subTest(rule=rule, good=line):
                        self.assertEqual([str(p) for p in run("banned", {path: line + "\n"})], [])

    def test_banned_only_where_it_counts(self):
        self.assertEqual(run("banned", {"src/cli/main.cc": "std::cout << 1;\nexit(1);\n"}), [])
        self.assertEqual(run("banned", {"src/base/a_test.cc": "std::cout << 1;\nthrow 1;\n"}), [])
        self.assertEqual(run("banned", {"src/base/a.cc": "std::this_thread::sleep_for(x);\n"}), [])


class CommentsTest(unittest.TestCase):
    def test_code_comments_and_strings_are_told_apart(self):
        tree = Tree.from_dict({"a.cc": '''a("// no"); // yes\nR"x(throw
)x"; /* b\nc */ d('"'); 1'000'000; // end\n'''})
        self.assertEqual(tree.code("a.cc").split(), ['a("");', '"', '";', "d(\"\");", "1'000'000;"])
        self.assertEqual(tree.comments("a.cc").split(), ["//", "yes", "/*", "b", "c", "*/", "//", "end"])
        self.assertEqual(tree.code("a.cc").count("\n"), tree.read("a.cc").count("\n"))


class ProgramsTest(unittest.TestCase):
    """The rules that call other programs, on trees on disk."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="assay presubmit ")
        self.root = os.path.realpath(self._folder.name)
        os.environ["XDG_CACHE_HOME"] = os.path.join(self.root, ".cache")

    def tearDown(self):
        self._folder.cleanup()

    def tree(self, files):
        for path, text in files.items():
            full = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return Tree(self.root, files)

    def test_format(self):
        self.assertTrue(lint.find_tool("clang-format"), "run tools/install_deps.sh check")
        files = {".clang-format": "BasedOnStyle: Google\n", "a b.cc": "int  x;\n", "c.cc": "int x;\n"}
        self.assertEqual([p.path for p in lint.clang_format(self.tree(files))], ["a b.cc"])
        list(lint.clang_format(self.tree(files), fix=True))
        self.assertEqual(list(lint.clang_format(Tree(self.root, files))), [])

    def test_tidy_and_its_cache(self):
        files = {".clang-tidy": "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n",
                 "a.cc": '#include "b.h"\n', "b.h": "int* p = 0;\n"}
        tree = self.tree(files)
        database = os.path.join(self.root, "compile_commands.json")
        with open(database, "w", encoding="utf-8") as file:
            json.dump([{"directory": self.root, "file": "a.cc", "command": "clang++-14 -c a.cc"}], file)
        self.assertEqual([(p.path, p.line) for p in tidy.clang_tidy(tree, database)], [("b.h", 1)])
        # What failed is not remembered as clean; a mended header is seen through its includer.
        self.assertEqual(len(list(tidy.clang_tidy(tree, database))), 1)
        tree = self.tree(files | {"b.h": "int* p = nullptr;\n"})
        self.assertEqual(list(tidy.clang_tidy(tree, database)), [])
        tree = self.tree(files)
        self.assertEqual(len(list(tidy.clang_tidy(tree, database))), 1)

    def test_tidy_judges_sources_together(self):
        hidden = "namespace n {\n  int Hidden() { int* p = %s; return p == nullptr; }\n}\n"
        files = {".clang-tidy": "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n",
                 "r/a.cc": "int* pa = 0;\n", "r/b.cc": "int* pb = 0;\n", "r/c.cc": "int* pa = 0;\n",
                 "s/d.cc": hidden % "0", "s/e.cc": hidden % "nullptr", "s/f.cc": "#undef X\n"}
        tree = self.tree(files)
        database = os.path.join(self.root, "compile_commands.json")
        with open(database, "w", encoding="utf-8") as file:
            json.dump([{"directory": self.root, "file": path, "command": f"clang++-14 -o x.o -c {path}"}
                       for path in files if path.endswith(".cc")], file)
        flags = tidy.compile_flags(tree, database)
        self.assertEqual(flags["r/a.cc"], [])
        # Not two that define one name, and not what steers itself by macros.
        self.assertEqual(sorted(tidy.batches(tree, flags, flags)), [
            ["r/a.cc", "r/b.cc"], ["r/c.cc"], ["s/d.cc", "s/e.cc"], ["s/f.cc"]])
        # What then still does not compile is judged source by source.
        said = []
        found = sorted((p.path, p.line) for p in tidy.clang_tidy(tree, database, said.append))
        self.assertEqual(found, [("r/a.cc", 1), ("r/b.cc", 1), ("r/c.cc", 1), ("s/d.cc", 2)])
        self.assertEqual(len(said), 1)
        self.assertIn("Hidden", said[0])
        self.assertEqual(len(list(tidy.clang_tidy(tree, database))), 4)

    def test_spelling(self):
        if not presubmit.lint.shutil.which("codespell"):
            self.fail("run tools/install_deps.sh check")
        tree = self.tree({lint.WORDS: "teh\n", "a.md": "teh recieve FileTest\n"})
        self.assertEqual([p.path for p in lint.codespell(tree)], ["a.md"])
        tree = self.tree({lint.WORDS: "teh\n", "a.md": "teh receive FileTest\n"})
        self.assertEqual(list(lint.codespell(tree)), [])

    def test_executable_bit(self):
        tree = self.tree({"a.sh": "set -euo pipefail\n"})
        self.assertEqual(len(list(lint.scripts(tree))), 1)
        os.chmod(os.path.join(self.root, "a.sh"), 0o755)
        self.assertEqual(list(lint.scripts(tree)), [])

    ORPHAN_TREE = {
        ".ci/run": "for preset in asan; do\nmake test\n",
        "CMakePresets.json": json.dumps({
            "version": 6,
            "configurePresets": [
                {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build"},
                {"name": "asan", "generator": "Ninja", "binaryDir": "${sourceDir}/build-asan",
                 "cacheVariables": {"EXTRA": "ON"}}],
            "testPresets": [{"name": "release", "configurePreset": "release"},
                            {"name": "asan", "configurePreset": "asan"}]}),
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.25)\nproject(x CXX)\nenable_testing()\n"
                          "add_executable(run_test src/run_test.cc)\nadd_test(NAME run COMMAND run_test)\n"
                          "add_executable(built_test src/built_test.cc)\n"
                          "if(EXTRA)\n  add_executable(extra_test src/extra_test.cc tests/case.cc)\n"
                          "  add_test(NAME extra COMMAND extra_test)\nendif()\n"
                          "if(NEVER)\n  add_executable(never_test src/never_test.cc)\n"
                          "  add_test(NAME never COMMAND never_test)\nendif()\n"
                          "add_executable(off_test src/off_test.cc)\nadd_test(NAME off COMMAND off_test)\n"
                          "set_tests_properties(off PROPERTIES DISABLED TRUE)\n"
                          "add_executable(threads_test src/threads_test.cc)\nadd_test(NAME threads COMMAND threads_test)\n"
                          "add_executable(raced_test src/raced_test.cc)\nadd_test(NAME raced COMMAND raced_test)\n"
                          "add_custom_target(assay_tsan_tests)\nadd_dependencies(assay_tsan_tests raced_test)\n"
                          "add_test(NAME script COMMAND bash ${CMAKE_SOURCE_DIR}/tests/run.sh)\n",
    } | {f"{name}.cc": "int main() {}\n" for name in (
        "src/run_test", "src/built_test", "src/extra_test", "src/never_test", "src/off_test", "src/alone_test", "tests/case",
        "tests/alone", "fuzz/alone_fuzz")} | {
        "tests/run.sh": "", "tests/alone.sh": "", "tests/data/used.txt": "", "tests/data/alone.txt": "",
        "tests/golden/all/a.txt": "", "src/reader_test.cc": '// "used.txt" and "tests/golden/all/"\n',
        "fuzz/corpus/nobody_fuzz/a": "", "src/threads_test.cc": "#include <thread>\n",
        "src/raced_test.cc": "#include <thread>\n"}

    def test_orphans(self):
        tree = self.tree(self.ORPHAN_TREE)
        self.assertEqual(orphans.ci_presets(tree), ["asan", "release"])
        builds = [orphans.configure(tree, preset, self.fail) for preset in orphans.ci_presets(tree)]
        found = {p.path for p in orphans.orphans(tree, builds)}
        self.assertEqual(found, {
            "src/built_test.cc", "src/never_test.cc", "src/off_test.cc", "src/alone_test.cc", "src/reader_test.cc",
            "tests/alone.cc", "tests/alone.sh", "fuzz/alone_fuzz.cc", "tests/data/alone.txt", "fuzz/corpus/nobody_fuzz",
            "src/threads_test.cc", "CMakeLists.txt"})

    def test_no_presets_is_a_problem(self):
        self.assertEqual(len(list(presubmit.run_orphans(self.tree({".ci/run": "true\n"})))), 1)


class CommandTest(unittest.TestCase):
    SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "presubmit.py")

    def presubmit(self, *arguments):
        return subprocess.run([sys.executable, self.SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def test_status(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "a.cc"), "w", encoding="utf-8") as file:
                file.write("// TODO: x\n")
            self.assertEqual(self.presubmit("--root", root, "--rules", "todo").returncode, 1)
            self.assertEqual(self.presubmit("--root", root, "--rules", "ascii").returncode, 0)
            self.assertEqual(self.presubmit("--root", root, "--rules", "none").returncode, 64)


if __name__ == "__main__":
    unittest.main()
