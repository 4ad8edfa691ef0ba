#!/usr/bin/env python3
"""Flags what became worse between two runs of a benchmark.

usage: compare.py [--least SHARE] OLD NEW...   each the JSON of a benchmark, or a folder of them
       compare.py --self-test                  check that this script notices what it should

What is compared is the ratio to the reference that was measured in the same run, which what else the machine does moves
little; a row without a reference is compared by its figure. A row is worse, or better, by more than the tolerance: the
spreads of both runs together, and at least SHARE (0.1). Exits with 1 if a row became worse, and with 2 if there was nothing
to compare.
"""

import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile

SCHEMA = 1


def rows_of(paths: list[pathlib.Path]) -> dict[str, dict[str, dict]]:
    """The rows by their names, of each benchmark."""
    out = {}
    for file in [f for p in paths for f in (sorted(p.glob("*.json")) if p.is_dir() else [p])]:
        report = json.loads(file.read_text(encoding="utf-8"))
        if report.get("schema") != SCHEMA:
            raise SystemExit(f"compare: {file} is no report of schema {SCHEMA}")
        out[report["bench"]] = {row["name"]: row for row in report["rows"]}
    return out


def compared(old: dict, new: dict, least: float) -> tuple[float, float, bool]:
    """How many times as bad the new row is, how much of that is tolerated, and whether by the ratio."""
    by_ratio = "ratio" in old and "ratio" in new
    figure, spread = ("ratio", "ratio_spread") if by_ratio else ("ours", "spread")
    tolerance = max(least, old[spread] + new[spread])
    good, bad = (old, new) if new["better"] == "less" else (new, old)
    if good[figure] == bad[figure]:
        return 1.0, tolerance, by_ratio
    return (bad[figure] / good[figure] if good[figure] else float("inf")), tolerance, by_ratio


def compare(old: pathlib.Path, new: list[pathlib.Path], least: float) -> int:
    before, after = rows_of([old]), rows_of(new)
    worse = 0
    common = 0
    for bench in sorted(before.keys() & after.keys()):
        for name, row in after[bench].items():
            if name not in before[bench]:
                print(f"  new     {bench}: {name}")
                continue
            common += 1
            past = before[bench][name]
            factor, tolerance, by_ratio = compared(past, row, least)
            if 1 / (1 + tolerance) <= factor <= 1 + tolerance:
                continue
            what = "ratio" if by_ratio else row["unit"]
            figure = "ratio" if by_ratio else "ours"
            worse += factor > 1
            print(f"  {'WORSE ' if factor > 1 else 'better'}  {bench}: {name}: {past[figure]:.4g} -> {row[figure]:.4g} {what}"
                  f" ({factor if factor > 1 else 1 / factor:.2f} x; tolerated {1 + tolerance:.2f} x)")
        for name in before[bench].keys() - after[bench].keys():
            print(f"  gone    {bench}: {name}")
    print(f"compared {common} rows: {worse} worse")
    if common == 0:
        return 2
    return 1 if worse else 0


# ------------------------------------------------------------------------------------------ itself


def report(rows: list[dict], bench: str = "try") -> dict:
    return {"schema": SCHEMA, "bench": bench, "rows": rows}


def row(ours: float, reference: float | None = None, spread: float = 0.0, unit: str = "ns", name: str = "one") -> dict:
    out = {"name": name, "unit": unit, "better": "more" if unit.endswith("/s") else "less", "ours": ours, "spread": spread}
    if reference:
        out |= {"ratio": ours / reference, "ratio_spread": spread}
    return out


def self_test() -> int:
    cases = [
        ("the same", row(100), row(100), 0, "0 worse"),
        ("a little slower", row(100), row(109), 0, "0 worse"),
        ("slower", row(100), row(112), 1, "WORSE"),
        ("slower within the spread", row(100, spread=0.1), row(119, spread=0.1), 0, "0 worse"),
        ("slower than the spread", row(100, spread=0.1), row(125, spread=0.1), 1, "tolerated 1.20 x"),
        ("fewer in a second", row(100, unit="jobs/s"), row(80, unit="jobs/s"), 1, "WORSE"),
        ("more in a second", row(100, unit="jobs/s"), row(130, unit="jobs/s"), 0, "better"),
        ("a slower machine", row(100, 50), row(200, 100), 0, "0 worse"),
        ("a worse ratio on a faster machine", row(100, 50), row(90, 30), 1, "2 -> 3 ratio"),
        ("its reference is gone", row(100, 50), row(200), 1, "WORSE"),
        ("another row", row(100), row(100, name="two"), 2, "gone"),
        ("it was for nothing", row(0), row(1), 1, "WORSE"),
    ]
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        old, new = pathlib.Path(folder) / "old", pathlib.Path(folder) / "new"

        def told(before, after):
            for where, content in ((old, before), (new, after)):
                where.mkdir(exist_ok=True)
                (where / "try.json").write_text(json.dumps(content), encoding="utf-8")
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = compare(old / "try.json", [new], 0.1)
            return status, said.getvalue()

        for what, before, after, status, text in cases:
            got, said = told(report([before]), report([after]))
            if got != status or text not in said:
                failed.append(f"{what}: {got} instead of {status}, {said!r} without {text!r}")
        got, said = told(report([row(1)], "other"), report([row(1)]))
        if got != 2:
            failed.append("reports of two benchmarks were compared")
        try:
            told({"rows": []}, report([row(1)]))
            failed.append("a report of no schema was read")
        except SystemExit:
            pass
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--least", type=float, default=0.1)
    arguments.add_argument("--self-test", action="store_true")
    arguments.add_argument("reports", nargs="*", type=pathlib.Path)
    given = arguments.parse_args()
    if given.self_test:
        return self_test()
    if len(given.reports) < 2:
        arguments.error("OLD and NEW are needed")
    return compare(given.reports[0], given.reports[1:], given.least)


if __name__ == "__main__":
    sys.exit(main())
