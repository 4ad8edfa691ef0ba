#!/usr/bin/env python3
"""Holds docs/errors.md to the tests that produce its rows.

usage: error_table.py

A row of what the compiler says names a file of test/static/fail, whose expected message it must have; each of those files has a row.
Every other row must be named in a test, which compares what it sees with the page.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "errors.md"
ROW = re.compile(r"^\| (?P<mistake>.+?) \| `(?P<line>[^`]+)` \| (?P<cure>.+) \| `(?P<name>[a-z_]+(?:\.[a-z_]+)+)` \|$")
COMPILER = "static.fail."


def main() -> int:
    problems = []
    rows = {}
    for number, text in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if not text.startswith("| ") or text.startswith("| mistake |"):
            continue
        row = ROW.match(text)
        if not row:
            problems.append(f"{PAGE}:{number}: not `| mistake | `line` | cause and remedy | `row` |`")
        elif row["name"] in rows:
            problems.append(f"{PAGE}:{number}: {row['name']} is there twice")
        else:
            rows[row["name"]] = row["line"]

    sources = {f: f.read_text(encoding="utf-8") for f in (ROOT / "test").rglob("*.cpp")}
    failing = {f.stem: text for f, text in sources.items() if f.parent.name == "fail"}
    for name, line in rows.items():
        if not name.startswith(COMPILER):
            if not any(f'"{name}"' in text for text in sources.values()):
                problems.append(f"{PAGE}: no test compares {name}")
            continue
        text = failing.get(name.removeprefix(COMPILER))
        if text is None:
            problems.append(f"{PAGE}: there is no file for {name}")
            continue
        expected = re.match(r"//\s*expect:\s*(\S.*?)\s*$", text.splitlines()[0])
        if not expected or not re.search(expected[1], line):
            problems.append(f"{PAGE}: {name} shows another message than its test expects")
    for stem in sorted(failing):
        if COMPILER + stem not in rows:
            problems.append(f"{PAGE}: no row for {COMPILER}{stem}")
    least = 40
    if len(rows) < least:
        problems.append(f"{PAGE}: {len(rows)} rows, and not {least}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
