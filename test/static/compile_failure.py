#!/usr/bin/env python3
"""Succeeds if a source does not compile, and the first error says the reason that it names.

usage: compile_failure.py --source FILE [--expect REGEX] -- COMPILER ARGUMENT...

REGEX is looked for in the compiler's first error, which is what people read; without it, the one in the source's first line,
`// expect: REGEX`. Failing for another reason (a slip in the test itself) is a failure here.
"""

import argparse
import os
import re
import subprocess
import sys


def first_error(output: str) -> str:
    """Its text, which has several lines where clang quotes a lambda, up to the excerpt of the source."""
    found = re.search(r"^.*\berror: (.|\n)*?(?=\n *\d+ \||\n.*\b(?:note|error): |\Z)", output, re.MULTILINE)
    return found.group(0) if found else ""


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--source", required=True)
    arguments.add_argument("--expect", default="")
    arguments.add_argument("command", nargs="+")
    options = arguments.parse_args()

    expect = options.expect
    if not expect:
        with open(options.source, encoding="utf-8") as source:
            first = re.match(r"//\s*expect:\s*(\S.*?)\s*$", source.readline())
        if not first:
            sys.exit(f"{options.source}: the first line must be `// expect: REGEX`")
        expect = first.group(1)

    # The C locale: plain quotes, English words.
    run = subprocess.run(
        [*options.command, options.source],
        env={**os.environ, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if run.returncode == 0:
        sys.exit(f"{options.source} compiles, and must not")
    if not re.search(expect, first_error(run.stdout)):
        sys.exit(f"{run.stdout}\n{options.source} fails to compile, but not with: {expect}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
