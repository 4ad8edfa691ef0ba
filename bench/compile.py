#!/usr/bin/env python3
"""What it costs to include weir: the time to parse each public header, beside the Asio headers that it needs anyway.

usage: compile.py --boost PREFIX [--cxx COMPILER] [--rounds N] [--json FILE] [HEADER...]

The reference of a header is a file that includes the <boost/asio/...> headers which it reaches through weir's own, and, for
a store on an engine, that engine's client library. Both are parsed in turn (-fsyntax-only), and what is compared
is the least processor time of the rounds: whatever else the machine does can only add to it.
"""

import argparse
import json
import pathlib
import re
import resource
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
# How much dearer than its reference each may be.
TARGETS = {"weir.hpp": 1.4} | dict.fromkeys(CLIENTS, 1.5)
PRIVATE = re.compile(r"^weir/(detail|lease|worker|store/[a-z]+|testing/[a-z]+)/")


def public_headers():
    names = (str(p.relative_to(ROOT / "include")) for p in (ROOT / "include").rglob("*.hpp"))
    return sorted(n for n in names if not PRIVATE.match(n))


def reached(header):
    """The Asio headers that weir's own headers name, from this one on."""
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
    return sorted(asio)


class Parser:
    def __init__(self, cxx, boost, folder):
        self.command = [cxx, "-std=c++20", "-fsyntax-only", "-pthread", f"-I{ROOT / 'include'}"]
        if boost:
            self.command += ["-isystem", f"{boost}/include"]
        self.command += ["-isystem", "/usr/include/postgresql"]
        self.folder = pathlib.Path(folder)

    def seconds(self, headers):
        source = self.folder / "includes.cpp"
        source.write_text("".join(f"#include <{h}>\n" for h in headers), encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*self.command, source], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boost")
    arguments.add_argument("--cxx", default="g++")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json")
    arguments.add_argument("headers", nargs="*")
    given = arguments.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        parser = Parser(given.cxx, given.boost, folder)
        print(f"{'header':38} {'parse':>7} {'asio':>7} {'ratio':>6}  target   ({given.cxx}, seconds)")
        for header in given.headers or public_headers():
            reference = reached(header) + CLIENTS.get(header, [])
            own, others = [], []
            for _ in range(given.rounds):
                own.append(parser.seconds([header]))
                others.append(parser.seconds(reference))
            row = {"header": header, "seconds": min(own), "reference_seconds": min(others),
                   "target": TARGETS.get(header)}
            # Without Asio there is nothing to compare with but a file that is empty.
            row["ratio"] = row["seconds"] / row["reference_seconds"] if reference else None
            rows.append(row)
            ratio = f"{row['ratio']:6.2f}" if reference else f"{'-':>6}"
            target = f"<= {row['target']}" if row["target"] else ""
            print(f"{header:38} {row['seconds']:7.2f} {row['reference_seconds']:7.2f} {ratio}  {target}", flush=True)
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    missed = [r["header"] for r in rows if r["target"] and r["ratio"] > r["target"]]
    if missed:
        print(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    sys.exit(main())
