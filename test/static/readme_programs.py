#!/usr/bin/env python3
"""Holds what our Markdown shows of C++ to example/, which CI builds and runs, and to the headers.

usage: readme_programs.py              check that a block after a comment is what the comment names
       readme_programs.py --fix        make it so
       readme_programs.py --self-test  check that this script rejects what it should

`<!-- example/NAME.cpp -->` names a file, below its licence; `<!-- example/NAME.cpp: PART -->` what stands
in it between `// begin: PART` and `// end: PART`; `<!-- include/weir/NAME.hpp -->` the table in that header's
documentation. Every C++ block of every Markdown file must be such a program or part, for nobody compiles any
other; and the README must have some. Exits with 1 and one line per violation if there are any.
"""

import os
import pathlib
import re
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {"build", ".deps", ".git", ".cache"}
BLOCK = re.compile(r"<!-- (example/[^\s:]+\.[ch]pp(?:: [^\n]*?)?) -->\n(?:```cpp\n.*?\n```\n)?", re.DOTALL)
TABLE = re.compile(r"<!-- (include/\S+\.hpp) -->\n(?:\|[^\n]*\n)*")
MARK = re.compile(r"^ *// (?:begin|end): .*\n", re.MULTILINE)
FENCE = re.compile(r"^ {0,3}(?:> ?)*(?:```+|~~~+) *([^\s`]*)", re.MULTILINE)
CPP = {"cpp", "c++", "cxx", "cc", "hpp", "h++"}


def documents(root: pathlib.Path) -> list[pathlib.Path]:
    """Our Markdown files."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in NOT_OURS)
        found += [pathlib.Path(folder) / f for f in sorted(files) if f.lower().endswith(".md")]
    return found


def program(root: pathlib.Path, name: str) -> str:
    """The file below its licence, or the part of it that is named."""
    file, _, part = name.partition(": ")
    text = (root / file).read_text(encoding="utf-8")
    if part:
        found = re.findall(rf"^ *// begin: {re.escape(part)}\n(.*?)^ *// end: {re.escape(part)}\n", text, re.M | re.S)
        if len(found) != 1:
            raise LookupError(f"there are {len(found)} parts {name}")
        text = textwrap.dedent(found[0])
    else:
        text = text.split("\n\n", 1)[1]
    return MARK.sub("", text).rstrip("\n")


def table(root: pathlib.Path, name: str) -> str:
    lines = re.findall(r"^/// (\|.*)\n", (root / name).read_text(encoding="utf-8"), re.M)
    if not lines:
        raise LookupError(f"there is no table in {name}")
    return "\n".join(lines)


def check(root: pathlib.Path, fix: bool) -> tuple[list[str], int]:
    """What is wrong, and how many programs there are."""
    wrong: list[str] = []
    shown = 0
    for path in documents(root):
        name = path.relative_to(root)
        old = path.read_text(encoding="utf-8")
        try:
            new = BLOCK.sub(lambda m: f"<!-- {m[1]} -->\n```cpp\n{program(root, m[1])}\n```\n", old)
            new = TABLE.sub(lambda m: f"<!-- {m[1]} -->\n{table(root, m[1])}\n", new)
        except (LookupError, FileNotFoundError) as missing:
            wrong.append(f"{name}: {missing}")
            continue
        # What is shown of a file may itself have fences in it; what stands elsewhere may not.
        others = [t for t in FENCE.findall(BLOCK.sub("", new)) if t.lower() in CPP]
        named = len(BLOCK.findall(new))
        if others:
            wrong.append(f"{name}: {len(others)} of its C++ blocks do not name their program")
        if str(name) == "README.md" and named == 0:
            wrong.append(f"{name}: it shows no program")
        if fix and new != old:
            path.write_text(new, encoding="utf-8")
        elif new != old:
            wrong.append(f"{name} does not show what is there: "
                         "run test/static/readme_programs.py --fix")
        shown += named
    return wrong, shown


def self_test() -> int:
    licence = "// Copyright\n// Licence\n\n"
    shown = "<!-- example/a.cpp -->\n```cpp\nint main() {}\n```\n"
    plain = "```cpp\nint main() {}\n```\n"
    part = "<!-- example/p.cpp: inner -->\n```cpp\nf();\n```\n"
    parts = licence + "int main() {\n  // begin: inner\n  f();\n  // end: inner\n}\n"
    cells = "<!-- include/a.hpp -->\n| a |\n|---|\n| b |\n"
    header = "/// Text.\n/// | a |\n/// |---|\n/// | b |\n"
    # Markdown files, and whether there is something wrong with them.
    cases = [
        ({"README.md": shown}, False),
        ({"README.md": shown, "docs/deep/x.md": shown + "```sh\nls\n```\n"}, False),
        ({"README.md": shown, "build/x.md": plain, ".deps/boost/y.md": plain}, False),
        ({"README.md": ""}, True),
        ({"README.md": plain}, True),
        ({"README.md": shown, "docs/x.md": plain}, True),
        ({"README.md": shown, "x.md": "~~~ C++\nint i;\n~~~\n"}, True),
        ({"README.md": shown, "x.md": "> ```c++\n> int i;\n> ```\n"}, True),
        ({"README.md": shown, "x.md": shown.replace("{}", "{ }")}, True),
        ({"README.md": shown, "x.md": shown.replace("a.cpp", "b.cpp")}, True),
        ({"README.md": "<!-- example/a.cpp -->\n"}, True),
        ({"README.md": part}, False),
        ({"README.md": part.replace("f()", "g()")}, True),
        ({"README.md": part.replace("inner", "other")}, True),
        ({"README.md": shown + cells}, False),
        ({"README.md": shown + cells.replace("| b |", "| c |")}, True),
        ({"README.md": shown + cells.replace("a.hpp", "b.hpp")}, True),
    ]
    failed = 0
    for files, bad in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            sources = {"example/a.cpp": licence + "int main() {}\n", "example/p.cpp": parts, "include/a.hpp": header}
            for name, text in {**files, **sources}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            wrong, _ = check(root, fix=False)
            if bool(wrong) != bad:
                print(f"self-test: {files}: {wrong or 'nothing found'}")
                failed += 1
            # What can be corrected is, and then stays as it is.
            if bad and any("--fix" in w for w in wrong):
                check(root, fix=True)
                if check(root, fix=False)[0]:
                    print(f"self-test: {files}: not corrected")
                    failed += 1
    if not failed:
        print(f"self-test: {len(cases)} cases, each found right or wrong as it is")
    return 1 if failed else 0


def main() -> int:
    if "--self-test" in sys.argv[1:]:
        return self_test()
    wrong, shown = check(ROOT, "--fix" in sys.argv[1:])
    for line in wrong:
        print(line)
    if not wrong:
        print(f"our Markdown shows {shown} programs of example/, or parts of them, and no other")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
