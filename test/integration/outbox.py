#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Kills the program `outbox` again and again, and checks order by order what was delivered.

usage: outbox.py PROGRAM [unittest arguments]
"""

import collections
import contextlib
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
LIMIT = 240  # seconds that nothing here should take: a test fails rather than hangs
ROUNDS = 6
LINE = re.compile(r"^(\S+) idempotency-key=(\S+) attempt=(\d+)$")


class Outbox(unittest.TestCase):
    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="weir-outbox-"))
        self.file = self.base / "shop.db"
        self.list = self.base / "deliveries"
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            self.end(process, signal.SIGKILL)
        shutil.rmtree(self.base)

    def start(self, verb, argument):
        process = subprocess.Popen([PROGRAM, verb, self.file, str(argument)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def end(self, process, number=None):
        if number and process.poll() is None:
            process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT) if not process.stdout.closed else ("", "")
        return process.returncode, out, err

    def committed(self):
        with contextlib.closing(sqlite3.connect(self.file, timeout=LIMIT)) as db:
            db.execute("PRAGMA wal_autocheckpoint = 0")
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchone():
                return set()
            return {reference for (reference,) in db.execute("SELECT reference FROM orders")}

    def delivered(self):
        """For each order, its idempotency keys; a line that is being written is none yet."""
        found = collections.defaultdict(list)
        if self.list.exists():
            for line in self.list.read_text().split("\n")[:-1]:
                match = LINE.match(line)
                self.assertTrue(match, line)
                found[match[1]].append(match[2])
        return found

    def wait_for(self, what):
        deadline = time.monotonic() + LIMIT
        while not what():
            self.assertLess(time.monotonic(), deadline, "what was waited for does not come")
            time.sleep(0.02)

    def test_an_order_is_delivered_and_one_that_was_rolled_back_is_not(self):
        self.assertEqual(self.end(self.start("order", 9)), (0, "6 orders placed, 3 rolled back\n", ""))
        courier = self.start("deliver", self.list)
        self.wait_for(lambda: len(self.delivered()) == 6)
        self.assertEqual(self.end(courier, signal.SIGTERM), (0, "", ""))
        self.assertEqual(set(self.delivered()), self.committed())
        self.assertEqual({len(keys) for keys in self.delivered().values()}, {1})

    def test_whoever_is_killed_whenever_every_order_is_delivered_and_no_other(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}", file=sys.stderr)
        chance = random.Random(seed)
        for _ in range(ROUNDS):
            shop, courier = self.start("order", 1_000_000), self.start("deliver", self.list)
            before, sent = len(self.committed()), len(self.delivered())
            self.wait_for(lambda: len(self.committed()) > before and len(self.delivered()) > sent)
            time.sleep(chance.uniform(0, 0.2))  # anywhere in their work
            killed = [shop, courier]
            chance.shuffle(killed)
            for process in killed:
                process.kill()
                time.sleep(chance.uniform(0, 0.05))
                self.assertEqual(self.end(process)[0], -signal.SIGKILL)
            self.assertLessEqual(set(self.delivered()), self.committed())

        self.assertEqual(self.end(self.start("order", 3))[0], 0)
        courier = self.start("deliver", self.list)
        self.wait_for(lambda: len(self.delivered()) >= len(self.committed()))
        self.assertEqual(self.end(courier, signal.SIGTERM)[0], 0)

        delivered, committed = self.delivered(), self.committed()
        self.assertEqual(set(delivered), committed)
        self.assertFalse([reference for reference in committed if int(reference.split("-")[1]) % 3 == 0])
        # Whoever receives a delivery twice can tell by its key, which is of this order only.
        keys = {reference: set(all_keys) for reference, all_keys in delivered.items()}
        self.assertEqual({len(own) for own in keys.values()}, {1})
        self.assertEqual(len(set().union(*keys.values())), len(committed))
        twice = sum(len(all_keys) > 1 for all_keys in delivered.values())
        print(f"{len(committed)} orders, {twice} delivered more than once", file=sys.stderr)

    def test_wrong_usage(self):
        for arguments in ([], ["order"], ["order", self.file, "many"], ["deliver", self.file]):
            result = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                                    timeout=LIMIT)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr.startswith(b"usage: outbox "), result.stderr)
        self.file.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
        for verb, argument in (("order", 1), ("deliver", self.list)):
            status, _, err = self.end(self.start(verb, argument))
            self.assertEqual(status, 1, err)
            self.assertEqual([line.split(":")[0] for line in err.splitlines()], ["weir", "outbox"], err)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
