#!/usr/bin/env python3
"""Holds the hot paths to a budget of instructions, which depends on the code and the compiler, and on nothing else.

usage: budget.py [--update] PROGRAM   count, and fail if a path takes more than bench/budgets.json allows this compiler;
                                      --update: allow what it takes now
       budget.py --self-test          check that this script notices what it should

Counted is bench_budget under valgrind's callgrind. A path may take TOLERANCE more or less: less is said, so that the budget
can follow. Writes build/bench/budget.json as the other benchmarks do.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

BUDGETS = pathlib.Path(__file__).resolve().parent / "budgets.json"
TOLERANCE = 0.03
DUMP = re.compile(r"^desc: Trigger: Client Request: (.*)$", re.MULTILINE)
TOTAL = re.compile(r"^(?:summary|totals): (\d+)$", re.MULTILINE)


def count(program: str) -> tuple[str, dict[str, float]]:
    """The compiler, and the instructions of each path."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out", program]
        # The same addresses, and the same memcpy, on every machine.
        fixed = ["setarch", "-R"] if subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
        plain = os.environ | {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-ERMS,-FSRM"}
        ran = subprocess.run([*fixed, *command], env=plain, capture_output=True, text=True)
        if ran.returncode != 0:
            raise SystemExit(f"budget: {' '.join(command)} failed:\n{ran.stdout}{ran.stderr}")
        said = [line.split("\t") for line in ran.stdout.splitlines()]
        times = {name: int(n) for name, n in said[1:]}
        counts = {}
        for file in pathlib.Path(folder).glob("out.*"):
            text = file.read_text(encoding="utf-8")
            name = DUMP.search(text)
            if name and name[1] in times:
                counts[name[1]] = int(TOTAL.search(text)[1]) / times[name[1]]
    if counts.keys() != times.keys():
        raise SystemExit(f"budget: not counted: {', '.join(times.keys() - counts.keys())}")
    return said[0][1], {name: counts[name] for name in times}


def check(counts: dict[str, float], budget: dict[str, float]) -> int:
    worse = 0
    print(f"{'instructions of one':52} {'now':>9} {'budget':>9}")
    for name in [*counts, *(n for n in budget if n not in counts)]:
        if name not in counts:
            print(f"{name:52} {'-':>9} {budget[name]:9.0f}  GONE")
            worse += 1
        elif name not in budget:
            print(f"{name:52} {counts[name]:9.0f} {'-':>9}  NOT BUDGETED")
            worse += 1
        else:
            factor = counts[name] / budget[name]
            verdict = "" if abs(factor - 1) <= TOLERANCE else "  WORSE" if factor > 1 else "  better: lower the budget"
            worse += factor > 1 + TOLERANCE
            print(f"{name:52} {counts[name]:9.0f} {budget[name]:9.0f} {100 * (factor - 1):+6.1f}%{verdict}")
    return 1 if worse else 0


def write(compiler: str, counts: dict[str, float], budget: dict[str, float]) -> None:
    """As bench/report.hpp writes it."""
    rows = []
    for name, n in counts.items():
        row = {"name": name, "unit": "instructions", "better": "less", "ours": n, "spread": 0, "runs": 1}
        if name in budget:
            row |= {"reference": {"name": "budget", "figure": budget[name], "spread": 0}, "ratio": n / budget[name],
                    "ratio_spread": 0, "target": f"<= {1 + TOLERANCE} x", "met": n / budget[name] <= 1 + TOLERANCE}
        rows.append(row)
    file = pathlib.Path(os.environ.get("WEIR_BENCH_OUTPUT", "build/bench")) / "budget.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    machine = {"cores": os.cpu_count()}
    file.write_text(json.dumps({"schema": 1, "bench": "budget", "made": made, "machine": machine, "compiler": compiler,
                                "rows": rows}, indent=1) + "\n", encoding="utf-8")


def self_test() -> int:
    cases = [
        ("as before", {"a": 100}, {"a": 100}, 0, "+0.0%"),
        ("within the tolerance", {"a": 102}, {"a": 100}, 0, "+2.0%\n"),
        ("more", {"a": 104}, {"a": 100}, 1, "WORSE"),
        ("less", {"a": 90}, {"a": 100}, 0, "lower the budget"),
        ("one of two", {"a": 90, "b": 104}, {"a": 100, "b": 100}, 1, "WORSE"),
        ("a path without a budget", {"a": 100}, {}, 1, "NOT BUDGETED"),
        ("a budget without its path", {}, {"a": 100}, 1, "GONE"),
    ]
    failed = 0
    for what, counts, budget, status, text in cases:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            got = check(counts, budget)
        if got != status or text not in said.getvalue():
            print(f"{what}: {got} instead of {status}, {said.getvalue()!r}", file=sys.stderr)
            failed = 1
    return failed


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--update", action="store_true")
    arguments.add_argument("--self-test", action="store_true")
    arguments.add_argument("program", nargs="?")
    given = arguments.parse_args()
    if given.self_test:
        return self_test()
    if not given.program:
        arguments.error("PROGRAM is needed")
    budgets = json.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.exists() else {}
    compiler, counts = count(given.program)
    if given.update:
        budgets[compiler] = {name: round(n, 1) for name, n in counts.items()}
        BUDGETS.write_text(json.dumps(budgets, indent=1, sort_keys=False) + "\n", encoding="utf-8")
    budget = budgets.get(compiler, {})
    write(compiler, counts, budget)
    status = check(counts, budget)
    if not budget:
        print(f"There is no budget for {compiler} yet: --update makes it what is taken now.")
    elif status:
        print(f"{compiler}: over the budget of bench/budgets.json; if that must be so, ./dev bench budget --update allows it.")
    return status


if __name__ == "__main__":
    sys.exit(main())
