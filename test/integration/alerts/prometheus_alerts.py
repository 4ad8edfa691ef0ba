#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Has Prometheus evaluate docs/alerts.yml on what a program with each trouble says: each alert fires in its own and in no other.

usage: prometheus_alerts.py STATES_PROGRAM   as a test
       prometheus_alerts.py --fix            write the table of docs/operations.md anew
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
RULES = ROOT / "docs" / "alerts.yml"
GUIDE = ROOT / "docs" / "operations.md"
SCRAPE = 15  # seconds
ALERT = re.compile(
    r"- alert: (?P<name>\w+)\n +expr: (?P<expr>.+)\n(?: +for: (?P<for>\w+)\n)? +labels: {severity: (?P<severity>\w+)}\n"
    r" +annotations:\n +summary: (?P<summary>.+)\n +description: (?P<description>.+)\n +runbook: (?P<runbook>.+)\n"
)
SAMPLE = re.compile(r'(\w+)(?:{((?:\w+="[^"\\]*",?)*)})? (\S+)')

# The run of each alert: with which labels it fires, from which scrape to which. The trouble begins right after 10:00.
FIRES = {
    "healthy": None,
    # Due since 10:00; 300 s are over at 15:15, and 5 minutes more. The worker is back after 25:00.
    "WeirJobsWaitTooLong": ({"queue": "pictures"}, "20:15", "25:00"),
    # Grown by 100 and 60 s late at 17:00, and 10 minutes more. No more of them come after 30:00.
    "WeirBacklogGrows": ({"queue": "mail"}, "27:00", "33:30"),
    # Replayed after 15:00.
    "WeirDeadLetters": ({"queue": "pictures"}, "10:15", "15:00"),
    # The first ratio is of two scrapes, 10:15 and 10:30. It lasts 20 minutes, and the window 5 more.
    "WeirJobsFail": ({"queue": "pictures", "kind": "task"}, "20:30", "34:45"),
    # One is lost before 10:30, 12:30 and 14:30, and the window is of 15 minutes.
    "WeirLeasesLost": ({"queue": "mail", "kind": "task"}, "14:30", "25:15"),
    # Blocked from 10:15 to 10:42, and the window is of 5 minutes.
    "WeirLeasesStarved": ({"instance": "a", "job": "weir"}, "10:45", "15:15"),
    # Away from 10:00 to 13:00.
    "WeirWorkersWithoutStore": ({"instance": "a", "job": "weir"}, "11:15", "13:00"),
    # A seventh fails: more than a twentieth of the window of 5 minutes from 12:00 on, and 10 minutes more. It ends after 30:00.
    "WeirStoreCommandsFail": ({"command": "enqueue_jobs"}, "22:00", "33:30"),
    # From 10:00 to 25:00, when those who wait have a minute left.
    "WeirLimitWaitersPileUp": ({"limit": "model"}, "20:15", "25:45"),
    # From 10:00 to 12:00, and the window is of 5 minutes.
    "WeirRateLimitSheds": ({"instance": "b", "job": "weir", "result": "shed"}, "10:15", "16:45"),
}


def table(alerts):
    rows = ["| alert | fires while | what to do |", "|---|---|---|"]
    for a in alerts:
        held = f", for {a['for']}" if a["for"] else ""
        anchor = a["runbook"].partition("#")[2]
        link = f"[{anchor.replace('-', ' ').capitalize()}](#{anchor})"
        rows.append(f"| `{a['name']}`, {a['severity']} | `{a['expr']}`{held} | {a['description']} {link} |")
    return "\n".join(rows) + "\n"


def series_of(text, wanted):
    """The samples as promtool reads them, and the last scrape. A series that a scrape has no more is stale, as in Prometheus."""
    series, step, instance = {}, 0, ""
    for line in text.splitlines():
        if re.fullmatch(r"# \d+ \w+", line):
            _, step, instance = line.split()
            step = int(step)
        elif not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            if name in wanted:
                key = f'{name}{{instance="{instance}",job="weir"{"," + labels if labels else ""}}}'
                series.setdefault(key, {})[step] = value
    out = []
    for key, values in series.items():
        written = [values.get(at) or ("stale" if at - 1 in values else "_") for at in range(step + 1)]
        out.append({"series": key, "values": " ".join(written)})
    return out, step


def step_of(time):
    minutes, seconds = time.split(":")
    return (int(minutes) * 60 + int(seconds)) // SCRAPE


def expected(alert, labels):
    of = lambda text: re.sub(r"{{ \$labels\.(\w+) }}", lambda m: labels[m[1]], text)
    return {
        "exp_labels": {**labels, "severity": alert["severity"]},
        "exp_annotations": {key: of(alert[key]) for key in ("summary", "description", "runbook")},
    }


def run_of(program, state, alerts):
    text = subprocess.run([program, state], check=True, capture_output=True, text=True).stdout
    wanted = set(re.findall(r"weir_\w+", " ".join(a["expr"] for a in alerts)))
    series, last = series_of(text, wanted)
    missing = wanted - {s["series"].partition("{")[0] for s in series}
    if missing:
        sys.exit(f"{state}: nothing has the metrics {missing}, which docs/alerts.yml asks for")
    tests = []
    for alert in alerts:
        firing_steps = range(0)
        if alert["name"] == state:
            labels, first, final = FIRES[state]
            firing_steps = range(step_of(first), step_of(final) + 1)
        for step in range(last + 1):
            firing = [expected(alert, labels)] if step in firing_steps else []
            tests.append({"eval_time": f"{step * SCRAPE}s", "alertname": alert["name"], "exp_alerts": firing})
    return {"name": state, "interval": f"{SCRAPE}s", "input_series": series, "alert_rule_test": tests}


def main():
    alerts = [m.groupdict() for m in ALERT.finditer(RULES.read_text())]
    if len(alerts) != RULES.read_text().count("- alert:"):
        sys.exit("docs/alerts.yml has an alert that is not written as the others are: one line for each of its fields")
    guide = GUIDE.read_text()
    there = re.search(r"\| alert \|.*?\n(?=\n)", guide, re.DOTALL)
    if sys.argv[1:] == ["--fix"]:
        GUIDE.write_text(guide.replace(there[0], table(alerts)))
        return
    if not there or there[0] != table(alerts):
        sys.exit("docs/operations.md has another table of alerts than docs/alerts.yml: prometheus_alerts.py --fix writes it")
    program = sys.argv[1]
    promtool = shutil.which("promtool") or shutil.which("promtool", path=ROOT / ".deps/prometheus/usr/bin")
    if not promtool:
        sys.exit("this test needs promtool, of Debian's package prometheus: ./dev setup fetches it")
    if set(FIRES) != {"healthy"} | {a["name"] for a in alerts}:
        sys.exit("there is an alert without a run of its own, or a run without its alert")
    subprocess.run([promtool, "check", "rules", RULES], check=True)
    with tempfile.TemporaryDirectory() as folder:
        tests = pathlib.Path(folder) / "alerts_test.json"
        runs = [run_of(program, state, alerts) for state in FIRES]
        tests.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": f"{SCRAPE}s", "tests": runs}))
        answer = subprocess.run([promtool, "test", "rules", tests], capture_output=True, text=True)
    print((answer.stdout + answer.stderr)[:20000])
    if answer.returncode:
        sys.exit("an alert fires when it should not, or does not when it should: see above")
    print(f"{len(runs)} runs, in which {len(alerts)} alerts were looked at {sum(len(r['alert_rule_test']) for r in runs)} times")


main()
