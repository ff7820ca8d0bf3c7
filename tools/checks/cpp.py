"""Rules on C++ that need no compiler: guards, banned patterns, and who may include whom."""

import re

from checks.tree import Problem, is_library, is_test, matches


def guard_of(path):
    """include/assay/base.h -> ASSAY_BASE_H_; src/gpu/backend.h -> ASSAY_GPU_BACKEND_H_."""
    for prefix in ("include/assay/", "src/"):
        if path.startswith(prefix):
            path = path[len(prefix):]
            break
    return "ASSAY_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"


def guards(tree):
    for path in tree.cpp_files():
        if not path.endswith(".h"):
            continue
        text = tree.read(path)
        guard = guard_of(path)
        plain = re.search(rf"^#ifndef {guard}\n#define {guard}\n", text, re.M)
        # Highway compiles such a header once for each instruction set.
        per_target = re.search(rf"^#if defined\({guard}\) == defined\(HWY_TARGET_TOGGLE\)", text, re.M)
        if not (plain or (path.endswith("-inl.h") and per_target)):
            yield Problem("guards", path, 1, f"the include guard must be {guard} (#ifndef, #define, #endif).")
        elif not text.rstrip().endswith(f"#endif  // {guard}"):
            yield Problem("guards", path, text.count("\n"), f"the last line must be `#endif  // {guard}`.")
        if not text.startswith("//"):
            yield Problem("guards", path, 1, "a header starts with a comment that says what it is for.")


def _everywhere(path):
    return True


def _outside_tests(path):
    return not is_test(path)


# Rule, pattern on code without comments and strings, where it counts, and the replacement.
BANNED = (
    ("print", r"\bstd::(?:cout|cerr|clog)\b|(?<![\w.>])(?:std::)?(?:printf|puts|putchar|perror)\s*\("
     r"|\bfprintf\s*\(|\bfmt::print\b", is_library,
     "libraries do not print; return a Status and let src/cli say it."),
    ("exit", r"(?<![\w.>])(?:std::)?(?:abort|exit|_exit|quick_exit|terminate)\s*\(", is_library,
     "libraries do not end the process; return a Status."),
    ("throw", r"\bthrow\b(?!\s*;)", is_library, "libraries throw nothing; return Fail(code, subject, message)."),
    ("using-namespace", r"\busing\s+namespace\b", _everywhere, "name what is used: `using a::B;` or a namespace alias."),
    ("rand", r"(?<![\w.>:])(?:std::)?(?:rand|srand|srandom|drand48)\s*\(|\bstd::random_device\b|\brandom_shuffle\b",
     _everywhere, "use std::mt19937_64 with a fixed seed, so that a run can be repeated."),
    ("assert", r"(?<!\w)assert\s*\(|#\s*include\s*<cassert>", _everywhere,
     "bad input is an error (return Fail), a broken invariant an Error of code kInternal; static_assert is fine."),
    ("sleep", r"\bsleep_(?:for|until)\b|(?<![\w.>])(?:u|nano)?sleep\s*\(", is_test,
     "tests do not sleep; wait on a std::latch, std::barrier or condition variable."),
    ("thread-local", r"\bthread_local\b", _outside_tests, "pass the object that holds the state to whom needs it."),
    ("endl", r"\bstd::endl\b", _everywhere, "write '\\n'; flush where a flush is meant."),
    ("pragma-once", r"#\s*pragma\s+once\b", _everywhere, "use an include guard named after the path."),
    ("delete", r"(?<!=)(?<!= )(?<!operator )\bdelete\b(?!\s*;\s*$)(?=[\s\[])", _outside_tests,
     "own with std::unique_ptr or std::vector."),
    ("malloc", r"(?<![\w.>])(?:std::)?(?:malloc|calloc|realloc|free)\s*\(", _outside_tests,
     "own with std::vector or std::unique_ptr."),
    ("regex", r"\bstd::(?:basic_)?regex\b|#\s*include\s*<regex>", _everywhere,
     "std::regex recurses on its input; use pcre2 with limits, or plain code."),
    ("clang-14", r"\bstd::(?:ranges::)?views::|\bstd::source_location\b|#\s*include\s*<(?:format|expected)>|\b_Float16\b",
     _everywhere, "clang 14 or g++ 12 cannot compile it; use algorithms, fmt and tl::expected."),
    ("mutable-static", r"\bstatic\s+(?!const\b|constexpr\b|constinit\s+const\b|inline\b|_?assert)"
     r"[^;(){}=]*[\w>\]]\s*(?:=(?!=)|;|\{)", _outside_tests,
     "no state outside objects; make it a member, or const."),
    ("mutable-global", r"^(?!(?:inline\s+|static\s+|extern\s+)*(?:const|constexpr|constinit)\b)"
     r"(?!(?:using|namespace|return|struct|class|enum|union|template|typedef|friend|case|default|static|extern|public|"
     r"private|protected|concept|else|do|goto|delete|throw)\b)"
     r"[A-Za-z_][\w:<>,*& ]*[\w>*&] [a-z_]\w*(?:\[[^\]]*\])?\s*(?:=(?!=)[^;]*;|;|\{[^}()]*\};)$", _outside_tests,
     "no state outside objects; make it a member, or const."),
)


def banned(tree):
    for path in tree.cpp_files():
        code = tree.code(path)
        for rule, pattern, applies, replacement in BANNED:
            if not applies(path):
                continue
            for number, m, line in matches(tree, path, pattern, code):
                # One exception a line, counted in tools/counts.json.
                if f"NOLINT(assay-{rule})" in line:
                    continue
                yield Problem(rule, path, number, f"`{' '.join(m[0].split())}`: {replacement}")


def nolint(tree):
    for path in tree.cpp_files():
        for number, _, line in matches(tree, path, r"NOLINT(?!(?:NEXTLINE|BEGIN|END)?\([\w.,*-]+\))", tree.read(path)):
            yield Problem("nolint", path, number,
                          "name the check and the reason: `// NOLINT(check-name): why it does not apply`.")


# The picture of ARCHITECTURE.md: the libraries that each may include, itself among them.
PICTURE = {
    "base": {"base"},
    "trace": {"base", "trace"},
    "flow": {"base", "flow"},
    "gpu": {"base", "flow", "gpu"},
    "kernels": {"base", "flow", "gpu", "kernels"},
    "record": {"base", "flow", "gpu", "trace", "record"},
    "compare": {"base", "trace", "compare"},
    "hazard": {"base", "trace", "hazard"},
    "llm": {"base", "flow", "gpu", "kernels", "llm"},
    "layer": {"base", "trace", "layer"},
    "prove": {"base", "trace", "compare", "hazard", "prove"},
    "cli": {"base", "flow", "gpu", "kernels", "trace", "record", "compare", "hazard", "prove", "llm", "cli"},
}

HEAVY = re.compile(r'<(?:hwy/|gtest/|gmock/|benchmark/|rapidcheck|vulkan/|shaderc/)|[<"]CLI/|[<"]nlohmann/json\.hpp|<iostream>|<regex>')


def library_of(path):
    """The library that a file belongs to, None outside the libraries; gpu_graph.h is of gpu."""
    m = re.match(r"(?:src/(\w+)/|include/assay/([a-z0-9]+)(?:_\w+)?\.h$)", path)
    return (m[1] or m[2]) if m else None


def _may_include_backend(path, backend, name):
    """gpu/{null,cpu,vulkan} are known to nobody but the table of backends and themselves."""
    if path.startswith(f"src/gpu/{backend}/") or path == "src/gpu/backends.cc":
        return True
    if name in ("gpu/cpu/cpu_kernel.h", "gpu/vulkan/spirv_kernel.h") and path.startswith("src/kernels/"):
        return True
    return is_test(path) and path.startswith(("src/gpu/", "tests/", "bench/", "fuzz/"))


def includes(tree):
    for path in tree.cpp_files():
        library = library_of(path)
        if library and library not in PICTURE:
            yield Problem("includes", path, 1,
                          f"the library {library} is not in the picture; add it to ARCHITECTURE.md and to PICTURE in "
                          "tools/checks/cpp.py.")
        for number, quoted in tree.includes(path):
            name = quoted[1:-1]
            if path.startswith("include/"):
                standard = re.fullmatch(r"<[a-z_0-9]+>", quoted)
                if not (standard or quoted == "<tl/expected.hpp>" or re.fullmatch(r'"assay/\w+\.h"', quoted)):
                    yield Problem("includes", path, number,
                                  f"a public header includes only assay/*, the standard library and tl/expected.hpp, "
                                  f"not {quoted}; forward declare, or include it in the .cc.")
            if (path.endswith(".h") and not path.endswith("-inl.h") and not is_test(path) and HEAVY.match(quoted)
                    and not (path.startswith("src/gpu/vulkan/") and quoted.startswith("<vulkan/"))):
                yield Problem("includes", path, number,
                              f"{quoted} is a heavy header; include it in the .cc and forward declare here.")
            if quoted.startswith('"') and (name.startswith(".") or "/" not in name):
                yield Problem("includes", path, number,
                              f"{quoted}: include by the path from include/, src/ or the root of the tree.")
            target = library_of("include/" + name) if name.startswith("assay/") else library_of("src/" + name)
            if not quoted.startswith('"') or target is None:
                continue
            if path.startswith("examples/") and not name.startswith("assay/"):
                yield Problem("includes", path, number,
                              f"examples show the public headers; {quoted} is private.")
            backend = re.match(r"gpu/(null|cpu|vulkan)/", name)
            if backend and not _may_include_backend(path, backend[1], name):
                yield Problem("includes", path, number,
                              f"{quoted} is private to that backend; go through assay/gpu.h and gpu/backend.h.")
            if library in PICTURE and target in PICTURE and target not in PICTURE[library]:
                yield Problem("includes", path, number,
                              f"{library} may include {', '.join(sorted(PICTURE[library]))}, not {target} "
                              "(the picture in ARCHITECTURE.md).")


RULES = {"guards": guards, "banned": banned, "nolint": nolint, "includes": includes}
