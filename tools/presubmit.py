#!/usr/bin/env python3
"""The rules that hold the tree, each with how to mend what breaks it. `make check` runs it.

  tools/presubmit.py                     every rule
  tools/presubmit.py --rules guards,todo only these
  tools/presubmit.py --list              their names
  tools/presubmit.py --fix               applies clang-format first

Exit status: 0 clean, 1 problems found, 64 usage.
"""

import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from checks import counts, cpp, docs, lint, orphans, text, tidy  # noqa: E402
from checks.tree import Problem, Tree  # noqa: E402


def run_links(tree):
    return orphans.library_links(tree, cpp.PICTURE)


def run_orphans(tree):
    def log(message):
        print(message, file=sys.stderr)
    presets = orphans.ci_presets(tree)
    if not presets:
        yield Problem("orphans", ".ci/run", 1, "no presets found that CI builds; name them in `for preset in ...;`.")
        return
    builds = []
    for preset in presets:
        build = orphans.configure(tree, preset, log)
        if build is None:
            yield Problem("orphans", "CMakePresets.json", 1, f"preset {preset} does not configure; see above.")
        else:
            builds.append(build)
    if len(builds) == len(presets):
        yield from orphans.orphans(tree, builds)


def run_tidy(tree):
    def log(message):
        print(message, file=sys.stderr)
    if orphans.configure(tree, "tidy", log) is None:
        yield Problem("tidy", "CMakePresets.json", 1, "preset tidy does not configure; see above.")
        return
    # Sources that are generated; nothing else of this preset is built.
    subprocess.run(["cmake", "--build", "build-tidy", "--target", "assay_generated",
                    "assay_shaders"], cwd=tree.root, check=True,
                   stdout=subprocess.DEVNULL)
    yield from tidy.clang_tidy(tree, os.path.join(tree.root, "build-tidy", "compile_commands.json"), log)


# In order of cost, the cheap ones first.
RULES = {**text.RULES, **cpp.RULES, **docs.RULES, **counts.RULES, **lint.RULES, "links-cmake": run_links,
         "format": lint.clang_format, "orphans": run_orphans, "tidy": run_tidy}


def main():
    parser = argparse.ArgumentParser(description="Checks the tree against its rules.")
    parser.add_argument("--rules", help="comma-separated names; default: all")
    parser.add_argument("--list", action="store_true", help="print the names of the rules")
    parser.add_argument("--fix", action="store_true", help="apply clang-format first")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = parser.parse_args()
    if options.list:
        print("\n".join(RULES))
        return 0
    chosen = options.rules.split(",") if options.rules else list(RULES)
    unknown = [name for name in chosen if name not in RULES]
    if unknown:
        print(f"presubmit: unknown rules: {', '.join(unknown)}; the rules are {', '.join(RULES)}", file=sys.stderr)
        return 64
    tree = Tree.from_disk(os.path.abspath(options.root))
    if options.fix:
        list(lint.clang_format(tree, fix=True))
        tree = Tree.from_disk(tree.root)
    found = 0
    for name in chosen:
        start = time.monotonic()
        for problem in RULES[name](tree):
            found += 1
            print(problem, flush=True)
        taken = time.monotonic() - start
        if taken > 1:
            print(f"({name}: {taken:.0f} s)", file=sys.stderr, flush=True)
    if found:
        print(f"presubmit: {found} problems")
        return 1
    print(f"presubmit: {len(chosen)} rules over {len(tree.paths)} files, no problems")
    return 0


if __name__ == "__main__":
    sys.exit(main())
