#!/usr/bin/env python3
"""What it costs to compile with weir: time, memory and text of programs as users write them, in both modes.

usage: compile.py [--boost PREFIX] [--cxx COMPILER] [--rounds N] [PROGRAM...]

The programs are those of bench/compile/. Each of weir's is compiled with all of weir in it ("header-only"), and with what
is compiled once apart ("compiled": WEIR_SEPARATE_COMPILATION); what compiling that once costs is a row of its own. Beside
them stand programs of others: Asio alone, and the simplest one of Boost.MySQL and of Boost.Redis, both header-only and with
what these compile apart.

All are compiled in turn with -O1, by clang++-19 unless told otherwise. The figure is the least user time of the rounds:
whatever else the machine does can only add to it; memory is the largest resident set. Every row's ratio is to Asio alone, in the same run: the targets are in seconds
on a quiet machine on which that takes two.

Where the time goes: `clang++-19 -c -O1 -ftime-trace` of such a program.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
STORES = ["memory", "sqlite", "redis", "postgres", "nats"]
APART = "-DWEIR_SEPARATE_COMPILATION"
# What a row may take at most: seconds, megabytes, kilobytes of text.
TARGETS = {
    "job service on redis, compiled": (12, 500, None),
    "job service on redis, header-only": (25, 700, None),
    "job service on memory, compiled": (9, None, 600),
    "job service on memory, header-only": (14, None, 600),
    "limiter on redis, compiled": (6, None, None),
    "limiter on redis, header-only": (9, None, None),
}


def programs():
    """Name, source or text of it, flags."""
    modes = [("header-only", []), ("compiled", [APART])]
    out = [("Asio alone", "asio.cpp", [])]
    for mode, flags in modes:
        out.append((f"rate limiter in memory, {mode}", "rate_limiter.cpp", flags))
        out.append((f"limiter on redis, {mode}", "limiter.cpp", flags))
        out += [(f"job service on {s}, {mode}", "jobs.cpp",
                 [*flags, f"-DSTORE=weir::{s}_store", f'-DSTORE_HEADER="weir/store/{s}.hpp"']) for s in STORES]
    out.append(("weir, apart, once: the core", '#include "weir/src.hpp"\n', [APART]))
    out += [(f"weir, apart, once: {s}", f'#include "weir/store/{s}/src.hpp"\n', [APART]) for s in STORES[1:]]
    mysql, redis = ["-DBOOST_MYSQL_SEPARATE_COMPILATION"], []
    out.append(("Boost.MySQL, header-only", "mysql.cpp", []))
    out.append(("Boost.MySQL, compiled", "mysql.cpp", mysql))
    out.append(("Boost.MySQL, apart, once", "#include <boost/mysql/src.hpp>\n", mysql))
    out.append(("Boost.Redis", "redis.cpp", redis))
    out.append(("Boost.Redis, apart, once", "#include <boost/redis/src.hpp>\n", redis))
    return out


class Compiler:
    def __init__(self, cxx, boost, folder):
        self.folder = pathlib.Path(folder)
        self.command = [cxx, "-std=c++20", "-O1", "-pthread", f"-I{ROOT / 'include'}"]
        if boost:
            self.command += ["-isystem", f"{boost}/include"]
        self.command += ["-isystem", "/usr/include/postgresql", "-c", "-o", self.folder / "out.o"]

    def once(self, source, flags):
        """User time in seconds, and resident memory in MB."""
        if "\n" in source:
            file = self.folder / "apart.cpp"
            file.write_text(source, encoding="utf-8")
        else:
            file = HERE / "compile" / source
        process = subprocess.Popen([*self.command, *flags, file])
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"compile: {' '.join(map(str, [*self.command, *flags, file]))} has failed")
        return used.ru_utime, used.ru_maxrss / 1024

    def text(self):
        """Kilobytes of machine code and constants in what was compiled last."""
        said = subprocess.run(["size", self.folder / "out.o"], check=True, capture_output=True, text=True).stdout
        return int(said.splitlines()[1].split()[0]) / 1000


def measure(compiler, name, source, flags, rounds):
    runs = [compiler.once(source, flags) for _ in range(rounds)]
    seconds = min(r[0] for r in runs)
    return {"name": name, "unit": "s", "better": "less", "ours": seconds, "runs": rounds,
            "spread": (max(r[0] for r in runs) - min(r[0] for r in runs)) / seconds,
            "megabytes": max(r[1] for r in runs), "kilobytes": compiler.text()}


def judge(row, reference):
    if reference:
        row["reference"] = {"name": reference["name"], "figure": reference["ours"], "spread": reference["spread"]}
        row["ratio"] = row["ours"] / reference["ours"]
        row["ratio_spread"] = max(row["spread"], reference["spread"])
    most = TARGETS.get(row["name"])
    if most:
        units = zip((row["ours"], row["megabytes"], row["kilobytes"]), most, ("s", "MB", "kB"))
        row["target"] = ", ".join(f"<= {m} {u}" for _, m, u in units if m)
        row["met"] = all(m is None or figure <= m
                         for figure, m in zip((row["ours"], row["megabytes"], row["kilobytes"]), most))


def shown(row):
    met = {None: "", True: "met", False: "MISSED"}[row.get("met")]
    ratio = f"{row['ratio']:6.2f}" if "ratio" in row else f"{'1.00':>6}"
    return (f"{row['name']:38} {row['ours']:6.2f} {ratio} {row['megabytes']:6.0f} {row['kilobytes']:6.0f}  "
            f"{row.get('target', ''):24} {met}").rstrip()


def processor():
    names = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return names[1] if names else "processor unknown"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boost")
    arguments.add_argument("--cxx", default="clang++-19")
    arguments.add_argument("--rounds", type=int, default=2, help="of each; what is compiled apart, once")
    arguments.add_argument("programs", nargs="*", help="rows whose name contains one of these")
    given = arguments.parse_args()
    load_before = os.getloadavg()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(given.cxx, given.boost, folder)
        print(f"{'program':38} {'user s':>6} {'ratio':>6} {'MB':>6} {'kB':>6}  target")
        for name, source, flags in programs():
            if rows and given.programs and not any(word in name for word in given.programs):
                continue
            rows.append(measure(compiler, name, source, flags, 1 if "apart, once" in name else given.rounds))
            judge(rows[-1], rows[0] if len(rows) > 1 else None)
            print(shown(rows[-1]), flush=True)
    file = pathlib.Path(os.environ.get("WEIR_BENCH_OUTPUT", "build/bench")) / "compile.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": processor(), "cores": os.cpu_count(), "load_before": load_before,
               "load_after": os.getloadavg()[0]}
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    version = subprocess.run([given.cxx, "--version"], check=True, capture_output=True, text=True).stdout
    file.write_text(json.dumps({"schema": 1, "bench": "compile", "made": made, "machine": machine,
                                "compiler": version.splitlines()[0], "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {file}")


if __name__ == "__main__":
    sys.exit(main())
