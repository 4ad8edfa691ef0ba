#!/usr/bin/env python3
"""What it costs to include weir: the time to parse each public header, beside the Asio headers that it needs anyway.

usage: compile.py --boost PREFIX [--cxx COMPILER]... [--rounds N] [HEADER...]

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
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^#include ([<"])([^">]+)[">]', re.MULTILINE)
# What of a store is its client library, by how its headers name it.
CLIENTS = {
    "weir/store/sqlite.hpp": ["sqlite3.h"],
    "weir/store/redis.hpp": ["boost/asio/ssl/stream.hpp"],
    "weir/store/postgres.hpp": ["libpq-fe.h"],
    "weir/store/nats.hpp": ["nats/nats.h"],
}
# What any program includes that runs a coroutine.
PROGRAM = [f"boost/asio/{name}.hpp" for name in ("awaitable", "co_spawn", "detached", "io_context", "use_awaitable")]
# How much dearer than its reference each may be.
TARGETS = {"weir.hpp": 1.4} | dict.fromkeys(CLIENTS, 1.5)
# Where the target is missed, and is known to be: why. {} is the ratio of all headers that are not weir's.
LIMITS = {
    "weir.hpp": "known: the headers that it includes and that are not weir's take {:.2f} times the reference by "
    "themselves. The rest is mostly the memory store: the classes of its tables and containers, and one "
    "boost::system::result for each of some thirty answers. A program that uses another store need not include it: "
    "weir/limiter.hpp or another primitive, and that store's header.",
}
PRIVATE = re.compile(r"^weir/(detail|lease|table|worker|store/[a-z]+|testing/[a-z]+)/")


def public_headers():
    """Those that users name: what docs/Doxyfile leaves out is the inside."""
    left_out = (ROOT / "docs/Doxyfile").read_text(encoding="utf-8").split("\nEXCLUDE ")[1]
    inside = set(re.findall(r"include/(weir/\S+\.hpp)", left_out))
    names = (str(p.relative_to(ROOT / "include")) for p in (ROOT / "include").rglob("*.hpp"))
    return sorted(n for n in names if not PRIVATE.match(n) and n not in inside)


def foreign(header):
    """The headers of others that weir's own name, from this one on."""
    seen, others, todo = set(), set(), [header]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        text = (ROOT / "include" / name).read_text(encoding="utf-8")
        # What this system takes comes first.
        text = re.sub(r"^#else\n.*?^#endif", "", text, flags=re.MULTILINE | re.DOTALL)
        for kind, included in INCLUDE.findall(text):
            if kind == '"':
                todo.append(included)
            else:
                others.add(included)
    return sorted(others)


def reached(header):
    """The Asio headers among them, and those of any program; none without any."""
    asio = [h for h in foreign(header) if h.startswith("boost/asio/")]
    return sorted(set(asio).union(PROGRAM)) if asio else []


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
    """A row as bench/report.hpp writes them; the figure of several rounds is the least."""
    def spread(all_of):
        return (statistics.median(all_of) - min(all_of)) / min(all_of)

    reference = reached(header) + CLIENTS.get(header, [])
    own, others, all_foreign = [], [], []
    for _ in range(rounds):
        own.append(parser.seconds([header]))
        # Without Asio there is nothing to compare with but a file that is empty.
        if reference:
            others.append(parser.seconds(reference))
        if header in LIMITS:
            all_foreign.append(parser.seconds(foreign(header)))
    row = {"name": f"{header} ({parser.cxx})", "unit": "s", "better": "less", "ours": min(own), "spread": spread(own),
           "runs": len(own)}
    megabytes = parser.megabytes([header])
    if megabytes:
        row["note"] = f"{megabytes:.0f} MB" + (f", {parser.megabytes(reference):.0f} without weir" if reference else "")
    if others:
        row["reference"] = {"name": "the Asio headers and the client library", "figure": min(others),
                            "spread": spread(others)}
        row["ratio"] = min(own) / min(others)
        row["ratio_spread"] = max(spread(own), spread(others))
        if header in TARGETS:
            row["target"] = f"<= {TARGETS[header]:.3f} x"
            row["met"] = row["ratio"] <= TARGETS[header]
        if all_foreign and not row.get("met"):
            row["why"] = LIMITS[header].format(min(all_foreign) / min(others))
    return row


def shown(row):
    reference = f"{row['reference']['figure']:7.2f}" if "reference" in row else f"{'-':>7}"
    ratio = f"{row['ratio']:6.2f}" if "reference" in row else f"{'-':>6}"
    met = {None: "", True: "  met", False: "  MISSED"}[row.get("met")]
    return (f"{row['name']:44} {row['ours']:7.2f} {reference} {ratio} {100 * row['spread']:4.0f}%  "
            f"{row.get('target', ''):11}{met:8}  {row.get('note', '')}").rstrip()


def processor():
    names = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return names[1] if names else "processor unknown"


def version(cxx):
    said = subprocess.run([cxx, "--version"], check=True, capture_output=True, text=True).stdout
    return said.splitlines()[0]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boost")
    arguments.add_argument("--cxx", action="append")
    arguments.add_argument("--rounds", type=int, help="of each header (5 of those with a target, 2 of others)")
    arguments.add_argument("headers", nargs="*")
    given = arguments.parse_args()
    compilers = given.cxx or [c for c in ("g++", "clang++-19") if shutil.which(c)]
    load_before = os.getloadavg()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for cxx in compilers:
            parser = Parser(cxx, given.boost, folder)
            print(f"{'header':44} {'parse s':>7} {'asio s':>7} {'ratio':>6} {'+-':>5}  target")
            for header in given.headers or public_headers():
                rows.append(measure(parser, header, given.rounds or (5 if header in TARGETS else 2)))
                print(shown(rows[-1]), flush=True)
                if "why" in rows[-1]:
                    print(textwrap.fill(rows[-1]["why"], 110, initial_indent="  ", subsequent_indent="  "), flush=True)
    file = pathlib.Path(os.environ.get("WEIR_BENCH_OUTPUT", ".")) / "compile.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": processor(), "cores": os.cpu_count(), "load_before": load_before,
               "load_after": os.getloadavg()[0]}
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    file.write_text(json.dumps({"schema": 1, "bench": "compile", "made": made, "machine": machine,
                                "compiler": ", ".join(version(c) for c in compilers), "rows": rows}, indent=1) + "\n",
                    encoding="utf-8")
    print(f"\nwritten: {file}")


if __name__ == "__main__":
    sys.exit(main())
