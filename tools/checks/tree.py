"""The files that the rules look at, with comments and string literals of C++ told apart."""

import os
import re
import subprocess
from dataclasses import dataclass

CPP_SUFFIXES = (".h", ".cc", ".inc", ".def")
# Bytes that are data, not text of the project: no text rule looks at them.
DATA_FOLDERS = ("fuzz/corpus/", "models/", "tests/data/", "tests/golden/")
DATA_SUFFIXES = (".gguf", ".bin", ".zst", ".png", ".trace", ".dict", ".patch")

_CPP_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*')""",
    re.S | re.X,
)


@dataclass(frozen=True)
class Problem:
    """One broken rule at one place; `message` says how to mend it."""

    rule: str
    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


class Tree:
    """A set of text files, by path from the root. Files are read once."""

    def __init__(self, root, paths):
        self.root = root
        self.paths = sorted(paths)
        self._texts = {}
        self._views = {}

    @classmethod
    def from_disk(cls, root):
        """What git tracks or would track; without git, all but build folders."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, check=False)
        if listed.returncode == 0:
            paths = [os.fsdecode(p) for p in listed.stdout.split(b"\0") if p]
        else:
            paths = []
            for folder, folders, files in os.walk(root):
                here = os.path.relpath(folder, root)
                if here == ".":
                    folders[:] = [f for f in folders
                                  if f not in (".git", "build", "out") and not f.startswith("build-")]
                folders[:] = [f for f in folders if f != "__pycache__"]
                paths += [os.path.normpath(os.path.join(here, f)) for f in files]
        return cls(root, [p for p in paths if os.path.isfile(os.path.join(root, p))])

    @classmethod
    def from_dict(cls, files):
        """A tree that only exists in memory, for the rules' own tests."""
        tree = cls("", files)
        tree._texts = dict(files)
        return tree

    def __contains__(self, path):
        return path in self.path_set()

    def path_set(self):
        if "set" not in self._views:
            self._views["set"] = set(self.paths)
        return self._views["set"]

    def folder_set(self):
        """Every folder that holds a file, at any depth."""
        if "folders" not in self._views:
            folders = set()
            for path in self.paths:
                while "/" in path:
                    path = path.rsplit("/", 1)[0]
                    folders.add(path)
            self._views["folders"] = folders
        return self._views["folders"]

    def read(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), "rb") as file:
                self._texts[path] = file.read().decode("utf-8", errors="surrogateescape")
        return self._texts[path]

    def text_files(self):
        """Everything written by hand: code, scripts, CMake, documents."""
        return [p for p in self.paths
                if not p.startswith(DATA_FOLDERS) and not p.endswith(DATA_SUFFIXES)]

    def cpp_files(self):
        return [p for p in self.text_files() if p.endswith(CPP_SUFFIXES)]

    def markdown_files(self):
        return [p for p in self.text_files() if p.endswith(".md")]

    def code(self, path):
        """The C++ text with comments blanked and string contents removed; line numbers stay."""
        return self._view("code", path)

    def comments(self, path):
        """The C++ text with everything but comments blanked; line numbers stay."""
        return self._view("comments", path)

    def includes(self, path):
        """(line, name with its quotes or angle brackets) of each #include."""
        uncommented = self._view("uncommented", path)
        return [(uncommented.count("\n", 0, m.start(1)) + 1, m.group(1))
                for m in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>|"[^"\n]+")', uncommented, re.M)]

    def _view(self, kind, path):
        key = (kind, path)
        if key not in self._views:
            text = self.read(path)
            if kind == "code":
                replaced = _CPP_TOKEN.sub(
                    lambda m: _blank(m[0]) if m["comment"] else '"' + "\n" * m[0].count("\n") + '"', text)
            elif kind == "comments":
                pieces, end = [], 0
                for m in _CPP_TOKEN.finditer(text):
                    pieces.append(_blank(text[end:m.start()]))
                    pieces.append(m[0] if m["comment"] else _blank(m[0]))
                    end = m.end()
                replaced = "".join(pieces) + _blank(text[end:])
            else:
                replaced = _CPP_TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)
            self._views[key] = replaced
        return self._views[key]


def is_test(path):
    """Code that only tests, benches and fuzzers link."""
    return (path.startswith(("tests/", "fuzz/", "bench/"))
            or re.search(r"_(test|bench|fuzz|testing|test_util)\.(cc|h)$", path) is not None)


def is_library(path):
    """Code that a program of somebody else links: no printing, no ending of the process."""
    return path.startswith(("src/", "include/")) and not path.startswith("src/cli/") and not is_test(path)


def matches(tree, path, pattern, text):
    """(line number, match, whole line) of each match of `pattern`."""
    lines = None
    for m in re.compile(pattern, re.M).finditer(text):
        if lines is None:
            lines = tree.read(path).split("\n")
        number = text.count("\n", 0, m.start()) + 1
        yield number, m, lines[number - 1]
