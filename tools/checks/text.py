"""Rules on the text of every hand-written file."""

import re

from checks.tree import CPP_SUFFIXES, Problem, matches

SOURCE_LINES = 800
HEADER_LINES = 400
# Holds what the rules must catch.
RULES_TEST = "tools/presubmit_test.py"


def ascii_only(tree):
    for path in tree.text_files():
        for number, line in enumerate(tree.read(path).split("\n"), 1):
            if not line.isascii():
                bad = next(c for c in line if not c.isascii())
                yield Problem("ascii", path, number,
                              f"the character {bad!r} is not ASCII; write it in ASCII, or as an escape (\\u...) "
                              "in a string literal.")


def whitespace(tree):
    for path in tree.text_files():
        if path == "LICENSE":
            continue
        text = tree.read(path)
        if text and not text.endswith("\n"):
            yield Problem("whitespace", path, text.count("\n") + 1, "the last line has no newline; add one.")
        if text.endswith("\n\n"):
            yield Problem("whitespace", path, text.count("\n"), "the file ends in empty lines; remove them.")
        tabs_allowed = path.rsplit("/", 1)[-1] in ("Makefile", ".gitmodules")
        for number, line in enumerate(text.split("\n"), 1):
            if line.endswith((" ", "\t", "\r")):
                yield Problem("whitespace", path, number, "white space at the end of the line; remove it.")
            elif "\t" in line and not tabs_allowed:
                yield Problem("whitespace", path, number, "a tab; indent with spaces.")


def length(tree):
    for path in tree.text_files():
        if not path.endswith(CPP_SUFFIXES + (".py", ".sh")):
            continue
        limit = HEADER_LINES if path.endswith(".h") else SOURCE_LINES
        lines = tree.read(path).count("\n")
        # The public headers are each the whole surface of a library and carry its documentation.
        if path.startswith("include/"):
            limit = SOURCE_LINES
        if lines > limit:
            yield Problem("length", path, limit, f"{lines} lines where {limit} is the limit; split it by job.")


def todo(tree):
    """Unfinished work is named by an open issue or not at all."""
    marker = r"\b(TODO|FIXME|XXX|HACK)\b(\(#\d+\): \S)?"  # todo-rule
    for path in tree.text_files():
        if path.endswith(".md") or path == RULES_TEST:
            continue
        for number, m, line in matches(tree, path, marker, tree.read(path)):
            if "todo-rule" in line or (m[1] == "TODO" and m[2]):
                continue
            yield Problem("todo", path, number,
                          f"{m[1]} without an issue; write `TODO(#number): what`, or do it.")  # todo-rule


# Each: what must not stand in a comment or document, and what to do instead.
_WORDS = (
    (r"(?<![\w.~$}])/(?:work|home|root|Users)/[\w.]", "a path of one machine; name files from the root of the project."),
    (r"(?i)\bco-authored-by\b", "notes on authorship belong to the version control system; remove it."),
    (r"(?i)\b(?:agents?|chatbots?)\b", "the project speaks of itself alone; say what the code does instead."),
    (r"(?i)\b(?:previously|formerly|used to be|was renamed|was refactored|in an earlier version of this)\b",
     "comments and documents say what is; the history is in the commits. Describe the present state."),
)


def words(tree):
    for path in tree.text_files():
        if path in ("LICENSE", "CHANGELOG.md") or path.startswith("tools/checks/") or path == RULES_TEST:
            continue
        text = tree.comments(path) if path.endswith(CPP_SUFFIXES) else tree.read(path)
        for pattern, advice in _WORDS:
            for number, m, _ in matches(tree, path, pattern, text):
                yield Problem("words", path, number, f"`{m[0]}`: {advice}")


def references(tree):
    """A file that code or a script names in a comment is there."""
    name = (r"(?<![\w./*<${}-])(?:docs|tools|src|tests|fuzz|bench|include|cmake|examples)/"
            r"[\w./-]*[\w-]\.(?:md|py|h|cc|cmake|sh|def|txt|json|dict)\b(?![\w*<])")
    for path in tree.text_files():
        if path.endswith((".md", "_test.py")):
            continue
        text = tree.comments(path) if path.endswith(CPP_SUFFIXES) else tree.read(path)
        for number, m, _ in matches(tree, path, name, text):
            if m[0] not in tree:
                yield Problem("references", path, number, f"{m[0]} does not exist; name the file as it is called.")


RULES = {"ascii": ascii_only, "whitespace": whitespace, "length": length, "todo": todo, "words": words,
         "references": references}
