"""Numbers that may only fall: lint exceptions, expected failures, skipped tests. tools/counts.json holds them."""

import json
import re

from checks.tree import Problem

PATH = "tools/counts.json"


def _count(tree, pattern, paths, view):
    return sum(len(re.findall(pattern, view(p), re.M)) for p in paths)


def measure(tree):
    cpp = tree.cpp_files()
    cmake = [p for p in tree.text_files() if p.endswith((".cmake", "CMakeLists.txt"))]
    lists = [p for p in tree.paths if re.search(r"expected_failures?[\w.]*$", p)]
    # What must not compile fails by design; that is no debt.
    debts = [p for p in cmake if not p.startswith("tests/compile_fail/")]
    return {
        "lint_exceptions": _count(tree, r"\bNOLINT(?!END)|clang-format off", cpp, tree.read)
        + _count(tree, r"#\s*pragma\s+(?:GCC|clang)\s+diagnostic\s+(?:ignored|warning)", cpp, tree.code),
        "expected_failures": _count(tree, r"\bWILL_FAIL\b", debts, tree.read)
        + _count(tree, r"^[^#\s].*$", lists, tree.read),
        "skipped_tests": _count(tree, r"\bGTEST_SKIP\b|\bDISABLED_\w", cpp, tree.code)
        + _count(tree, r"\bSKIP_RETURN_CODE\b|\bSKIP_REGULAR_EXPRESSION\b|\bDISABLED\s+(?:TRUE|ON|1)\b", cmake, tree.read),
    }


def counts(tree):
    if PATH not in tree:
        yield Problem("counts", PATH, 1, "the file is missing.")
        return
    allowed = json.loads(tree.read(PATH))
    measured = measure(tree)
    for name in sorted(set(allowed) | set(measured)):
        if name not in allowed or name not in measured:
            yield Problem("counts", PATH, 1, f"the counts are {', '.join(sorted(measured))}; {name} is missing or unknown.")
        elif measured[name] > allowed[name]:
            yield Problem("counts", PATH, 1,
                          f"{name} rose from {allowed[name]} to {measured[name]}; mend the cause instead of adding one.")
        elif measured[name] < allowed[name]:
            yield Problem("counts", PATH, 1, f"{name} fell to {measured[name]}; lower the {allowed[name]} in this file.")


RULES = {"counts": counts}
