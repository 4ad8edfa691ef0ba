#!/usr/bin/env python3
"""What it costs to include weir: the time to parse each public header, beside the Asio headers that it needs anyway.

usage: compile.py --boost PREFIX [--cxx COMPILER]... [--rounds N] [--json FILE] [HEADER...]

The reference of a header is a file that includes the <boost/asio/...> headers which it reaches through weir's own, and, for
a store on an engine, that engine's client library. Of a header that reaches any, it includes the few without which no
program could run a coroutine of weir's, too (PROGRAM): nobody includes weir without them. It does not include
<boost/asio.hpp>, which nobody needs. Standard headers are not in it, nor other parts of Boost.

Both are parsed in turn (-fsyntax-only) by each compiler, g++ and clang++-19 unless told otherwise. What is compared is the
least processor time of the rounds: whatever else the machine does can only add to it, but for what shares its cores' caches.
So g++'s own count of the memory that it allocates (-ftime-report) stands beside it: it goes with the time, hardly differs
from run to run, and tells what a change did on a machine that is busy. The targets are of the time.

Where the time goes: `g++ -ftime-report -H` or `clang++-19 -c -ftime-trace` of a file that includes the header.
"""

import argparse
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^#include ([<"])([^">]+)[">]', re.MULTILINE)
# What of a store is its client library, by how its headers name it.
CLIENTS = {
    "weir/store/sqlite.hpp": ["sqlite3.h"],
    "weir/store/redis.hpp": ["boost/redis/connection.hpp"],
    "weir/store/postgres.hpp": ["libpq-fe.h"],
}
# What any program includes that runs a coroutine.
PROGRAM = [f"boost/asio/{name}.hpp" for name in ("awaitable", "co_spawn", "detached", "io_context", "use_awaitable")]
# How much dearer than its reference each may be.
TARGETS = {"weir.hpp": 1.4} | dict.fromkeys(CLIENTS, 1.5)
PRIVATE = re.compile(r"^weir/(detail|lease|worker|store/[a-z]+|testing/[a-z]+)/")


def public_headers():
    names = (str(p.relative_to(ROOT / "include")) for p in (ROOT / "include").rglob("*.hpp"))
    return sorted(n for n in names if not PRIVATE.match(n))


def reached(header):
    """The Asio headers that weir's own headers name, from this one on, and those of any program; none without any."""
    seen, asio, todo = set(), set(), [header]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for kind, included in INCLUDE.findall((ROOT / "include" / name).read_text(encoding="utf-8")):
            if kind == '"':
                todo.append(included)
            elif included.startswith("boost/asio/"):
                asio.add(included)
    return sorted(asio.union(PROGRAM)) if asio else []


class Parser:
    def __init__(self, cxx, boost, folder):
        self.cxx = cxx
        self.command = [cxx, "-std=c++20", "-fsyntax-only", "-pthread", f"-I{ROOT / 'include'}"]
        if boost:
            self.command += ["-isystem", f"{boost}/include"]
        self.command += ["-isystem", "/usr/include/postgresql"]
        self.folder = pathlib.Path(folder)

    def source(self, headers):
        source = self.folder / "includes.cpp"
        source.write_text("".join(f"#include <{h}>\n" for h in headers), encoding="utf-8")
        return source

    def seconds(self, headers):
        source = self.source(headers)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*self.command, source], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def megabytes(self, headers):
        """What g++ allocates; none with another compiler."""
        if "clang" in self.cxx:
            return None
        told = subprocess.run([*self.command, "-ftime-report", self.source(headers)], check=True, capture_output=True,
                              text=True).stderr
        found = re.search(r"^ TOTAL .*?(\d+)([kM])\s*$", told, re.MULTILINE)
        return int(found[1]) / (1 if found[2] == "M" else 1024) if found else None


def measure(parser, header, rounds):
    reference = reached(header) + CLIENTS.get(header, [])
    own, others = [], []
    for _ in range(rounds):
        own.append(parser.seconds([header]))
        others.append(parser.seconds(reference))
    return {
        "header": header, "compiler": parser.cxx, "seconds": min(own), "reference_seconds": min(others),
        # Without Asio there is nothing to compare with but a file that is empty.
        "ratio": min(own) / min(others) if reference else None,
        "megabytes": parser.megabytes([header]),
        "reference_megabytes": parser.megabytes(reference),
        "target": TARGETS.get(header),
    }


def shown(row):
    ratio = f"{row['ratio']:6.2f}" if row["ratio"] else f"{'-':>6}"
    memory = f"{row['megabytes']:6.0f} {row['reference_megabytes']:6.0f}" if row["megabytes"] else " " * 13
    target = f"<= {row['target']}" if row["target"] else ""
    return f"{row['header']:38} {row['seconds']:7.2f} {row['reference_seconds']:7.2f} {ratio} {memory}  {target}".rstrip()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boost")
    arguments.add_argument("--cxx", action="append")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json")
    arguments.add_argument("headers", nargs="*")
    given = arguments.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for cxx in given.cxx or [c for c in ("g++", "clang++-19") if shutil.which(c)]:
            parser = Parser(cxx, given.boost, folder)
            print(f"{cxx:38} {'parse s':>7} {'asio s':>7} {'ratio':>6} {'MB':>6} {'asio':>6}  target")
            for header in given.headers or public_headers():
                rows.append(measure(parser, header, given.rounds))
                print(shown(rows[-1]), flush=True)
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        if row["target"] and row["ratio"] > row["target"]:
            print(f"missed: {row['header']} with {row['compiler']}: {row['ratio']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
