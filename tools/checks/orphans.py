"""Every test in the tree is built and run by a target that CI calls.

CMake itself is asked, through its file API and the files it writes for CTest, about each preset that .ci/run builds: a test behind
an option or a preset counts when one of them builds it and CTest runs it there.
"""

import glob
import json
import os
import re
import subprocess

from checks.tree import Problem

_SOURCE = re.compile(r"(?:.*_(?:test|fuzz|bench)\.cc|(?:tests|fuzz|bench|examples)/.*\.cc)$")
_SCRIPT = re.compile(r"(?:tests/.*|.*_test)\.(?:sh|py|cmake)$")
_DATA = re.compile(r"tests/.*")


def ci_presets(tree):
    """The presets that .ci/run builds and tests, `make test` (release) included."""
    text = tree.read(".ci/run") if ".ci/run" in tree else ""
    named = re.findall(r"^\s*for preset in ([\w ]+);", text, re.M)
    presets = [word for line in named for word in line.split()]
    if re.search(r"\bmake test\b", text):
        presets.append("release")
    # A preset whose tests are filtered by label runs some of what it builds: it proves nothing of the rest.
    filtered = set()
    if "CMakePresets.json" in tree:
        filtered = {p["configurePreset"] for p in json.loads(tree.read("CMakePresets.json"))["testPresets"] if "filter" in p}
    return [p for p in presets if p not in filtered]


def disabled(properties):
    return properties.get("DISABLED", "").upper() in ("TRUE", "ON", "1", "YES")


class Build:
    """What one configured preset builds and runs."""

    def __init__(self, preset, sources, artifacts, tests, threaded=()):
        self.preset = preset
        self.sources = sources      # Path of a source -> names of the executables it is in.
        self.artifacts = artifacts  # Name of an executable -> its file name.
        self.tests = tests          # Of CTest: (name, command words, properties).
        self.threaded = threaded    # Names of the executables that the thread-sanitizer run builds.

    def runs(self, target):
        """CTest runs it: by a command, or as a gtest binary whose cases it will list once it is built."""
        for name, command, properties in self.tests:
            if disabled(properties):
                continue
            if name == f"{target}_NOT_BUILT" or any(
                    os.path.basename(word) == self.artifacts[target] for word in command):
                return True
        return False


def configure(tree, preset, log):
    """Configures `preset` in the tree, where that is out of date, and reads what CMake says of it."""
    folder = os.path.join(tree.root, "build" if preset == "release" else f"build-{preset}")
    query = os.path.join(folder, ".cmake", "api", "v1", "query", "codemodel-v2")
    os.makedirs(os.path.dirname(query), exist_ok=True)
    with open(query, "a", encoding="ascii"):
        pass
    fresh = []
    cache = os.path.join(folder, "CMakeCache.txt")
    if os.path.exists(cache):
        with open(cache, encoding="utf-8") as file:
            if f"CMAKE_HOME_DIRECTORY:INTERNAL={tree.root}\n" not in file.read():
                fresh = ["--fresh"]
    said = subprocess.run(["cmake", "--preset", preset, *fresh], cwd=tree.root, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        log(f"configuring preset {preset} failed:\n{said.stdout}{said.stderr}")
        return None
    return read_build(tree.root, folder, preset)


def read_build(root, folder, preset):
    reply = os.path.join(folder, ".cmake", "api", "v1", "reply")
    index = max(glob.glob(os.path.join(reply, "index-*.json")))
    with open(index, encoding="utf-8") as file:
        model_name = json.load(file)["reply"]["codemodel-v2"]["jsonFile"]
    with open(os.path.join(reply, model_name), encoding="utf-8") as file:
        model = json.load(file)
    sources, artifacts, threaded = {}, {}, set()
    for entry in model["configurations"][0]["targets"]:
        with open(os.path.join(reply, entry["jsonFile"]), encoding="utf-8") as file:
            target = json.load(file)
        if target["type"] == "EXECUTABLE":
            artifacts[target["name"]] = target["nameOnDisk"]
        elif target["name"] == "assay_tsan_tests":
            threaded = {d["id"].split("::")[0] for d in target.get("dependencies", [])}
        for source in target.get("sources", []):
            path = os.path.relpath(os.path.join(root, source["path"]), root)
            sources.setdefault(path, set()).add(target["name"])
    return Build(preset, sources, artifacts, list(read_tests(os.path.join(folder, "CTestTestfile.cmake"))), threaded)


_BRACKET = r'\[(?P<fence>=*)\[(?P<bracketed>.*?)\](?P=fence)\]'
_WORD = re.compile(_BRACKET + r'|"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<bare>[^\s()"]+)', re.S)
_CALL = re.compile(r"\b(add_test|set_tests_properties|subdirs|include)\(((?:" + _BRACKET.replace("fence", "f2").replace("bracketed", "b2")
                   + r'|"(?:\\.|[^"\\])*"|[^()"])*)\)', re.S)


def read_tests(path):
    """(name, command words, properties) of each test of a CTestTestfile.cmake and what it includes.

    CTest's own listing leaves out the commands of what is not built yet; these files do not.
    """
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    tests = {}
    for call in _CALL.finditer(text):
        words = [w["bracketed"] or w["quoted"] or w["bare"] or "" for w in _WORD.finditer(call[2])]
        if call[1] == "add_test":
            tests[words[0]] = (words[0], words[1:], {})
        elif call[1] == "set_tests_properties" and "PROPERTIES" in words:
            at = words.index("PROPERTIES")
            for name in words[:at]:
                if name in tests:
                    tests[name][2].update(zip(words[at + 1::2], words[at + 2::2]))
        elif call[1] == "subdirs":
            for folder in words:
                yield from read_tests(os.path.join(os.path.dirname(path), folder, "CTestTestfile.cmake"))
        elif call[1] == "include":
            yield from read_tests(words[0])
    yield from tests.values()


def orphans(tree, builds):
    presets = ", ".join(b.preset for b in builds)
    for path in tree.paths:
        if path.startswith(("tests/data/", "fuzz/corpus/")):
            continue
        if _SOURCE.match(path):
            yield from _orphan_source(path, builds, presets)
        elif _SCRIPT.match(path):
            name = os.path.basename(path)
            run = any(os.path.basename(word) == name for b in builds for _, command, properties in b.tests
                      if not disabled(properties) for word in command)
            included = any(name in tree.read(p) for p in tree.text_files()
                           if p != path and p.endswith(("CMakeLists.txt", ".cmake", ".sh", "Makefile", ".py"))
                           and p.startswith(("tests/", "tools/", "Makefile")))
            if not run and not included:
                yield Problem("orphans", path, 1, f"no test of the presets that CI builds ({presets}) runs this script; "
                              "add it with add_test().")
    for build in builds:
        for name, _, properties in build.tests:
            if disabled(properties):
                yield Problem("orphans", "CMakeLists.txt", 1, f"the test {name} of preset {build.preset} is disabled; "
                              "mend it or remove it.")
    yield from _untold_threads(tree, builds)
    yield from _orphan_corpora(tree, builds)
    yield from _unused_data(tree)


def _orphan_source(path, builds, presets):
    built = [(b, t) for b in builds for t in b.sources.get(path, ())]
    if not built:
        yield Problem("orphans", path, 1, f"no preset that CI builds ({presets}) builds this source; add it to an "
                      "assay_test(), assay_bench() or assay_fuzz() call.")
    # A helper library of tests is run by whoever links it; its own sources are not tests by name.
    elif all(t not in b.artifacts for b, t in built) and not re.search(r"_(test|fuzz|bench)\.cc$", path):
        return
    elif not any(t in b.artifacts and b.runs(t) for b, t in built):
        targets = ", ".join(sorted({t for _, t in built}))
        yield Problem("orphans", path, 1, f"{targets} is built, but no CTest test of the presets that CI runs "
                      f"({presets}) runs it; add it with assay_test() or add_test().")


def _untold_threads(tree, builds):
    """A test that starts threads is in the thread-sanitizer run."""
    for path in tree.paths:
        if not path.endswith("_test.cc"):
            continue
        starts = [(n, q) for n, q in tree.includes(path) if q in ("<thread>", "<latch>", "<barrier>", "<future>")]
        targets = {t for b in builds for t in b.sources.get(path, ())}
        if starts and targets and not any(targets & set(b.threaded) for b in builds):
            yield Problem("orphans", path, starts[0][0], f"{starts[0][1]} in a test without the label tsan; add LABELS tsan "
                          f"to the assay_test() call of {', '.join(sorted(targets))}.")


def _orphan_corpora(tree, builds):
    fuzzers = {t for b in builds for p, targets in b.sources.items() if p.endswith("_fuzz.cc")
               for t in targets if t in b.artifacts}
    corpora = {p.split("/")[2] for p in tree.paths if p.startswith("fuzz/corpus/") and p.count("/") >= 3}
    for name in sorted(corpora - fuzzers):
        yield Problem("orphans", f"fuzz/corpus/{name}", 1, "no fuzz target of this name replays the corpus.")
    for name in sorted(fuzzers - corpora):
        yield Problem("orphans", f"fuzz/corpus/{name}", 1, f"the fuzz target {name} has no corpus; add a few inputs.")
    for path in tree.paths:
        m = re.fullmatch(r"fuzz/(\w+)\.dict", path)
        if m and m[1] not in fuzzers:
            yield Problem("orphans", path, 1, "no fuzz target of this name uses the dictionary.")


def _unused_data(tree):
    """Test data that no test names, by its own name or by its folder's, is a test that nobody runs."""
    users = [tree.read(p) for p in tree.text_files()
             if p.startswith(("tests/", "fuzz/", "bench/", "tools/")) or "_test." in p or p.endswith("CMakeLists.txt")]
    text = "\n".join(users)
    for path in tree.paths:
        if not _DATA.match(path) or _SOURCE.match(path) or _SCRIPT.match(path):
            continue
        name = os.path.basename(path)
        if name in ("CMakeLists.txt", "README.md") or name.endswith((".h", ".def")):
            continue
        folder = os.path.basename(os.path.dirname(path))
        stem = name.split(".")[0]
        if not re.search(rf"\b({re.escape(name)}|{re.escape(stem)})\b", text) and not (
                folder not in ("data", "tests") and re.search(rf"[\"/ ]{re.escape(folder)}[\"/ )]", text)):
            yield Problem("orphans", path, 1, "no test reads this file; use it or remove it.")


def library_links(tree, picture):
    """What the libraries link agrees with the picture of what they may include."""
    calls = []   # (path, line, library of the folder, name of the target, words after it)
    for path in tree.paths:
        m = re.fullmatch(r"src/(\w+)/(?:.*/)?CMakeLists\.txt", path)
        if not m or m[1] not in picture:
            continue
        text = re.sub(r"#[^\n]*", "", tree.read(path))
        for call in re.finditer(r"\bassay_library\s*\(([^)]*)\)", text):
            words = call[1].split()
            calls.append((path, text.count("\n", 0, call.start()) + 1, m[1], words[0], words[1:]))
    owners = {target: library for _, _, library, target, _ in calls}
    for path, line, library, _, words in calls:
        for word in words:
            other = owners.get(word)
            if other and other not in picture[library]:
                yield Problem("links-cmake", path, line, f"{library} may link {', '.join(sorted(picture[library]))}, not "
                              f"{word} of {other} (the picture in ARCHITECTURE.md).")
