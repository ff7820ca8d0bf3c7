"""clang-tidy over every source. Most of its time goes into headers of libraries, which it reads and searches again for
each source; so sources that can stand in one translation unit are judged in one."""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile

from checks import lint
from checks.tree import Problem

# Of sources in one unit: more save little, and leave one core idle at the end.
BATCH_SIZE = 12
# Code that a build compiles once for each instruction set steers itself by macros, so it stands alone.
_ALONE = re.compile(r"foreach_target\.h|HWY_NAMESPACE|#\s*undef")
# What a source defines at the outermost level of a namespace: types, constants, functions, macros, tests.
_DEFINED = re.compile(
    r"\b(?:class|struct|enum(?:\s+class)?|union)\s+(\w+)"
    r"|\b(k[A-Z]\w*)\s*(?:=|\{|\[|\()"
    r"|^(?!\s|return\b)[^\n;={}#]*?(?<![\w:])(~?\w+)\("
    r"|^(?:using|namespace)\s+(\w+)\s*="
    r"|^(?!\s)[\w:<>,*& ]*\s(\w+)\s*(?:=|\{\}|;)"
    r"|^\s*#\s*define\s+(\w+)", re.M)
_MACRO_CALL = re.compile(r"[A-Z][A-Z0-9_]+$")
_TEST = re.compile(
    r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)"
    r"|^(?:MATCHER|ACTION|BENCHMARK|RC_GTEST|INSTANTIATE|TYPED_TEST_SUITE)\w*\(\s*(\w+)", re.M)
_FINDING = re.compile(r"^(/.+?):(\d+):\d+: (?:error|warning): (.*)$", re.M)
# Harmless to sources that do not ask for them.
_SAME = {"-DFMT_SHARED", "-DHWY_SHARED_DEFINE"}


def project_includes(tree, path, seen):
    """Adds to `seen` `path` and every file of the tree that it includes, at any depth."""
    if path in seen or path not in tree:
        return
    seen.add(path)
    for _, quoted in tree.includes(path):
        name = quoted[1:-1]
        for candidate in (f"include/{name}", f"src/{name}", f"tests/{name}", name,
                          os.path.normpath(os.path.join(os.path.dirname(path), name))):
            project_includes(tree, candidate, seen)


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "assay", "tidy")


def _toolchain_stamp(tool):
    """Changes when clang-tidy or a library that the sources include does."""
    packages = subprocess.run(["dpkg-query", "-W", "-f=${Package}=${Version}\n", "lib*-dev"],
                              capture_output=True, text=True, check=False).stdout
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    return said + packages


def compile_flags(tree, database):
    """Of each C++ source of the tree, once, from a compile_commands.json: how it is compiled, without names of files."""
    with open(database, encoding="utf-8") as file:
        entries = json.load(file)
    flags = {}
    for entry in entries:
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), tree.root)
        if path not in tree or path in flags or not path.endswith((".cc", ".cpp")):
            continue
        words = iter((entry.get("arguments") or shlex.split(entry["command"]))[1:])
        kept = []
        for word in words:
            if word in ("-o", "-MF", "-MT", "-MQ"):
                next(words, None)
            elif word not in ("-c", "-MD", "-MMD", entry["file"]):
                kept.append(word)
        flags[path] = kept
    return flags


def defined_names(text):
    """Names that two sources of one unit may not both define; rather too many than too few."""
    names = {name for found in _DEFINED.findall(text) for name in found if name and not _MACRO_CALL.match(name)}
    return names | {"_".join(filter(None, found)) for found in _TEST.findall(text)}


def batches(tree, flags, paths):
    """`paths` in lists that can each be judged as one unit: compiled alike, and no name defined twice."""
    open_batches = {}
    done = []
    for path in sorted(paths):
        code = tree.code(path)
        if _ALONE.search(code):
            done.append([path])
            continue
        names = defined_names(code)
        seen = set()
        project_includes(tree, path, seen)
        # In sight of such a namespace `testing::` means another one than gtest's.
        shadowed = any(re.search(r"^namespace \w+::testing\b", tree.code(p), re.M) for p in seen)
        like = (*sorted(set(flags[path]) - _SAME), path.split("/", 1)[0], shadowed)
        group = open_batches.setdefault(like, [])
        for batch in group:
            if len(batch["paths"]) < BATCH_SIZE and not names & batch["names"]:
                break
        else:
            batch = {"paths": [], "names": set()}
            group.append(batch)
        batch["paths"].append(path)
        batch["names"] |= names
    done += [batch["paths"] for group in open_batches.values() for batch in group]
    # The largest first, so that the last job to finish is a short one.
    return sorted(done, key=lambda batch: -sum(len(tree.read(p)) for p in batch))


def clang_tidy(tree, database, log=lambda message: None):
    """Every finding in a source of the database or a header it includes; what was clean before is known by its content."""
    tool = lint.find_tool("clang-tidy")
    if not tool:
        yield lint.absent("tidy", "clang-tidy")
        return
    flags = compile_flags(tree, database)
    cache = _cache_folder()
    os.makedirs(cache, exist_ok=True)
    stamp = _toolchain_stamp(tool) + tree.read(".clang-tidy")

    def key_of(path):
        seen = set()
        project_includes(tree, path, seen)
        digest = hashlib.sha256(stamp.encode())
        digest.update(" ".join(flags[path]).replace(tree.root, "@").encode())
        for name in sorted(seen):
            digest.update(f"\0{name}\0".encode() + tree.read(name).encode("utf-8", "surrogateescape"))
        return os.path.join(cache, digest.hexdigest())

    def judge(batch, folder):
        """(clean, problems) of the sources of `batch` together."""
        unit = os.path.join(folder, f"unit_{hashlib.sha256(' '.join(batch).encode()).hexdigest()[:16]}.cc")
        with open(unit, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{os.path.join(tree.root, path)}"\n' for path in batch)
        merged = flags[batch[0]] + sorted({f for path in batch for f in flags[path]} & _SAME - set(flags[batch[0]]))
        # One instruction set is enough for a lint of code that Highway compiles once for each.
        # For clang-tidy every source is a header of the unit; those of the system it leaves out anyway.
        said = subprocess.run(
            [tool, "--quiet", "--header-filter=.*", f"--config-file={os.path.join(tree.root, '.clang-tidy')}", unit, "--", *merged,
             "-DHWY_COMPILE_ONLY_STATIC", "-Wno-unknown-warning-option"],
            cwd=os.path.dirname(database), capture_output=True, text=True, check=False)
        if len(batch) > 1 and "clang-diagnostic-error" in said.stdout:
            why = next(line for line in said.stdout.split("\n") if "clang-diagnostic-error" in line)
            log(f"{why}\n  these do not compile as one, so each is judged alone: {', '.join(batch)}")
            judged = [judge([path], folder) for path in batch]
            return [p for clean, _ in judged for p in clean], [p for _, problems in judged for p in problems]
        found = [Problem("tidy", os.path.relpath(m[1], tree.root), int(m[2]), m[3]) for m in _FINDING.finditer(said.stdout)]
        if not found and said.returncode != 0:
            return [], [Problem("tidy", batch[0], 1, f"clang-tidy failed: {(said.stderr or said.stdout).strip()[-400:]}")]
        # What a build made is nobody's to mend.
        problems = [problem for problem in found if problem.path in tree]
        blamed = {problem.path for problem in problems}
        # A finding in a header may belong to any source of the batch.
        return ([p for p in batch if p not in blamed] if blamed <= set(batch) else []), problems

    keys = {path: key_of(path) for path in sorted(flags)}
    todo = batches(tree, flags, [p for p in keys if not os.path.exists(keys[p])])
    reported = set()
    with tempfile.TemporaryDirectory(prefix="assay-tidy-") as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for clean, problems in pool.map(lambda batch: judge(batch, folder), todo):
            for path in clean:
                with open(keys[path], "w", encoding="ascii"):
                    pass
            for problem in problems:
                if problem not in reported:
                    reported.add(problem)
                    yield problem
