"""Rules that other programs judge: clang-format, clang-tidy, codespell, bash and Python themselves."""

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess

from checks.tree import Problem, is_test

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


def _absent(rule, tool):
    return Problem(rule, "tools/install_deps.sh", 1,
                   f"{tool} {CLANG_VERSION} is not installed; run tools/install_deps.sh check.")


def clang_format(tree, fix=False):
    tool = find_tool("clang-format")
    if not tool:
        yield _absent("format", "clang-format")
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


def _project_includes(tree, path, seen):
    """`path` and every file of the tree that it includes, at any depth."""
    if path in seen or path not in tree:
        return
    seen.add(path)
    for _, quoted in tree.includes(path):
        name = quoted[1:-1]
        for candidate in (f"include/{name}", f"src/{name}", name, os.path.normpath(os.path.join(os.path.dirname(path), name))):
            _project_includes(tree, candidate, seen)


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "assay", "tidy")


def _toolchain_stamp(tool):
    """Changes when clang-tidy or a library that the sources include does."""
    packages = subprocess.run(["dpkg-query", "-W", "-f=${Package}=${Version}\n", "lib*-dev"],
                              capture_output=True, text=True, check=False).stdout
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    return said + packages


def tidy_commands(tree, database):
    """(path in the tree, compile command) of each source, once, from a compile_commands.json."""
    with open(database, encoding="utf-8") as file:
        entries = json.load(file)
    commands = {}
    for entry in entries:
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), tree.root)
        if path in tree and path not in commands:
            commands[path] = entry.get("command") or " ".join(entry["arguments"])
    return commands


def clang_tidy(tree, database, everything=False):
    """Runs clang-tidy on every source of the database; files that were clean before are known by their content."""
    tool = find_tool("clang-tidy")
    if not tool:
        yield _absent("tidy", "clang-tidy")
        return
    commands = tidy_commands(tree, database)
    cache = _cache_folder()
    os.makedirs(cache, exist_ok=True)
    stamp = _toolchain_stamp(tool) + tree.read(".clang-tidy")

    def key_of(path):
        seen = set()
        _project_includes(tree, path, seen)
        digest = hashlib.sha256(stamp.encode())
        digest.update(commands[path].replace(tree.root, "@").encode())
        for name in sorted(seen):
            digest.update(f"\0{name}\0".encode() + tree.read(name).encode("utf-8", "surrogateescape"))
        return os.path.join(cache, digest.hexdigest())

    def run(path):
        # One instruction set is enough for a lint of code that Highway compiles once for each.
        said = subprocess.run(
            [tool, "-p", os.path.dirname(database), "--quiet", "--extra-arg=-DHWY_COMPILE_ONLY_STATIC",
             "--extra-arg=-Wno-unknown-warning-option", os.path.join(tree.root, path)],
            cwd=tree.root, capture_output=True, text=True, check=False)
        return path, said

    keys = {path: key_of(path) for path in sorted(commands)}
    todo = [p for p in keys if everything or not os.path.exists(keys[p])]
    # Sources that take longest first, so that the last job to finish is a short one.
    todo.sort(key=lambda p: (is_test(p), -len(tree.read(p))))
    reported = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, said in pool.map(run, todo):
            found = list(re.finditer(r"^(/.+?):(\d+):\d+: (?:error|warning): (.*)$", said.stdout, re.M))
            if not found and said.returncode == 0:
                with open(keys[path], "w", encoding="ascii"):
                    pass
                continue
            if not found:
                yield Problem("tidy", path, 1, f"clang-tidy failed: {(said.stderr or said.stdout).strip()[-400:]}")
            for m in found:
                problem = Problem("tidy", os.path.relpath(m[1], tree.root), int(m[2]), m[3])
                if problem not in reported:
                    reported.add(problem)
                    yield problem


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
