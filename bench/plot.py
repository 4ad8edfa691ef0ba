#!/usr/bin/env python3
"""Draws the rows of benchmarks that stand in a picture: one SVG for each chart, figure over x, both on log scales.

usage: plot.py FOLDER JSON...   the JSON of benchmarks; writes FOLDER/<chart>.svg
       plot.py --self-test      check that this script draws what it should
"""

import json
import math
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree as xml
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 190, 48, 56
COLOURS = ["#2563a8", "#c2571a", "#2e7d4f", "#8a3f9e", "#8c6d1f", "#555555"]
PREFIXES = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")]


def charts_of(files: list[pathlib.Path]) -> dict[str, tuple[str, str, dict[str, list[tuple[float, float]]]]]:
    """The unit, what x is a number of, and the lines of each chart, in the order of their rows."""
    out = {}
    for file in files:
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            if "plot" in row and row["ours"] > 0:
                at = row["plot"]
                *_, lines = out.setdefault(at["chart"], (row["unit"], at.get("counts", ""), {}))
                lines.setdefault(at["line"], []).append((at["x"], row["ours"]))
    return out


def label(value: float) -> str:
    for size, prefix in PREFIXES:
        if value >= size:
            return f"{value / size:g}{prefix}"
    return f"{value:g}"


class Axis:
    """A log scale from the least to the most, rounded outwards to what has a label."""

    def __init__(self, values, start, end):
        low, high = min(values), max(values)
        steps = [m * 10.0**e for e in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2) for m in (1, 2, 5)]
        self.low = max(s for s in steps if s <= low * 1.0001)
        self.high = min(s for s in steps if s >= high * 0.9999)
        if self.low == self.high:
            self.high = min(s for s in steps if s > self.high)
        shown = [s for s in steps if self.low <= s <= self.high]
        if len(shown) > 7:  # the powers of ten are enough
            shown = [s for s in shown if math.isclose(math.log10(s), round(math.log10(s)))]
        self.ticks = shown
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)


def drawn(title: str, unit: str, counts: str, lines: dict[str, list[tuple[float, float]]]) -> str:
    points = [p for line in lines.values() for p in line]
    x = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT)
    # At least a decade: what is flat should look flat.
    figures = [p[1] for p in points]
    middle, width = math.sqrt(min(figures) * max(figures)), max(max(figures) / min(figures), 10.0)
    y = Axis([middle / math.sqrt(width), middle * math.sqrt(width)], HEIGHT - BOTTOM, TOP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12" fill="#333333">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="15" font-weight="bold">{escape(title)} <tspan font-weight="normal">({escape(unit)})</tspan></text>',
    ]
    for tick in y.ticks:
        out.append(f'<line x1="{LEFT}" y1="{y(tick):.1f}" x2="{WIDTH - RIGHT}" y2="{y(tick):.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{label(tick)}</text>')
    for tick in x.ticks:
        out.append(f'<line x1="{x(tick):.1f}" y1="{TOP}" x2="{x(tick):.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eeeeee"/>')
        out.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label(tick)}</text>')
    centre = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{centre:.1f}" y="{HEIGHT - 14}" text-anchor="middle">{escape(", ".join(filter(None, [counts, "log scales"])))}</text>')
    ends = []  # where a line is named: beside its end, apart from the others
    for (name, line), colour in zip(lines.items(), COLOURS * len(lines)):
        line = sorted(line)
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{colour}"/>' for a, b in line]
        ends.append([y(line[-1][1]), name, colour])
    ends.sort()
    for below, above in zip(ends[1:], ends):
        below[0] = max(below[0], above[0] + 16)
    for at, name, colour in ends:
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{at + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])


def plot(folder: pathlib.Path, files: list[pathlib.Path]) -> list[pathlib.Path]:
    written = []
    for title, (unit, counts, lines) in charts_of(files).items():
        written.append(folder / (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") + ".svg"))
        written[-1].write_text(drawn(title, unit, counts, lines), encoding="utf-8")
    return written


def self_test() -> int:
    rows = [{"name": str(n), "unit": "us", "ours": 5 + n / 1e6, "plot": {"chart": "A & b", "line": line, "x": n, "counts": "jobs"}}
            for line in ("one", "two <b>") for n in (1000, 10_000, 100_000, 1_000_000)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.json").write_text(json.dumps({"rows": [*rows, {"name": "none", "unit": "us", "ours": 1}]}), encoding="utf-8")
        written = plot(folder, [folder / "a.json"])
        if [f.name for f in written] != ["a-b.svg"]:
            print(f"written: {written}", file=sys.stderr)
            return 1
        picture = xml.parse(written[0]).getroot()
        namespace = {"s": "http://www.w3.org/2000/svg"}
        lines = picture.findall("s:polyline", namespace)
        circles = picture.findall("s:circle", namespace)
        outside = [c for c in circles if not (LEFT <= float(c.get("cx")) <= WIDTH - RIGHT and TOP <= float(c.get("cy")) <= HEIGHT - BOTTOM)]
        texts = [t.text for t in picture.findall("s:text", namespace)]
        if len(lines) != 2 or len(circles) != 8 or outside or not {"two <b>", "10k", "jobs, log scales"} <= set(texts):
            print(f"{len(lines)} lines, {len(circles)} points, {len(outside)} outside, {texts}", file=sys.stderr)
            return 1
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    for file in plot(pathlib.Path(sys.argv[1]), [pathlib.Path(f) for f in sys.argv[2:]]):
        print(f"drawn: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
