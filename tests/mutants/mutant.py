#!/usr/bin/env python3
"""A mutant is a library with one fault put in by a patch: the tests that the patch names must fail, every other must pass.

  mutant.py apply --root TREE --patch P --out FOLDER SOURCE...   copies the sources (paths in TREE) and applies the patch
  mutant.py check --patch P --binary B                           runs every test of the gtest binary B, one by one

The head of a patch, before its first `---` line, says what is wrong and which tests must see it, the complete list:

  Fault: the earlier buffer keeps the name of an address.
  Kills: NamingRuleTest.T3_AReusedAddressNamesTheNewBuffer

Exit status: 0 fine, 1 not, with the reason on stderr.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

TIMEOUT_S = 60


def fail(message):
    print(f"mutant: {message}", file=sys.stderr)
    sys.exit(1)


def read_patch(path):
    """The fault in words, the names of the tests that see it, and the files it changes."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head = re.split(r"^--- ", text, maxsplit=1, flags=re.M)[0]
    faults = re.findall(r"^Fault: (\S.*)$", head, re.M)
    kills = [name for line in re.findall(r"^Kills: (.*)$", head, re.M) for name in line.split()]
    changed = re.findall(r"^\+\+\+ b/(\S+)", text, re.M)
    if len(faults) != 1 or not kills or not changed:
        fail(f"{path} must have one `Fault:` line, a `Kills:` line and a change, in this order.")
    if len(kills) != len(set(kills)):
        fail(f"{path} names a test twice.")
    return faults[0], set(kills), set(changed)


def apply(root, patch, out, sources):
    _, _, changed = read_patch(patch)
    if changed != set(sources):
        fail(f"{patch} changes {', '.join(sorted(changed))}, but the mutant is built from {', '.join(sources)}.")
    shutil.rmtree(out, ignore_errors=True)
    for source in sources:
        os.makedirs(os.path.dirname(os.path.join(out, source)), exist_ok=True)
        shutil.copyfile(os.path.join(root, source), os.path.join(out, source))
    done = subprocess.run(["patch", "--batch", "--forward", "--fuzz=0", "-p1", "-d", out, "-i", os.path.abspath(patch)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(out, ignore_errors=True)
        fail(f"{patch} no longer applies; make it anew from the sources as they are.\n{done.stdout}{done.stderr}")


def list_tests(binary):
    listing = subprocess.run([binary, "--gtest_list_tests"], capture_output=True, text=True, check=True,
                             timeout=TIMEOUT_S).stdout
    suite = ""
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if not name.startswith(" ") and name.endswith("."):
            suite = name
        elif name.startswith("  "):
            yield suite + name.strip()


def check(patch, binary):
    fault, kills, _ = read_patch(patch)
    tests = list(list_tests(binary))
    unknown = kills - set(tests)
    if unknown:
        fail(f"{patch} names tests that do not exist: {', '.join(sorted(unknown))}.")
    failed, silent = set(), []
    for test in tests:
        # One process a test: a mutant may well crash.
        try:
            run = subprocess.run([binary, f"--gtest_filter={test}"], capture_output=True, text=True, check=False,
                                 timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            fail(f"{test} does not end within {TIMEOUT_S} s under the fault: {fault}")
        if run.returncode != 0:
            failed.add(test)
        elif "[  PASSED  ] 1 test." not in run.stdout:
            silent.append(test)
    if silent:
        fail(f"these tests neither passed nor failed: {', '.join(silent)}.")
    for test in sorted(kills - failed):
        print(f"SURVIVED: {test} passes.", file=sys.stderr)
    for test in sorted(failed - kills):
        print(f"TOO MUCH: {test} fails, though the patch does not name it.", file=sys.stderr)
    if failed != kills:
        fail(f"the wrong tests saw the fault: {fault}")
    print(f"KILLED by {len(kills)} of {len(tests)} tests: {fault}")


def main():
    parser = argparse.ArgumentParser(description="Builds and checks mutants.")
    commands = parser.add_subparsers(dest="command", required=True)
    applying = commands.add_parser("apply")
    applying.add_argument("--root", required=True)
    applying.add_argument("--patch", required=True)
    applying.add_argument("--out", required=True)
    applying.add_argument("sources", nargs="+")
    checking = commands.add_parser("check")
    checking.add_argument("--patch", required=True)
    checking.add_argument("--binary", required=True)
    options = parser.parse_args()
    if options.command == "apply":
        apply(options.root, options.patch, options.out, options.sources)
    else:
        check(options.patch, options.binary)


main()
