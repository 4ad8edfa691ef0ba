#!/usr/bin/env python3
"""What it costs to include weir: the time to parse each public header, beside the Asio headers that it needs anyway.

usage: compile.py --boost PREFIX [--cxx COMPILER] [--rounds N] [HEADER...]

The reference of a header is a file that includes the <boost/asio/...> headers which it reaches through weir's own, and, for
a store on an engine, that engine's client library. Both are parsed in turn (-fsyntax-only), and what is compared
is the least processor time of the rounds: whatever else the machine does can only add to it.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

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


def row_of(header, own, others, cxx):
    """As bench/report.hpp writes them; the figure of several rounds is the least."""
    def spread(all_of):
        return (statistics.median(all_of) - min(all_of)) / min(all_of)

    row = {"name": header, "unit": "s", "better": "less", "ours": min(own), "spread": spread(own), "runs": len(own),
           "note": cxx}
    if others:
        row["reference"] = {"name": "the Asio headers and the client library", "figure": min(others),
                            "spread": spread(others)}
        row["ratio"] = min(own) / min(others)
        row["ratio_spread"] = max(spread(own), spread(others))
        if header in TARGETS:
            row["target"] = f"<= {TARGETS[header]:.3f} x"
            row["met"] = row["ratio"] <= TARGETS[header]
    return row


def show(row):
    reference = f"{row['reference']['figure']:7.2f}" if "reference" in row else f"{'-':>7}"
    ratio = f"{row['ratio']:6.2f}" if "reference" in row else f"{'-':>6}"
    met = {None: "", True: "  met", False: "  MISSED"}[row.get("met")]
    print(f"{row['name']:38} {row['ours']:7.2f} {reference} {ratio} {100 * row['spread']:4.0f}%  "
          f"{row.get('target', '')}{met}", flush=True)


def processor():
    names = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return names[1] if names else "processor unknown"


def version(cxx):
    said = subprocess.run([cxx, "--version"], check=True, capture_output=True, text=True).stdout
    return said.splitlines()[0]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boost")
    arguments.add_argument("--cxx", default="g++")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("headers", nargs="*")
    given = arguments.parse_args()
    load_before = os.getloadavg()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        parser = Parser(given.cxx, given.boost, folder)
        print(f"{'header':38} {'parse':>7} {'asio':>7} {'ratio':>6} {'+-':>5}  target   ({given.cxx}, seconds)")
        for header in given.headers or public_headers():
            # Without Asio there is nothing to compare with but a file that is empty.
            reference = reached(header) + CLIENTS.get(header, [])
            own, others = [], []
            for _ in range(given.rounds):
                own.append(parser.seconds([header]))
                if reference:
                    others.append(parser.seconds(reference))
            rows.append(row_of(header, own, others, given.cxx))
            show(rows[-1])
    file = pathlib.Path(os.environ.get("WEIR_BENCH_OUTPUT", ".")) / "compile.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": processor(), "cores": os.cpu_count(), "load_before": load_before,
               "load_after": os.getloadavg()[0]}
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    file.write_text(json.dumps({"schema": 1, "bench": "compile", "made": made, "machine": machine,
                                "compiler": version(given.cxx), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {file}")


if __name__ == "__main__":
    sys.exit(main())
