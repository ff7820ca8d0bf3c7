"""Rules on documents: what they link to and name is there."""

import fnmatch
import posixpath
import re

from checks.tree import Problem

_TOP = ("src", "include", "docs", "tools", "tests", "fuzz", "bench", "cmake", "examples", "models", ".ci")
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.<>*{},-]+(?:/[\w.<>*{},-]+)*/?")


def _heading_anchors(text):
    anchors = set()
    for m in re.finditer(r"^#{1,6}\s+(.+?)\s*#*$", text, re.M):
        slug = re.sub(r"[^\w\- ]", "", m[1].lower()).replace(" ", "-")
        anchors.add(slug)
    return anchors


def _without_fences(text):
    return re.sub(r"^```.*?^```[ \t]*$", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M | re.S)


def links(tree):
    for path in tree.markdown_files():
        text = _without_fences(tree.read(path))
        for m in _LINK.finditer(text):
            target = m[1]
            number = text.count("\n", 0, m.start()) + 1
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
            if resolved not in tree and resolved not in tree.folder_set():
                yield Problem("links", path, number, f"the link {target} leads nowhere; {resolved} does not exist.")
            elif anchor and resolved.endswith(".md") and anchor not in _heading_anchors(tree.read(resolved)):
                yield Problem("links", path, number, f"{resolved} has no heading for #{anchor}.")


def _alternatives(name):
    """a.{h,cc} -> a.h, a.cc"""
    m = re.search(r"\{([^{}]*)\}", name)
    if not m:
        return [name]
    return [n for part in m[1].split(",") for n in _alternatives(name[:m.start()] + part + name[m.end():])]


def names(tree):
    """A path of the tree in a code span exists; <name> stands for any name."""
    everything = tree.path_set() | tree.folder_set()
    for path in tree.markdown_files():
        text = _without_fences(tree.read(path))
        for span in _SPAN.finditer(text):
            number = text.count("\n", 0, span.start()) + 1
            for word in span[1].split():
                word = word.rstrip(",;:")
                if not _PATH.fullmatch(word) or word.split("/")[0] not in _TOP or "/" not in word.rstrip("/"):
                    continue
                for name in _alternatives(word):
                    pattern = re.sub(r"<[^<>]*>", "*", name).rstrip("/")
                    if "*" in pattern:
                        found = any(fnmatch.fnmatchcase(p, pattern) for p in everything)
                    else:
                        found = pattern in everything
                    if not found:
                        yield Problem("names", path, number, f"`{name}` does not exist; name the file as it is called.")


def sections(tree):
    """The documents that every reader looks for are there, and ARCHITECTURE.md stays short."""
    for path in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"):
        if path not in tree:
            yield Problem("documents", path, 1, "the file is missing.")
    if "ARCHITECTURE.md" in tree and tree.read("ARCHITECTURE.md").count("\n") > 200:
        yield Problem("documents", "ARCHITECTURE.md", 200, "more than 200 lines; move details to docs/.")
    if "docs/README.md" in tree:
        index = tree.read("docs/README.md")
        for path in tree.markdown_files():
            if path.startswith("docs/") and path != "docs/README.md" and f"({path[len('docs/'):]})" not in index:
                yield Problem("documents", "docs/README.md", 1, f"{path} is not in the index; add a line that links to it.")


RULES = {"links": links, "names": names, "documents": sections}
