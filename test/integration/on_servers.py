#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Runs the examples that want a server, on servers of the test's own.

usage: on_servers.py [--redis REDIS_LIMITER] [--postgres POSTGRES_TRANSACTION] [--nats NATS_OWNER] [unittest arguments]

Only the programs that were built are given; what the build left out, it has said.
"""

import re
import select
import subprocess
import sys
import unittest

from servers import LIMIT, NatsServer, PostgresServer, RedisServer

PROGRAMS = {}


def start(store, *arguments):
    return subprocess.Popen([PROGRAMS[store], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=LIMIT)
    return process.returncode, out, err


class RedisLimiter(unittest.TestCase):
    def setUp(self):
        self.server = RedisServer()
        self.addCleanup(self.server.close)

    def test_two_processes_have_ten_together(self):
        # More calls than permits for each, and no multiple of them: the two then share the last ten.
        processes = [start("redis", self.server.url(), "45") for _ in range(2)]
        in_use = []
        for process in processes:
            status, out, err = finish(process)
            self.assertEqual((status, err), (0, ""))
            counts = [int(n) for n in re.findall(r"^(\d+) in use$", out, re.M)]
            self.assertEqual(len(counts), 45)
            in_use += counts
        self.assertEqual(max(in_use), 10)

    def test_what_is_no_address_is_said_at_once(self):
        status, _, err = finish(start("redis", "http://127.0.0.1", "1"))
        self.assertEqual(status, 1)
        self.assertNotEqual(err, "")

    def test_nobody_there(self):
        self.server.end()
        status, out, err = finish(start("redis", self.server.url(), "1"))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("the store cannot be reached", err)


class PostgresTransaction(unittest.TestCase):
    def test_a_job_is_there_if_its_transaction_was_committed(self):
        server = PostgresServer()
        self.addCleanup(server.close)
        status, out, err = finish(start("postgres", server.url()))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(re.findall(r"^packed: .*$", out, re.M), ["packed: a kettle"])


class NatsOwner(unittest.TestCase):
    def test_another_number_of_shards_is_heard_of(self):
        server = NatsServer()
        self.addCleanup(server.close)
        owners = [start("nats", server.url(), shards) for shards in ("1", "2")]
        # Who comes second is wrong.
        told, _, _ = select.select([o.stderr for o in owners], [], [], LIMIT)
        line = told[0].readline() if told else ""
        for owner in owners:
            owner.terminate()
            self.assertEqual(finish(owner)[0], 0)
        self.assertIn("nats_options::shards is ", line)

    def test_what_is_no_number_of_shards_is_said_at_once(self):
        for shards in ("many", "0", "-1"):
            status, _, err = finish(start("nats", "nats://127.0.0.1:1", shards))
            self.assertEqual((status, err), (1, "usage: nats_owner NATS_URL [SHARDS]\n"))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    while arguments[:1] in (["--redis"], ["--postgres"], ["--nats"]):
        PROGRAMS[arguments[0][2:]] = arguments[1]
        arguments = arguments[2:]
    if "redis" not in PROGRAMS:
        del RedisLimiter
    if "postgres" not in PROGRAMS:
        del PostgresTransaction
    if "nats" not in PROGRAMS:
        del NatsOwner
    unittest.main(argv=[sys.argv[0], *arguments])
