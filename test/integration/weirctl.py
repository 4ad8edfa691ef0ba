#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Holds weirctl to what docs/console.md says, on each store that it was built for.

usage: weirctl.py WEIRCTL FILL [--stores sqlite,redis,postgres,nats] [unittest arguments]

FILL is test/integration/console/fill.cpp. Servers are the test's own.
"""

import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import urllib.parse

from servers import LIMIT, NatsServer, PostgresServer, RedisServer
from terminal import read_terminal

PROGRAM = FILL = ""

EVIL = b"\x1b]0;owned\x07\x1b[31m\xff\xfe\xc3(\r\n\x9b2J\t\"\\ \xe2\x80\xae gr\xc3\xbc\xc3\x9f"
EVIL_QUEUE = EVIL + b"q" * 900
STATES = {"due": "pending", "later": "pending", "urgent": "pending", "failed": "pending", "snoozed": "pending",
          "spent": "pending", "missed": "pending", "unique": "pending", "twin": "pending", "leased": "leased",
          "runs": "leased", "dead": "dead", "completed": "completed", "cancelled": "cancelled"}
MANY = 10_000
CONFLICTS = 3


class Result:
    def __init__(self, status, out, err):
        self.status = status
        self.raw = out
        self.out = out.decode(errors="backslashreplace")
        self.err = (err or b"").decode(errors="backslashreplace")


def finish(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Result(process.returncode, out, err)


class Place:
    """A store of its own for a test, on a server that many tests share."""

    def __init__(self, kind, server, home, number):
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        if kind == "sqlite":
            self.path = os.path.join(home, f"{number}.db")
            self.environment["WEIR_STORE"] = f"sqlite:{self.path}"
        else:
            self.environment["WEIR_STORE"] = server.url()
            self.environment["WEIR_SCHEMA" if kind == "postgres" else "WEIR_PREFIX"] = f"t{number}"

    def fill(self, *arguments, **more):
        done = subprocess.run([FILL, self.environment["WEIR_STORE"], *map(str, arguments)],
                              env={**self.environment, **more}, stdout=subprocess.PIPE, timeout=LIMIT, check=True)
        return json.loads(done.stdout)

    def start(self, *arguments, **keywords):
        return subprocess.Popen([PROGRAM, *arguments], **{"env": self.environment, "stdin": subprocess.DEVNULL,
                                                          "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                                          **keywords})

    def run(self, *arguments, **keywords):
        return finish(self.start(*arguments, **keywords))

    def json(self, *arguments):
        return [json.loads(line) for line in self.run("--json", *arguments).raw.splitlines()]

    def on_terminal(self, columns, *arguments, say=None, until=None):
        """Its status, and what it showed. With `say`, that is typed once `until` is seen."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.start(*arguments, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        shown = b""
        try:
            if say is not None:
                shown = read_terminal(master, until)
                os.write(master, say)
            shown += read_terminal(master)
            return process.wait(timeout=LIMIT), shown
        finally:
            os.close(master)
            process.kill()


class ConsoleTest(unittest.TestCase):
    KIND = "sqlite"
    SERVER = None

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="weir-console-")
        cls.server = cls.SERVER() if cls.SERVER else None
        cls.places = 0
        cls.states = cls.place()
        cls.ids = cls.states.fill("states")

    @classmethod
    def tearDownClass(cls):
        if cls.server:
            cls.server.close()
        shutil.rmtree(cls.home)

    @classmethod
    def place(cls):
        cls.places += 1
        return Place(cls.KIND, cls.server, cls.home, cls.places)

    def table(self, result):
        self.assertEqual(result.status, 0, result.err)
        return [line.split() for line in result.out.splitlines()]

    def check_fails(self, result, status, *texts):
        self.assertEqual(result.status, status, result.out + result.err)
        for text in texts:
            self.assertIn(text, result.err)
        self.assertTrue(result.err.startswith("weirctl: "), result.err)
        self.assertEqual(result.err.count("\n"), 1, result.err)

    def paged(self, *arguments):
        """All rows, and how many pages."""
        rows, pages, cursor = [], 0, []
        while True:
            page = self.states.json(*arguments, *cursor)
            pages += 1
            self.assertLess(pages, 100)
            if not page or "cursor" not in page[-1]:
                return rows + page, pages
            rows += page[:-1]
            cursor = ["--cursor", page[-1]["cursor"]]


class Reading(ConsoleTest):
    def test_queues(self):
        rows = {row["queue"]: row for row in self.states.json("queues")}
        self.assertEqual(len(rows), 5)  # those of schedules are not among them
        mail = rows["mail"]
        self.assertEqual([mail[k] for k in ("pending", "leased", "dead", "completed", "cancelled", "paused")],
                         [9, 2, 1, 1, 1, False])
        self.assertLess(mail["due"], 0)
        self.assertTrue(rows["paused"]["paused"])
        self.assertIn(EVIL_QUEUE.hex(), [row.get("queue_hex") for row in rows.values()])
        lines = self.table(self.states.run("queues"))
        self.assertEqual(lines[0], ["QUEUE", "PENDING", "LEASED", "DEAD", "COMPLETED", "CANCELLED", "PAUSED", "DUE"])
        self.assertEqual([line[1:6] for line in lines if line[0] == "mail"], [["9", "2", "1", "1", "1"]])
        self.assertEqual([line[6] for line in lines if line[0] == "paused"], ["yes"])

    def test_queues_under_a_prefix_and_by_pages(self):
        self.assertEqual([row["queue"] for row in self.states.json("queues", "--under", "ma")], ["mail"])
        self.assertEqual([row["queue"] for row in self.states.json("queues", "--under", "mail")], ["mail"])
        self.assertEqual([row["queue"] for row in self.states.json("queues", "--under", "h")], ["held"])
        self.check_fails(self.states.run("queues", "--under", "mailx"), 1, "no queue under 'mailx'")
        rows, pages = self.paged("queues", "--limit", "2")
        self.assertEqual(len({row["queue"] for row in rows}), 5)
        self.assertEqual(len(rows), 5)
        self.assertGreaterEqual(pages, 3)
        self.assertTrue(self.states.json("queues", "--under", "weir.schedules/"))

    def test_jobs(self):
        wanted = {self.ids[name]: state for name, state in STATES.items()}
        rows = self.states.json("jobs", "mail")
        self.assertEqual({row["id"]: row["state"] for row in rows}, wanted)
        self.assertEqual(len(rows), len(wanted))
        paged, pages = self.paged("jobs", "mail", "--limit", "3")
        self.assertEqual(sorted(row["id"] for row in paged), sorted(wanted))
        self.assertGreaterEqual(pages, 5)
        for state in set(STATES.values()):
            here = [row["id"] for row in self.states.json("jobs", "mail", "--state", state)]
            self.assertEqual(sorted(here), sorted(i for i, s in wanted.items() if s == state))
        lines = self.table(self.states.run("jobs", "mail", "--limit", "2"))
        self.assertEqual(lines[0], ["ID", "KIND", "STATE", "TRIES", "DUE", "NOTE"])
        self.assertEqual([len(lines), lines[-1][:2]], [4, ["more:", "--cursor"]])
        self.check_fails(self.states.run("jobs", "nosuch"), 1, "no queue 'nosuch'")
        self.check_fails(self.states.run("jobs", "mail", "--state", "done"), 2, "--state")
        for cursor in ("junk", "pending.junk!", "dead"[:-1] + "."):
            self.check_fails(self.states.run("jobs", "mail", "--cursor", cursor), 2, "--cursor")
        for command in (["queues"], ["dead", "mail"], ["schedules"], ["workers"]):
            self.check_fails(self.states.run(*command, "--cursor", "0.junk"), 2, "--cursor")

    def test_a_job(self):
        job, = self.states.json("job", "mail", self.ids["leased"])
        self.assertEqual({k: job[k] for k in ("kind", "state", "attempts", "max_attempts", "holder", "checkpoint_bytes",
                                              "headers", "progress", "payload", "payload_bytes", "unique")},
                         {"kind": "send", "state": "leased", "attempts": 1, "max_attempts": 25, "holder": "worker-7",
                          "checkpoint_bytes": 5, "headers": {"tenant": "acme", "traceparent": "00-4bf92f35-01"},
                          "progress": "3/10 the third page", "payload": '{"to":"ann@example.com"}',
                          "payload_bytes": 24, "unique": "none"})
        self.assertTrue(0 < job["lease_ends"] <= 3600, job)
        self.assertGreater(job["fence"], 0)
        self.assertIsNone(job["due"])
        text = self.states.run("job", "mail", self.ids["leased"]).out
        for line in (r"holder +worker-7", r"progress +3 of 10: the third page", r"headers +tenant: acme, traceparent: .*",
                     r"checkpoint bytes +5", r"lease ends +in \d+m\d+s", r'payload +{"to":"ann@example.com"}'):
            self.assertRegex(text, f"(?m)^{line}$")
        self.assertEqual(self.states.json("job", "mail", self.ids["completed"])[0]["result"], '{"sent":1}')
        self.assertEqual(self.states.json("job", "mail", self.ids["dead"])[0]["reason"], "no such address")
        unique = self.states.json("job", "mail", self.ids["unique"])[0]
        self.assertEqual([unique["unique"], unique["unique_key"]], ["until_executed", "ann"])
        self.assertLess(self.states.json("job", "mail", self.ids["missed"])[0]["deadline"], 0)

    def test_a_payload_is_cut_unless_it_is_wanted(self):
        cut, = self.states.json("job", "long", self.ids["long"])
        self.assertEqual([cut["payload"], cut["payload_bytes"]], ["p" * 200, 100_000])
        whole, = self.states.json("job", "long", self.ids["long"], "--payload")
        self.assertEqual(whole["payload"], "p" * 100_000)
        self.assertIn("p (of 100,000 bytes)\n", self.states.run("job", "long", self.ids["long"]).out)
        self.assertIn("p" * 100_000, self.states.run("job", "long", self.ids["long"], "--payload").out)

    def codes(self, queue, name):
        job, = self.states.json("explain", queue, self.ids[name])
        return {reason["code"] for reason in job["because"]}

    def test_explanations(self):
        for name, codes in (("due", {"not_first"}), ("urgent", {"first"}), ("later", {"not_due"}),
                            ("leased", {"leased", "progress"}), ("dead", {"ended"}), ("completed", {"ended"}),
                            ("cancelled", {"ended"}), ("failed", {"not_due", "failed"}),
                            ("snoozed", {"not_due", "put_off"}), ("spent", {"attempts_spent", "not_first"}),
                            ("missed", {"deadline_missed", "not_first"}), ("unique", {"unique", "not_first"}),
                            ("runs", {"leased", "leased_unique"}), ("twin", {"key_taken", "not_first"})):
            with self.subTest(name):
                self.assertEqual(self.codes("mail", name), codes)
        self.assertEqual(self.codes("paused", "in paused"), {"queue_paused", "first"})
        self.assertEqual(self.codes("held", "in held"), {"queue_held", "first"})
        text = self.states.run("explain", "mail", self.ids["twin"]).out
        self.assertIn(f"- Job {self.ids['runs']} has the same unique key", text)
        self.assertIn("? Not known here: whether a worker serves this queue, with a handler for send", text)
        snoozed = self.states.run("explain", "mail", self.ids["snoozed"]).out
        self.assertIn("noted: rate paid for attempt 1", snoozed)
        self.check_fails(self.states.run("explain", "mail", "0" * 31 + "1"), 1, "never there")
        self.check_fails(self.states.run("explain", "nosuch", self.ids["due"]), 1, "is its name right?")

    def test_dead_letters(self):
        row, = self.states.json("dead", "mail")
        self.assertEqual([row["id"], row["reason"], row["attempts"]], [self.ids["dead"], "no such address", 1])
        self.assertIn("no such address\n", self.states.run("dead", "mail").out)
        self.assertEqual(self.states.run("dead", "held").status, 0)
        self.check_fails(self.states.run("dead", "nosuch"), 1, "no queue 'nosuch'")

    def test_limits_and_locks(self):
        rows = self.states.json("limits", "gpt", "none")
        self.assertEqual([(r["key"], r["in_use"], r["waiting"], r["holder"]) for r in rows],
                         [("gpt", 2, 1, "one"), ("gpt", 2, 1, "two"), ("none", 0, 0, "")])
        self.assertTrue(0 < rows[0]["expires"] <= 3600)
        self.assertEqual(len(self.states.json("limits", "gpt", "--limit", "1")), 1)
        self.assertEqual(self.table(self.states.run("limits", "gpt"))[1][:4], ["gpt", "2", "1", "one"])
        rows = self.states.json("locks", "leader", "free")
        self.assertEqual([(r["key"], r["held"], r["holder"]) for r in rows],
                         [("leader", True, "host-1"), ("free", False, "")])
        self.assertEqual(self.table(self.states.run("locks", "leader"))[1][:3], ["leader", "yes", "host-1"])

    def test_workers_and_what_they_know_of_a_job(self):
        place = self.place()
        place.fill("empty")
        self.assertEqual(place.run("workers").status, 1)
        ids = place.fill("thumbs", 3)
        gone = place.json("workers")
        self.assertEqual([(w["name"], w["state"], w["busy"], w["concurrency"]) for w in gone],
                         [("yesterday's", "gone", 1, 3)])
        self.assertTrue(1800 <= gone[0]["seen"] < 1900, gone)
        waits, other = (ids["thumb 1"], ids["of nobody"])

        def codes(queue, job):
            told = place.json("explain", queue, job)[0]
            return [b["code"] for b in told["because"]], " ".join(told["unknown"])

        full = place.json("buckets", "thumbnail", "--tokens", "1", "--per", "3600")
        self.assertEqual([(b["tokens"], b["capacity"], b["allowed"]) for b in full], [(1, 1, True)])
        self.assertIn("none is registered that seems alive", codes("thumbs", waits)[1])
        worker = subprocess.Popen([FILL, place.environment["WEIR_STORE"], "work"], env=place.environment,
                                  stdout=subprocess.PIPE)
        try:
            worker.stdout.readline()  # a job runs
            one, _ = place.json("workers")
            self.assertEqual([one["name"], one["state"], one["concurrency"], one["kinds"], one["whole"]],
                             ["thumbs on host 1", "running", 10, ["thumbnail"], True])
            self.assertEqual(one["queues"], [{"name": "thumbs", "weight": 1, "concurrency": 0}])
            runs = place.json("jobs", "thumbs", "--state", "leased")
            busy = next(j["id"] for j in runs if place.json("job", "thumbs", j["id"])[0]["holder"] == one["holder"])
            self.assertIn("worker", codes("thumbs", busy)[0])
            waits = next(j["id"] for j in self.until_waiting(place, 2))
            why, unknown = codes("thumbs", waits)
            self.assertEqual([c for c in why if c in ("workers", "limit_reached", "rate_used_up")],
                             ["workers", "limit_reached", "rate_used_up"])
            self.assertEqual(unknown, "")
            why, unknown = codes("mail", other)
            self.assertIn("no_worker", why)
            self.assertIn("whether a worker that is not registered does", unknown)
            bucket = place.json("buckets", "thumbnail", "--tokens", "1", "--per", "3600")[0]
            self.assertEqual([bucket["tokens"], bucket["allowed"]], [0, False])
            self.assertTrue(3000 < bucket["again"] <= 3600, bucket)
            self.assertRegex(place.run("buckets", "thumbnail", "--tokens", "1", "--per", "3600").out,
                             r"thumbnail +0 +1 +no +in 59m\d\ds +in 59m\d\ds")
            shown = place.run("workers").out
            self.assertRegex(shown, r"NAME +STATE +SEEN +UP +BUSY +QUEUES +KINDS")
            self.assertRegex(shown, r"thumbs on host 1 +running +\S+ +\S+ +\d/10 +thumbs +thumbnail")
            self.assertNotIn("weir.workers", place.run("queues").out)
            self.assertEqual(place.run("resume", "weir.workers").status, 1)
            self.assertEqual(place.run("cancel", "weir.workers", "--all", "--yes").status, 2)
        finally:
            worker.terminate()
            self.assertEqual(worker.wait(LIMIT), 0)
        self.assertEqual([w["name"] for w in place.json("workers")], ["yesterday's"])

    def until_waiting(self, place, count):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            found = place.json("jobs", "thumbs", "--state", "pending")
            if len(found) == count:
                return found
            time.sleep(0.05)
        self.fail(f"never {count} jobs that wait")

    def test_schedules(self):
        rows = {row["name"]: row for row in self.states.json("schedules")}
        self.assertEqual(set(rows), {"nightly", "hourly", "\x1b]0;ostrange"})
        self.assertEqual(rows["nightly"]["when"], "30 2 * * * Europe/Berlin")
        self.assertTrue(0 < rows["hourly"]["next"] <= 3600)
        self.assertEqual([rows["hourly"][k] for k in ("queue", "kind", "paused")], ["reports", "report", False])

    def test_schedules_by_pages_beside_a_queue_of_a_stranger(self):
        place = self.place()
        place.fill("states")
        place.fill("planted")
        names, more = [], ""
        while len(names) < 10:
            shown = place.run("schedules", "--limit", "1", *more.split())
            self.assertEqual(shown.status, 0, shown.err)
            lines = shown.out.splitlines()
            if not lines:
                break
            if lines[0].startswith("NAME"):
                self.assertLessEqual(len(lines), 3)
                names.append(lines[1].split()[0])
            if not lines[-1].startswith("more: "):
                break
            more = lines[-1].removeprefix("more: ")
            self.assertRegex(more, r"\A--cursor [0-9a-f]+\Z")  # a shell leaves it as it is
        self.assertEqual(sorted(names)[1:], ["hourly", "nightly"])

    def test_what_cannot_be_written_is_not_done(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["queues"], ["--json", "queues"], ["--help"], ["completions", "bash"]):
                with self.subTest(arguments):
                    process = self.states.start(*arguments, stdout=full)
                    self.assertIn(b"standard output", process.communicate(timeout=LIMIT)[1])
                    self.assertEqual(process.returncode, 3)

    def test_nothing_of_strangers_reaches_the_terminal(self):
        for arguments in (["queues"], ["jobs", EVIL_QUEUE], ["dead", EVIL_QUEUE], ["job", EVIL_QUEUE, self.ids["hostile"]],
                          ["job", EVIL_QUEUE, self.ids["hostile"], "--payload"],
                          ["explain", EVIL_QUEUE, self.ids["hostile"]], ["schedules"], ["limits", EVIL], ["locks", EVIL],
                          ["jobs", EVIL + b"nosuch"], ["pause", EVIL + b"nosuch"]):
            for form in ([], ["--json"]):
                with self.subTest(f"{form} {arguments}"[:60]):
                    result = self.states.run(*form, *arguments)
                    self.assertIn(result.status, (0, 1))
                    self.assertRegex(result.raw + result.err.encode(), rb"\A[\n -~]*\Z")
                    if form:
                        for line in result.raw.splitlines():
                            json.loads(line)
        job, = self.states.json("job", EVIL_QUEUE, self.ids["hostile"])
        for name in ("kind", "payload"):
            self.assertEqual(bytes.fromhex(job[name + "_hex"]), EVIL)
        self.assertTrue(bytes.fromhex(job["reason_hex"]).startswith(EVIL + b"r" * 3000))
        self.assertEqual([job["headers"], job["headers_hex"]], [{}, {EVIL.hex(): EVIL.hex()}])

    def test_lines_fit_the_terminal(self):
        for columns in (60, 120):
            for arguments in (["queues"], ["jobs", "mail"], ["jobs", EVIL_QUEUE], ["dead", EVIL_QUEUE], ["schedules"],
                              ["job", EVIL_QUEUE, self.ids["hostile"]], ["explain", EVIL_QUEUE, self.ids["hostile"]],
                              ["explain", "mail", self.ids["twin"]], ["limits", EVIL_QUEUE]):
                with self.subTest(f"{columns} {arguments}"[:60]):
                    status, shown = self.states.on_terminal(columns, *arguments)
                    self.assertEqual(status, 0, shown)
                    lines = shown.decode().splitlines()
                    self.assertLessEqual(max(map(len, lines)), columns)
        for columns in (1, 18, 19):  # narrower than the names of what is shown
            for arguments in (["queues"], ["job", "mail", self.ids["twin"]], ["explain", "mail", self.ids["twin"]]):
                with self.subTest(f"{columns} {arguments}"):
                    self.assertEqual(self.states.on_terminal(columns, *arguments)[0], 0)
        # What can be shown whole, is.
        self.assertIn(self.ids["twin"].encode(), self.states.on_terminal(120, "jobs", "mail")[1])
        self.assertIn("\u2026".encode(), self.states.on_terminal(60, "queues")[1])
        self.assertNotIn("\u2026".encode(), self.states.run("queues").raw)


class Acting(ConsoleTest):
    def test_single_jobs(self):
        place = self.place()
        ids = place.fill("states")
        result = place.run("cancel", "mail", ids["due"], ids["leased"])
        self.assertEqual([result.status, result.out], [1, "cancelled 1 of 2, 1 refused\n"])
        self.assertEqual(result.err, f"weirctl: {ids['leased']}: it is leased; --running cancels it, too\n")
        self.assertEqual(place.run("cancel", "mail", ids["leased"], "--running").status, 0)
        self.check_fails(place.run("job", "mail", ids["leased"]), 1, "no record")
        self.assertEqual(place.run("replay", "mail", ids["dead"]).out, "replayed 1 of 1\n")
        self.assertEqual(place.json("job", "mail", ids["dead"])[0]["state"], "pending")
        self.assertEqual(place.run("replay", "mail", ids["dead"]).status, 1)
        self.assertEqual(place.json("purge", "mail", ids["completed"], ids["later"])[1:],
                         [{"purged": 1, "refused": 0, "gone": 1, "of": 2, "complete": True}])
        self.check_fails(place.run("job", "mail", ids["completed"]), 1, "no record")
        self.assertEqual(place.json("job", "mail", ids["later"])[0]["state"], "pending")
        self.check_fails(place.run("cancel", "mail", "xyz"), 2, "UUID")
        self.check_fails(place.run("cancel", "mail"), 2, "some ID, or --all")
        self.check_fails(place.run("purge", "mail", "--all", "--yes"), 2, "--state")
        self.check_fails(place.run("cancel", "weir.schedules/reports", "--all", "--yes"), 2, "schedules")

    def test_pauses(self):
        place = self.place()
        place.fill("states")
        self.assertEqual(place.run("pause", "mail", "long").out, "paused mail\npaused long\n")
        self.assertEqual({r["queue"] for r in place.json("queues") if r["paused"]}, {"mail", "long", "paused"})
        result = place.run("resume", "mail", "paused", "nosuch")
        self.assertEqual([result.status, result.out], [1, "resumed mail\nresumed paused\n"])
        self.assertEqual({r["queue"] for r in place.json("queues") if r["paused"]}, {"long"})
        self.check_fails(place.run("pause", "nosuch"), 1, "there is no queue 'nosuch'")
        self.assertNotIn("nosuch", {r["queue"] for r in place.json("queues")})
        self.assertEqual(place.run("pause", "--new", "nosuch").status, 0)
        self.assertEqual(place.run("resume", "nosuch").status, 0)

    def test_brackets_and_commas_belong_to_a_name(self):
        place = self.place()
        place.fill("states")
        for name in ("[mail]", "[mail,long]", "[]", "\x01[mail]"):
            self.check_fails(place.run("pause", name), 1, "there is no queue '" + name.replace("\x01", "\\x01"))
            self.assertEqual(place.json("pause", "--new", name)[0]["queue"], name)
            self.assertEqual(place.json("limits", name)[0]["key"], name)
        self.assertEqual({r["queue"] for r in place.json("queues") if r["paused"]},
                         {"[mail]", "[mail,long]", "[]", "\x01[mail]", "paused"})
        self.assertEqual({r["queue"] for r in place.json("queues", "--under=[mail]")}, {"[mail]"})
        self.check_fails(place.run("queues", "[mail]"), 2, "not expected: [mail]")

    def test_schedules(self):
        place = self.place()
        place.fill("states")
        self.assertEqual(place.run("schedules", "pause", "nightly").out, "paused nightly\n")
        paused = {row["name"]: row for row in place.json("schedules")}
        self.assertEqual([paused["nightly"]["paused"], paused["hourly"]["paused"]], [True, False])
        self.assertEqual(place.run("schedules", "resume", "nightly").out, "resumed nightly\n")
        self.assertFalse(any(row["paused"] for row in place.json("schedules")))
        done, = place.json("schedules", "trigger", "hourly")
        self.assertEqual(place.json("job", "reports", done["id"])[0]["kind"], "report")
        self.check_fails(place.run("schedules", "trigger", "nosuch"), 1, "no schedule 'nosuch'")

    def test_bulk_wants_a_yes(self):
        place = self.place()
        place.fill("dead", 3, 0)
        self.check_fails(place.run("replay", "bulk", "--all"), 1, "replay all 3 jobs of bulk?", "--yes")
        for answer, status, dead in ((b"n\n", 1, 3), (b"\n", 1, 3), (b"y\n", 0, 0)):
            reached, shown = place.on_terminal(80, "replay", "bulk", "--all", say=answer, until=rb"\[y/N\] ")
            self.assertEqual(reached, status, shown)
            self.assertEqual(place.json("queues")[0]["dead"], dead)

    def test_a_question_leaves_the_terminal_as_it_was(self):
        place = self.place()
        place.fill("dead", 1, 0)
        master, slave = pty.openpty()
        process = place.start("replay", "bulk", "--all", stdin=slave, stdout=slave, stderr=slave)
        read_terminal(master, rb"\[y/N\] ")
        os.write(master, b"y\n")
        self.assertEqual(process.wait(timeout=LIMIT), 0)
        self.assertEqual(fcntl.fcntl(slave, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        os.close(slave)
        os.close(master)

    def test_a_page_answers_to_the_address_that_it_is_given(self):
        place = self.place()
        place.fill("states")
        for listen, host in (("127.0.0.2:0", "127.0.0.2"), ("127.0.0.1:0", "127.0.0.1")):
            process = place.start("--json", "serve", "--listen", listen, "--host", "[2001:db8::5]")
            at = urllib.parse.urlsplit(json.loads(process.stdout.readline())["url"])
            self.assertEqual(at.hostname, host)
            connection = http.client.HTTPConnection(at.hostname, at.port, timeout=LIMIT)
            for headers in ({}, {"Host": "[2001:db8::5]:8047"}):
                connection.request("GET", "/queues", headers=headers)
                reply = connection.getresponse()
                self.assertEqual([reply.status, len(reply.read()) > 0], [200, True])
            connection.close()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(finish(process).status, 0)

    def test_bulk_replay(self):
        place = self.place()
        ids = place.fill("dead", MANY, CONFLICTS)
        result = place.run("replay", "bulk", "--all", "--yes")
        self.assertEqual([result.status, result.out],
                         [1, f"replayed {MANY - CONFLICTS:,} of {MANY:,}, {CONFLICTS} refused\n"])
        for i in range(CONFLICTS):
            self.assertIn(f"weirctl: {ids[f'conflict {i}']}: its unique key was taken meanwhile, by job "
                          f"{ids[f'owner {i}']}\n", result.err)
        self.assertEqual(result.err.count("\n"), CONFLICTS)  # no progress, as it is no terminal
        queue, = place.json("queues")
        self.assertEqual([queue["pending"], queue["dead"]], [MANY, CONFLICTS])

    def test_bulk_is_bounded_and_selects(self):
        place = self.place()
        place.fill("dead", 1000, CONFLICTS)
        # What is refused does not count: 100 are done.
        self.assertEqual(place.json("replay", "bulk", "--all", "--yes", "--max", "100")[-1]["replayed"], 100)
        self.assertEqual(place.json("queues")[0]["dead"], 900)
        done = place.json("purge", "bulk", "--all", "--yes", "--state", "dead", "--kind", "odd")[-1]
        kinds = {row["kind"] for row in place.json("dead", "bulk", "--limit", "1000")}
        self.assertEqual(kinds, {"even"})
        left = place.json("queues")[0]["dead"]
        self.assertEqual(done["purged"] + left, 900)
        self.assertEqual(place.json("purge", "bulk", "--all", "--yes", "--state", "dead")[-1]["purged"], left)
        self.assertEqual(place.json("queues")[0]["dead"], 0)
        self.assertEqual(place.run("replay", "bulk", "--all", "--yes").out, "replayed 0 of 0\n")
        place.fill("waiting", 2500)
        self.assertEqual(place.json("cancel", "waiting", "--all", "--yes")[-1]["cancelled"], 2500)
        self.assertEqual([r["pending"] for r in place.json("queues") if r["queue"] == "waiting"], [0])
        self.check_fails(place.run("cancel", "nosuch", "--all", "--yes"), 1, "no queue 'nosuch'")

    def test_bulk_ends_though_all_dies_again(self):
        place = self.place()
        place.fill("dead", 500, 0)
        killer = subprocess.Popen([FILL, place.environment["WEIR_STORE"], "kill"], env=place.environment,
                                  stdout=subprocess.PIPE)
        try:
            killer.stdout.readline()
            done = place.json("replay", "bulk", "--all", "--yes")[-1]
        finally:
            killer.kill()
            killer.communicate()
        self.assertEqual([done["replayed"], done["of"], done["complete"]], [500, 500, True])

    def test_bulk_is_interrupted_and_goes_on(self):
        place = self.place()
        place.fill("dead", MANY, 0)
        master, slave = pty.openpty()
        process = place.start("--json", "replay", "bulk", "--all", "--yes", stderr=slave)
        os.close(slave)
        read_terminal(master, rb"replayed \d+")
        # It stands still until the signal is there, however fast the store is.
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        result = finish(process)
        os.close(master)
        first = json.loads(result.out)
        self.assertEqual([result.status, first["complete"]], [130, False])
        self.assertTrue(0 < first["replayed"] < MANY, first)
        self.assertEqual(place.json("queues")[0]["dead"], MANY - first["replayed"])
        second = place.json("replay", "bulk", "--all", "--yes")[-1]
        self.assertEqual(first["replayed"] + second["replayed"], MANY)
        self.assertEqual(place.json("queues")[0]["dead"], 0)

    def test_tail(self):
        place = self.place()
        place.fill("dead", 300, 0)  # more than a page, none of which is told
        process = place.start("--json", "tail", "--every", "0.05")
        ended = threading.Event()

        def go_on():
            while not ended.is_set():
                place.fill("waiting", 1)

        changer = threading.Thread(target=go_on)
        changer.start()
        try:
            first = json.loads(process.stdout.readline())  # it looks, from here on
        finally:
            ended.set()
            changer.join()
        self.assertEqual([first["queue"], first["dead"], first["reasons"]], ["waiting", 0, []])
        self.assertGreater(first["enqueued"], 0)
        place.fill("dead", 2, 0)
        enqueued = dead = 0
        reasons = set()
        while dead < 2 or enqueued < 2:
            row = json.loads(process.stdout.readline())
            if row["queue"] == "bulk":
                enqueued += row["enqueued"]
                dead += row["dead"]
                reasons |= set(row["reasons"])
        self.assertEqual([enqueued, dead, reasons], [2, 2, {"broken"}])
        process.send_signal(signal.SIGINT)
        self.assertEqual(finish(process).status, 130)
        self.assertEqual(place.run("tail", "bulk", "--every", "0.05", "--count", "2").status, 0)

    def test_tail_ends_when_nothing_can_be_written(self):
        place = self.place()
        place.fill("dead", 1, 0)
        reader, writer = os.pipe()
        os.close(reader)
        def close_it():
            os.close(1)
        full = os.open("/dev/full", os.O_WRONLY)
        for output, status, said, first in ((writer, 0, b"", None), (full, 3, b"standard output", None),
                                            (os.dup(full), 3, b"standard output", close_it)):
            process = place.start("tail", "--every", "0.05", stdout=output, preexec_fn=first)
            os.close(output)
            deadline = time.monotonic() + LIMIT
            while process.poll() is None and time.monotonic() < deadline:
                place.fill("waiting", 1)
            err = process.communicate(timeout=LIMIT)[1]
            self.assertEqual(process.returncode, status, err)
            self.assertIn(said, err)


class Refusals(ConsoleTest):
    def test_usage(self):
        self.check_fails(self.states.run(), 2)
        self.check_fails(self.states.run("frob"), 2)
        self.check_fails(self.states.run("jobs"), 2, "QUEUE")
        self.check_fails(self.states.run("queues", "--limit", "0"), 2, "--limit")
        self.check_fails(self.states.run("queues", "--patience", "nan"), 2, "seconds are a number")
        self.check_fails(self.states.run("cancel", "mail", "--all", "--yes", "--kind", ""), 2, "no kind is empty")
        self.check_fails(self.states.run("job", "mail", "nonsense"), 2, "UUID")
        self.check_fails(self.states.run("job", "mail", "0" * 31 + "1"), 1, "no record")
        self.check_fails(self.states.run("jobs", "q" * 1025), 2, "queue name")
        self.check_fails(self.states.run("--store", "http://u:secret@host", "queues"), 2, "redis://")
        without = {k: v for k, v in os.environ.items() if k != "WEIR_STORE"}
        self.check_fails(self.states.run("queues", env=without), 2, "WEIR_STORE")
        shown = self.states.run("--help")
        self.assertEqual(shown.status, 0)
        self.assertIn("Exit codes: 0 done; 1 nothing there", shown.out)

    def test_no_password_is_printed(self):
        for url in ("redis://ann:secret@127.0.0.1:1", "postgresql://ann:secret@127.0.0.1:1/x",
                    "postgresql://127.0.0.1:1/x?user=ann&password=secret", "nats://ann:secret@127.0.0.1:1",
                    "redis://ann:se@cret@127.0.0.1:x", "nats://ann:secret@", "what://ann:secret@h"):
            for arguments in (["--store", url, "--patience", "0.3", "queues"], ["queues", url]):
                result = self.states.run(*arguments)
                self.assertIn(result.status, (2, 3))
                self.assertNotRegex(result.out + result.err, "se@?cret")

    def test_a_cursor_that_no_page_gave(self):
        for cursor in ("garbage", "dead.61", "-1.61", "99999999999.61", "0.6", "4096.61"):
            self.check_fails(self.states.run("queues", "--cursor", cursor), 2, "--cursor is none")

    def test_an_argument_may_be_long(self):
        for begin in ("://", "password="):
            self.check_fails(self.states.run("queues", begin + "x" * 130_000), 2, "not expected: " + begin)

    def test_completions(self):
        def complete(*words):
            script = (f"source <('{PROGRAM}' completions bash); complete -p weirctl; "
                      f"COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _weirctl; echo \"${{COMPREPLY[*]}}\"")
            done = subprocess.run(["bash", "-c", script, "bash", "weirctl", *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual([done.returncode, done.stderr], [0, ""])
            registered, words = done.stdout.splitlines()
            self.assertEqual(registered, "complete -F _weirctl weirctl")
            return words.split()

        self.assertEqual(sorted(complete("re")), ["replay", "resume"])
        self.assertEqual(complete("jobs", "mail", "--state", "c"), ["completed", "cancelled"])
        self.assertEqual(complete("replay", "mail", "--ki"), ["--kind"])
        self.assertEqual(complete("queues", "--pat"), ["--patience"])
        self.assertEqual(complete("schedules", "tr"), ["trigger"])

    def test_shards(self):
        place = self.place()
        place.fill("states", WEIR_SHARDS="4")
        self.check_fails(place.run("queues"), 3, "see --shards")
        rows = place.json("queues", "--shards", "4")
        self.assertEqual(len({row["queue"] for row in rows}), 5)
        place.environment["WEIR_SHARDS"] = "4"
        seen, cursor = [], []
        while True:
            page = place.json("queues", "--limit", "1", *cursor)
            seen += [row["queue"] for row in page if "queue" in row]
            if not page or "cursor" not in page[-1]:
                break
            cursor = ["--cursor", page[-1]["cursor"]]
        self.assertEqual(sorted(seen), sorted(row["queue"] for row in rows))


class SqliteFiles(ConsoleTest):
    def test_nothing_is_made(self):
        missing = os.path.join(self.home, "missing.db")
        self.check_fails(self.states.run("--store", f"sqlite:{missing}", "queues"), 3, missing)
        self.assertFalse(os.path.exists(missing))
        empty = pathlib.Path(self.home, "empty.db")
        empty.touch()
        self.check_fails(self.states.run("--store", f"sqlite:{empty}", "queues"), 3, "no weir store in it")
        self.assertEqual(empty.stat().st_size, 0)
        text = pathlib.Path(self.home, "notes.txt")
        text.write_text("no database\n" * 100)
        self.check_fails(self.states.run("--store", f"sqlite:{text}", "queues"), 3, "not a database")
        self.check_fails(self.states.run("--store", f"sqlite:{self.home}", "queues"), 3)

    def test_an_applications_database(self):
        place = self.place()
        database = sqlite3.connect(place.path)
        database.execute("PRAGMA application_id = 7")
        database.execute("CREATE TABLE orders (id)")
        database.commit()
        self.check_fails(place.run("queues"), 3, "no weir store in it")
        place.fill("states", IN_APPLICATION="1")
        self.assertEqual(len(place.json("queues")), 5)
        self.assertEqual(database.execute("PRAGMA application_id").fetchone(), (7,))
        database.close()


class ServerAway(ConsoleTest):
    def test_nothing_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = re.sub(r":\d+", f":{port}", self.server.url())
        self.check_fails(self.states.run("--store", url, "--patience", "0.5", "queues"), 3,
                         "the store cannot be reached", str(port))


class PostgresSchemas(ConsoleTest):
    def test_a_database_is_not_migrated(self):
        for _ in range(2):
            self.check_fails(self.place().run("queues"), 3, "not migrated")
        self.check_fails(self.states.run("queues", "--schema", "No Such"), 3, "see --schema")


class NatsStreams(ConsoleTest):
    def test_no_stream_is_made(self):
        place = self.place()
        for _ in range(2):
            for command in (["queues"], ["limits", "gpt"], ["cancel", "mail", "0" * 31 + "1"]):
                self.check_fails(place.run(*command), 3, "there is no stream")


class Holding:
    """Stands between a program and a Redis server, and lets answers pass only once the program has said all that it says
    without them. Notes how many scripts were asked for at once."""

    def __init__(self, port):
        self.most = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.to = port
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.to))
        while True:
            asked = self.all_of(client)
            if not asked:
                return
            self.most = max(self.most, asked.count(b"\r\nEVALSHA\r\n") + asked.count(b"\r\nEVAL\r\n"))
            server.sendall(asked)
            client.sendall(self.all_of(server))

    @staticmethod
    def all_of(connection):
        """All that comes, until nothing has come for a while. Too short a while lets the test see less, and not fail."""
        connection.settimeout(None)
        out = connection.recv(1 << 20)
        connection.settimeout(0.02)
        try:
            while piece := connection.recv(1 << 20):
                out += piece
        except TimeoutError:
            pass
        return out


class RedisInFlight(ConsoleTest):
    def test_a_bounded_number_of_commands_is_under_way(self):
        place = self.place()
        place.fill("dead", 1000, 0)
        proxy = Holding(self.server.port)
        result = place.run("--store", f"redis://127.0.0.1:{proxy.port}", "--json", "replay", "bulk", "--all", "--yes")
        self.assertEqual(json.loads(result.out)["replayed"], 1000)
        self.assertTrue(8 < proxy.most <= 34, proxy.most)


class RedisLost(ConsoleTest):
    def test_a_store_is_lost_in_the_middle(self):
        place = self.place()
        place.fill("dead", MANY, 0)
        master, slave = pty.openpty()
        process = place.start("--json", "--patience", "0.5", "replay", "bulk", "--all", "--yes", stderr=slave)
        os.close(slave)
        read_terminal(master, rb"replayed \d+")
        process.send_signal(signal.SIGSTOP)
        self.server.end()
        process.send_signal(signal.SIGCONT)
        shown = read_terminal(master)
        result = finish(process)
        os.close(master)
        said = json.loads(result.out)
        self.assertEqual([result.status, said["complete"]], [3, False])
        self.assertTrue(0 < said["replayed"] < MANY, said)
        self.assertRegex(shown, rb"weirctl: redis: the (store cannot be reached|connection ended before the answer)")


if __name__ == "__main__":
    PROGRAM, FILL = map(os.path.abspath, sys.argv[1:3])
    del sys.argv[1:3]
    stores = ["sqlite"]
    if sys.argv[1:2] == ["--stores"]:
        stores = [name for name in sys.argv[2].split(",") if name]
        del sys.argv[1:3]
    of_all = [Reading, Acting, Refusals]
    servers = {"sqlite": None, "redis": RedisServer, "postgres": PostgresServer, "nats": NatsServer}
    of_one = {"sqlite": [SqliteFiles], "redis": [ServerAway, RedisInFlight, RedisLost], "postgres": [ServerAway, PostgresSchemas],
              "nats": [ServerAway, NatsStreams]}
    for test in (*of_all, SqliteFiles, ServerAway, PostgresSchemas, NatsStreams, RedisInFlight, RedisLost):
        del globals()[test.__name__]  # none is a test by itself
    del test
    for store in stores:
        for part in (*of_all, *of_one[store]):
            name = f"{part.__name__}_{store}"
            globals()[name] = type(name, (part,), {"KIND": store, "SERVER": servers[store]})
    del part
    unittest.main(verbosity=2)
