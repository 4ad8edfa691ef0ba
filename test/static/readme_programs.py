#!/usr/bin/env python3
"""Holds the README's programs to those in example/, which CI builds and runs.

usage: readme_programs.py          check that each block after `<!-- example/NAME.cpp -->` is that file
       readme_programs.py --fix    make it so

What is compared is the file below its licence. Every C++ block of the README must be such a program.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"<!-- (example/\S+\.cpp) -->\n(?:```cpp\n.*?\n```\n)?", re.DOTALL)


def program(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    return text.split("\n\n", 1)[1].rstrip("\n")


def main() -> int:
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda m: f"<!-- {m[1]} -->\n```cpp\n{program(m[1])}\n```\n", old)
    named = len(BLOCK.findall(new))
    blocks = len(re.findall(r"^```cpp$", new, re.MULTILINE))
    if named == 0 or named != blocks:
        print(f"README.md has {blocks} C++ blocks, and {named} of them name their program")
        return 1
    if "--fix" in sys.argv[1:]:
        readme.write_text(new, encoding="utf-8")
    elif new != old:
        print("README.md does not show what is in example/: run test/static/readme_programs.py --fix")
        return 1
    print(f"README.md shows {named} programs of example/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
