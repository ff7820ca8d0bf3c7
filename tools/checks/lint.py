"""Rules that other programs judge: clang-format, codespell, bash and Python themselves (clang-tidy: tidy.py)."""

import os
import re
import shutil
import subprocess

from checks.tree import Problem

CLANG_VERSION = "14"
WORDS = "tools/codespell_words.txt"


def find_tool(name):
    """The program of CLANG_VERSION, or None: another version formats and warns differently."""
    for candidate in (f"{name}-{CLANG_VERSION}", name):
        path = shutil.which(candidate)
        if not path:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        if re.search(rf"\bversion {CLANG_VERSION}\.", said):
            return path
    return None


def absent(rule, tool):
    return Problem(rule, "tools/install_deps.sh", 1,
                   f"{tool} {CLANG_VERSION} is not installed; run tools/install_deps.sh check.")


def clang_format(tree, fix=False):
    tool = find_tool("clang-format")
    if not tool:
        yield absent("format", "clang-format")
        return
    # The others are tables, laid out as their authors find them readable.
    files = [p for p in tree.cpp_files() if p.endswith((".h", ".cc"))]
    if fix:
        subprocess.run([tool, "-i", "--style=file", *files], cwd=tree.root, check=True)
        return
    if not files:
        return
    said = subprocess.run([tool, "--dry-run", "--style=file", *files], cwd=tree.root, capture_output=True,
                          text=True, check=False).stderr
    reported = set()
    for m in re.finditer(r"^(.+?):(\d+):\d+: (?:warning|error): (.*)$", said, re.M):
        if m[1] not in reported:
            reported.add(m[1])
            yield Problem("format", m[1], int(m[2]), "not formatted as clang-format 14 does it; run `make format`.")


def codespell(tree):
    tool = shutil.which("codespell")
    if not tool:
        return
    files = [p for p in tree.text_files() if p not in ("LICENSE", "tools/presubmit_test.py")]
    # A word with a capital inside is an identifier, not prose.
    said = subprocess.run([tool, "--ignore-regex", r"\b\w+[a-z0-9][A-Z]\w*\b", "--ignore-words", WORDS, *files],
                          cwd=tree.root, capture_output=True, text=True, check=False).stdout
    for m in re.finditer(r"^(.+?):(\d+): (.*)$", said, re.M):
        yield Problem("spelling", m[1].removeprefix("./"), int(m[2]),
                      f"{m[3]}; if it is a word, add it in lower case to {WORDS}.")


def scripts(tree):
    """Shell scripts parse, stop at errors and can be run; Python files compile."""
    for path in tree.text_files():
        text = tree.read(path)
        first = text.split("\n", 1)[0]
        if path.endswith(".sh") or "bash" in first and first.startswith("#!"):
            said = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False).stderr
            if said:
                yield Problem("scripts", path, 1, said.strip().split("\n")[0])
            if "set -euo pipefail" not in text:
                yield Problem("scripts", path, 1, "a script starts with `set -euo pipefail`.")
            if tree.root and not os.access(os.path.join(tree.root, path), os.X_OK):
                yield Problem("scripts", path, 1, "the script is not executable; run chmod +x on it.")
        elif path.endswith(".py"):
            try:
                compile(text, path, "exec")
            except SyntaxError as error:
                yield Problem("scripts", path, error.lineno or 1, f"Python cannot parse it: {error.msg}.")


RULES = {"spelling": codespell, "scripts": scripts}
