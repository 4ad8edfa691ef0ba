#!/usr/bin/env python3
"""What the console costs beside many jobs: each page of `weirctl serve`, and each list of weirctl.

usage: console.py [--stores sqlite,redis,postgres,nats] [--jobs N] [--runs N] WEIRCTL FILL

FILL is test/integration/console/fill.cpp. Two stores of each kind are filled: one with N jobs in one queue, 10,000
queues of three jobs, 1,000 workers and 200 schedules; and one with 20,000 jobs, and else the same but for 1,000 queues,
so that its pages are as full. All is asked of both in turns. A row is the time of the whole answer, from the request to
its last byte; of weirctl that of the process, less what `weirctl --help` takes. The bound is that of the median. Steps
on many jobs have none. Servers are the script's own, and what they wrote goes with them.

On NATS the process that filled a store owns its jobs until the end. What is asked without one stands below the table.
"""

import argparse
import contextlib
import html
import http.client
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "test/integration"))

import weirctl  # noqa: E402
from compile import processor  # noqa: E402
from servers import NatsServer, PostgresServer, RedisServer  # noqa: E402

SERVERS = {"sqlite": contextlib.nullcontext, "redis": RedisServer, "postgres": PostgresServer, "nats": NatsServer}
SMALL = 20_000
BOUND = 50  # milliseconds
STATES = ["pending", "leased", "dead", "completed", "cancelled"]
NEXT = re.compile(r'<a href="([^"]*)">Next page</a>')
DONE = re.compile(r"<b id=done>([0-9,]+)</b>")
GO_ON = re.compile(r'<form method=post data-auto action="([^"]*)"')


class Store:
    """A filled store, and a console that serves it."""

    def __init__(self, kind, server, home, jobs):
        self.place = weirctl.Place(kind, server, home, jobs)
        self.jobs = jobs
        counts = (jobs, 10_000, 1000, 200) if jobs > SMALL else (jobs, 1000, 1000, 200)
        began = time.monotonic()
        self.filler = subprocess.Popen([weirctl.FILL, self.place.environment["WEIR_STORE"], "many", *map(str, counts),
                                        *(["stay"] if kind == "nats" else [])],
                                       env=self.place.environment, stdout=subprocess.PIPE)
        self.ids = json.loads(self.filler.stdout.readline() or "null")
        if self.ids is None or (kind != "nats" and self.filler.wait() != 0):
            raise SystemExit(f"console: {kind} was not filled")
        took = time.monotonic() - began
        print(f"{kind}: {jobs:,} jobs and {counts[1]:,} queues in {took:.0f} s, {jobs / took:,.0f} jobs/s", flush=True)
        self.serve()

    def serve(self, *options):
        self.serving = self.place.start("--json", *options, "serve", "--listen", "127.0.0.1:0", "--allow", "all",
                                        stderr=subprocess.DEVNULL)
        self.url = urllib.parse.urlsplit(json.loads(self.serving.stdout.readline())["url"])

    def end_serving(self):
        self.serving.send_signal(signal.SIGTERM)
        self.serving.wait()

    def end_filler(self):
        if self.filler.poll() is None:
            self.filler.send_signal(signal.SIGTERM)
            self.filler.wait()

    def request(self, method, target):
        """Milliseconds, and the text."""
        began = time.perf_counter()
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=600)
        connection.request(method, target, headers={"Sec-Fetch-Site": "same-origin"})
        reply = connection.getresponse()
        if target.startswith("/events"):  # one, of a stream without an end
            text = b""
            while not text.endswith(b"\n\n") and (line := reply.readline()):
                text += line
        else:
            text = reply.read()
        took = 1000 * (time.perf_counter() - began)
        connection.close()
        if reply.status != 200:
            raise SystemExit(f"console: {target}: {reply.status}: {text.decode()[-500:]}")
        return took, text.decode()

    def behind(self, target, pages=19):
        """The page so many pages after one, or the last."""
        for _ in range(pages):
            found = NEXT.search(self.request("GET", target)[1])
            if not found:
                break
            target = html.unescape(found[1])
        return target

    def run(self, *arguments):
        began = time.perf_counter()
        process = self.place.start("--json", *arguments)
        out, err = process.communicate()  # with a patience it would look for the end every 50 ms
        took = 1000 * (time.perf_counter() - began)
        if process.returncode not in (0, 1):
            raise SystemExit(f"console: weirctl {arguments}: {process.returncode}: {err.decode()}")
        return took, out.decode()


def at(path, **parameters):
    return path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")


def pages(store):
    """Name and target of each page of a store."""
    out = {"/": "/", "/queues": "/queues", "/queues, 20th page": store.behind("/queues"),
           "/queues?under=tenant/005": at("/queues", under="tenant/005"), "/dead": "/dead",
           "/dead, 10th page": store.behind("/dead", 9)}
    for state in STATES:
        first = at("/queue", queue="work", state=state)
        out |= {f"/queue {state}": first, f"/queue {state}, 20th page": store.behind(first)}
    out["/queue, of a kind that none has"] = at("/queue", queue="work", filter="absent")
    for name in ("due", "delayed", "leased", "dead"):
        out[f"/job {name}"] = at("/job", queue="work", id=store.ids[name])
    out |= {"/workers": "/workers", "/workers, 20th page": store.behind("/workers"),
            "/limits limiter": at("/limits", noun="limiter", key="gpt"),
            "/limits lock": at("/limits", noun="lock", key="leader"),
            "/limits bucket": at("/limits", noun="bucket", key="gpt", tokens=10, seconds=1),
            "/schedules": "/schedules", "/schedules, last page": store.behind("/schedules"),
            "/confirm": at("/confirm", action="replay", queue="work", state="dead"),
            "/events": at("/events", view=at("/queue", queue="work"))}
    return out


def lists(store):
    """The weirctl commands about a store."""
    ids = store.ids
    out = [["queues"], ["queues", "--under", "tenant/005"], ["jobs", "work"]]
    out += [["jobs", "work", "--state", state] for state in STATES]
    out += [["dead", "work"], ["job", "work", ids["due"]], ["explain", "work", ids["due"]],
            ["explain", "work", ids["delayed"]], ["explain", "work", ids["leased"]], ["workers"], ["limits", "gpt"],
            ["locks", "leader"], ["schedules"], ["pause", "work"], ["resume", "work"]]
    return {"weirctl " + " ".join(a for a in arguments if len(a) < 36): arguments for arguments in out}


def rows_of(text):
    return text.count("<tr>") - text.count("<thead><tr>") if "<" in text else \
        sum('"cursor"' not in line for line in text.splitlines())


class Report:
    def __init__(self, kind, jobs, rows):
        self.kind, self.jobs, self.rows = kind, jobs, rows
        print(f"\n{kind + f', {jobs:,} jobs':36} {'rows':>6} {'bytes':>8} {'small ms':>9} {'ms':>8} "
              f"{'least':>8} {'worst':>8} {'ratio':>6}  bound")

    def add(self, name, small, large, text, bound=BOUND):
        of, ours = statistics.median(small), statistics.median(large)
        row = {"name": f"{self.kind}, {self.jobs:,} jobs: {name}", "unit": "ms", "better": "less", "ours": ours,
               "spread": spread(large), "least": min(large), "worst": max(large), "runs": len(large),
               "bytes": len(text.encode()), "records": rows_of(text), "ratio": ours / of,
               "ratio_spread": max(spread(small), spread(large)),
               "reference": {"name": f"{SMALL:,} jobs", "figure": of, "spread": spread(small)}}
        verdict = ""
        if bound:
            row |= {"target": f"<= {bound} ms", "met": ours <= bound}
            verdict = f"{bound} ms" + ("" if row["met"] else "  MISSED")
        self.rows.append(row)
        print(f"{name:36} {row['records']:6} {row['bytes']:8} {of:9.1f} {ours:8.1f} "
              f"{min(large):8.1f} {max(large):8.1f} {ours / of:6.2f}  {verdict}".rstrip(), flush=True)


def spread(runs):
    if len(runs) < 4:
        return (max(runs) - min(runs)) / statistics.median(runs)
    low, _, high = statistics.quantiles(runs)
    return (high - low) / statistics.median(runs)


def measure(small, large, runs, report):
    of_small, of_large = pages(small), pages(large)
    for name, target in of_large.items():
        times, text = ([], []), ""
        for _ in range(runs):
            times[0].append(small.request("GET", of_small[name])[0])
            took, text = large.request("GET", target)
            times[1].append(took)
        report.add(name, *times, text)
    start = [small.run("--help")[0] for _ in range(runs)]
    report.add("weirctl --help", start, start, "", None)
    own = statistics.median(start)
    of_small, of_large = lists(small), lists(large)
    for name, arguments in of_large.items():
        times, text = ([], []), ""
        for _ in range(runs):
            times[0].append(max(small.run(*of_small[name])[0] - own, 0.1))
            took, text = large.run(*arguments)
            times[1].append(max(took - own, 0.1))
        report.add(name, *times, text)


def act(small, large, report):
    """Steps on many jobs, and commands; both stores have that many."""
    for action, state, steps in (("cancel", "pending", 10), ("replay", "dead", 2), ("purge", "completed", 2)):
        times, text = ([], []), ""
        for store, took in zip((small, large), times):
            target = at("/act", action=action, queue="work", state=state)
            before = 0
            while len(took) < steps:
                one, text = store.request("POST", target)
                done = int(DONE.search(text)[1].replace(",", ""))
                if done != before:  # another one has looked at records in other states only
                    took.append(one)
                before = done
                found = GO_ON.search(text)
                if not found:
                    break
                target = html.unescape(found[1])
        report.add(f"/act {action}, a step of 500", *times, text, None)
    for command in (["cancel"], ["purge", "--state", "cancelled"]):
        arguments = [command[0], "work", "--all", *command[1:], "--max", "1000", "--yes"]
        times = [[store.run(*arguments)[0] for _ in range(3)] for store in (small, large)]
        report.add(f"weirctl {command[0]} --max 1000", *times, "", None)


def without_owner(store):
    store.end_serving()
    store.end_filler()
    for arguments in (["queues"], ["jobs", "work"]):
        took, _ = store.run("--patience", "600", *arguments)
        print(f"without an owner: weirctl {' '.join(arguments)}: {took / 1000:.1f} s", flush=True)
    store.serve("--patience", "600")
    for target in ("/queues", "/queues", "/queue?queue=work"):
        print(f"without an owner: {target}: {store.request('GET', target)[0]:.0f} ms", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--stores", default=",".join(SERVERS))
    arguments.add_argument("--jobs", type=int, default=1_000_000)
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("weirctl")
    arguments.add_argument("fill")
    given = arguments.parse_args()
    if given.jobs <= SMALL:
        arguments.error(f"--jobs is more than {SMALL}")
    weirctl.PROGRAM, weirctl.FILL = map(os.path.abspath, (given.weirctl, given.fill))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what it started
    load_before = os.getloadavg()[0]
    rows = []
    for kind in given.stores.split(","):
        with contextlib.ExitStack() as ending, tempfile.TemporaryDirectory(prefix="weir-bench-") as home:
            server = None if kind == "sqlite" else ending.enter_context(contextlib.closing(SERVERS[kind]()))
            stores = []
            for jobs in (SMALL, given.jobs):
                stores.append(Store(kind, server, home, jobs))
                ending.callback(stores[-1].end_filler)
                ending.callback(stores[-1].end_serving)
            if kind == "postgres":  # as it does by itself, a minute later
                subprocess.run([server.binary("psql"), "-q", server.url(), "-c", "VACUUM ANALYZE"], check=True)
            report = Report(kind, given.jobs, rows)
            measure(*stores, given.runs, report)
            act(*stores, report)
            if kind == "nats":
                without_owner(stores[1])
    file = pathlib.Path(os.environ.get("WEIR_BENCH_OUTPUT", "build/bench")) / "console.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": processor(), "cores": os.cpu_count(), "load_before": load_before,
               "load_after": os.getloadavg()[0]}
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    file.write_text(json.dumps({"schema": 1, "bench": "console", "made": made, "machine": machine, "rows": rows},
                               indent=1) + "\n", encoding="utf-8")
    missed = [row["name"] for row in rows if row.get("met") is False]
    print(f"\nwritten: {file}", *(f"missed: {name}" for name in missed), sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
