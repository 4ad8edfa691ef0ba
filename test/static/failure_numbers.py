#!/usr/bin/env python3
"""Holds docs/failures.md to the tests: each failure that it lists has one that bears its number, and no test bears another.

usage: failure_numbers.py              check it
       failure_numbers.py --self-test  check that this script rejects what it should

A number stands in a test's name (`F19_...`) or as a word of its file. What a header only says about the suite is no test.
Exits with 1 and one line per violation if there are any.
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = "docs/failures.md"
ROW = re.compile(r"^\| F(\d+) \| \S", re.MULTILINE)
NUMBER = re.compile(r"(?<![A-Za-z0-9%\\])F(\d+)(?=_|\b)")
TESTS = ["test", "include/weir/testing"]
SAYS_ONLY = "include/weir/testing/conformance.hpp"


def check(root: pathlib.Path) -> tuple[list[str], int]:
    """What is wrong, and how many failures are listed."""
    listed = [int(n) for n in ROW.findall((root / LIST).read_text(encoding="utf-8"))]
    borne: dict[int, str] = {}
    for folder in TESTS:
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix in {".hpp", ".cpp"} and name != SAYS_ONLY:
                for number in NUMBER.findall(path.read_text(encoding="utf-8")):
                    borne.setdefault(int(number), name)
    wrong = []
    if listed != sorted(set(listed)):
        wrong.append(f"{LIST}: its failures are not in the order of their numbers, each once")
    wrong += [f"{LIST}: no test bears F{n}" for n in listed if n not in borne]
    wrong += [f"{borne[n]}: F{n} is not in {LIST}" for n in sorted(borne) if n not in listed]
    return wrong, len(listed)


def self_test() -> int:
    rows = "| F1 | a |\n| F2 | b |\n"
    # A list, a test, and whether there is something wrong with them.
    cases = [
        (rows, "TEST(F1_a) {}  // F2: b", False),
        (rows, "TEST(F1_R3_a) {}\nTEST(F2_b) {}  // \\xF4\\x90 %F4%90 0xF3", False),
        (rows, "TEST(F1_a) {}  // xF2", True),
        (rows, "TEST(F1_a) {}  // F2, F3", True),
        (rows + "| F4 | d |\n", "// F1 F2 F4", False),
        ("| F2 | b |\n| F1 | a |\n", "// F1 F2", True),
        (rows + "| F2 | b |\n", "// F1 F2", True),
    ]
    failed = 0
    for listed, text, bad in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in {LIST: listed, "test/a.cpp": text, SAYS_ONLY: "// F2 F9"}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content, encoding="utf-8")
            wrong, _ = check(root)
            if bool(wrong) != bad:
                print(f"self-test: {listed!r}, {text!r}: {wrong or 'nothing found'}")
                failed += 1
    if not failed:
        print(f"self-test: {len(cases)} cases, each found right or wrong as it is")
    return 1 if failed else 0


def main() -> int:
    if "--self-test" in sys.argv[1:]:
        return self_test()
    wrong, listed = check(ROOT)
    for line in wrong:
        print(line)
    if not wrong:
        print(f"each of {listed} failures has a test that bears its number")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
