# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Servers of a test's own, for the tests that run whole programs."""

import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LIMIT = 120  # seconds that nothing here should take

# Root can read everything, and PostgreSQL refuses to be it. What is run is somebody else then.
IDENTITY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


class Server:
    """A server of the test's own, on the loopback interface, in a directory that goes with it."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="weir-server-")
        if IDENTITY:
            os.chown(self.home, IDENTITY["user"], IDENTITY["group"])
        self.prepare()
        for _ in range(10):  # who asks for a free port may find it taken a moment later
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
            with open(os.path.join(self.home, "log"), "ab") as log:
                self.process = subprocess.Popen(self.command(), cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, **self.keywords(), **IDENTITY)
            deadline = time.monotonic() + LIMIT
            while self.process.poll() is None and time.monotonic() < deadline:
                if self.answers():
                    return
                time.sleep(0.02)
            self.end()
        raise RuntimeError("the server does not start: " + pathlib.Path(self.home, "log").read_text(errors="replace"))

    def prepare(self):
        pass

    def keywords(self):
        return {}

    def end(self):
        self.process.send_signal(signal.SIGQUIT if self.process.poll() is None else 0)
        try:
            self.process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)


class RedisServer(Server):
    def command(self):
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.home, "--save", "",
                "--maxmemory-policy", "noeviction"]

    def keywords(self):
        # Debian's package of tools has the server by another name; it is what it is called.
        return {"executable": shutil.which("redis-server") or shutil.which("redis-check-rdb")}

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
        except OSError:
            return False

    def end(self):
        self.process.kill()
        self.process.wait()

    def url(self):
        return f"redis://127.0.0.1:{self.port}"


class PostgresServer(Server):
    def binary(self, name):
        return max(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), default=name)

    def prepare(self):
        subprocess.run([self.binary("initdb"), "-D", self.home + "/data", "-U", "postgres", "-A", "trust", "-N", "-E",
                        "UTF8", "--locale=C"], cwd="/", stdout=subprocess.DEVNULL, check=True, **IDENTITY)

    def command(self):
        return [self.binary("postgres"), "-D", self.home + "/data", "-k", self.home, "-p", str(self.port), "-c",
                "listen_addresses=127.0.0.1", "-c", "fsync=off"]

    def answers(self):
        ready = [self.binary("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, cwd="/").returncode == 0

    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"


class NatsServer(Server):
    def command(self):
        return [os.environ.get("WEIR_NATS_SERVER", "nats-server"), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd",
                self.home + "/js"]

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False

    def end(self):
        self.process.kill()
        self.process.wait()

    def url(self):
        return f"nats://127.0.0.1:{self.port}"
