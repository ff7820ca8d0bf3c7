#!/usr/bin/env python3
"""Tests of mutant.py: a fault that survives, that too many tests see, or that no longer applies is never taken for killed."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutant.py")
PATCH = """Fault: two is three.
Kills: {kills}

--- a/code/two.cc
+++ b/code/two.cc
@@ -1,3 +1,3 @@
 int Two() {{
-  return 2;
+  return 3;
 }}
"""
# Stands for a gtest binary: lists its tests, and fails those named in FAILS.
BINARY = """#!/bin/sh
if [ "$1" = --gtest_list_tests ]; then
  printf 'Running main()\\nNumbers.\\n  One\\n  Two\\nWords/Values.\\n  Three/0  # GetParam() = 3\\n'
  exit 0
fi
name=${{1#--gtest_filter=}}
for failing in {fails}; do
  [ "$failing" = "$name" ] && exit 1
done
echo '[  PASSED  ] {passed} test.'
"""


class MutantTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_script(self, *arguments):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def check(self, kills, fails, passed=1):
        patch = self.write("x.patch", PATCH.format(kills=kills))
        binary = self.write("binary", BINARY.format(fails=fails, passed=passed))
        os.chmod(binary, 0o755)
        return self.run_script("check", "--patch", patch, "--binary", binary)

    def apply(self, source, patch=PATCH.format(kills="Numbers.Two"), sources=("code/two.cc",)):
        self.write("tree/code/two.cc", source)
        return self.run_script("apply", "--root", self.path("tree"), "--patch", self.write("x.patch", patch),
                               "--out", self.path("out"), *sources)

    def test_exactly_the_named_tests_fail(self):
        self.assertEqual(self.check("Numbers.Two", "Numbers.Two"), (0, "KILLED by 1 of 3 tests: two is three.\n"))
        self.assertEqual(self.check("Numbers.Two Words/Values.Three/0", "Numbers.Two Words/Values.Three/0")[0], 0)

    def test_a_survivor_is_a_failure(self):
        code, text = self.check("Numbers.Two", "''")
        self.assertEqual(code, 1)
        self.assertIn("SURVIVED: Numbers.Two passes.", text)

    def test_one_more_failing_test_is_a_failure(self):
        code, text = self.check("Numbers.Two", "Numbers.Two Numbers.One")
        self.assertEqual(code, 1)
        self.assertIn("TOO MUCH: Numbers.One fails", text)

    def test_a_test_that_does_not_exist_is_a_failure(self):
        code, text = self.check("Numbers.Four", "''")
        self.assertEqual(code, 1)
        self.assertIn("do not exist: Numbers.Four", text)

    def test_a_test_that_runs_nothing_is_a_failure(self):
        self.assertEqual(self.check("Numbers.Two", "Numbers.Two", passed=0)[0], 1)

    def test_a_patch_is_applied_to_a_copy(self):
        source = "int Two() {\n  return 2;\n}\n"
        self.assertEqual(self.apply(source)[0], 0)
        with open(self.path("out/code/two.cc"), encoding="utf-8") as file:
            self.assertIn("return 3;", file.read())
        with open(self.path("tree/code/two.cc"), encoding="utf-8") as file:
            self.assertEqual(file.read(), source)

    def test_a_patch_that_no_longer_applies_is_a_failure(self):
        for source in ("int Two() {\n  return 1 + 1;\n}\n", "int Two() {\n  return 3;\n}\n"):
            code, text = self.apply(source)
            self.assertEqual(code, 1)
            self.assertIn("no longer applies", text)
            self.assertFalse(os.path.exists(self.path("out/code/two.cc")))

    def test_a_patch_without_its_head_or_for_other_files_is_a_failure(self):
        source = "int Two() {\n  return 2;\n}\n"
        self.assertEqual(self.apply(source, PATCH.format(kills="").replace("Kills: \n", ""))[0], 1)
        self.assertEqual(self.apply(source, PATCH.format(kills="A.B").replace("Fault", "Error"))[0], 1)
        self.assertEqual(self.apply(source, sources=("code/two.cc", "code/three.cc"))[0], 1)


unittest.main()
