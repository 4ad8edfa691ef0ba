#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Holds the program `gateway` to what it promises its clients.

usage: gateway.py PROGRAM [--redis] [unittest arguments]

The backend is the test's own, and answers when the test wants it to. Quotas are of days: none comes back meanwhile.
With --redis the program has that store, which is tested on a server of the test's own.
"""

import contextlib
import http.client
import http.server
import json
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = ""
LIMIT = 120  # seconds that nothing here should take: a test fails rather than hangs


class Backend:
    """Answers each question when it is let; says what it was asked."""

    def __init__(self):
        self.open = threading.Event()
        self.asked = []
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                question = self.rfile.read(int(self.headers["Content-Length"])).decode()
                backend.asked.append(question)
                if question == "fail":
                    self.send_error(500)
                    return
                backend.open.wait()  # `close` opens it at the latest
                answer = f"re: {question}".encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # who asked has gone

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.place = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()


class Gateway:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([PROGRAM, "--listen", "127.0.0.1:0", *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        found = re.search(r"listening on .*:(\d+)$", first)
        if not found:
            raise AssertionError(f"{first}{self.process.communicate(timeout=LIMIT)[1]}")
        self.port = int(found[1])

    def ask(self, question="?", key="ann", path="/v1/answer", method="POST", headers=None):
        """The response, with its body read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            own = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request(method, path, question, {**own, **(headers or {})})
            response = connection.getresponse()
            response.text = response.read().decode()
            return response
        finally:
            connection.close()

    def ask_in_background(self, results, *arguments, **keywords):
        def work():
            try:
                results.append(self.ask(*arguments, **keywords))
            except (OSError, http.client.HTTPException) as problem:
                results.append(problem)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def status(self):
        return json.loads(self.ask(path="/status", method="GET", key=None, question=None).text)

    def end(self, number=None):
        if number and self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


class GatewayTest(unittest.TestCase):
    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="weir-gateway-"))
        self.backend = Backend()
        self.gateways = []

    def tearDown(self):
        for gateway in self.gateways:
            gateway.end(signal.SIGKILL)
        self.backend.close()
        shutil.rmtree(self.base)

    def store(self):
        return f"sqlite:{self.base}/gateway.db"

    def start(self, *arguments, rate="100/d", limit="4", ttl="1h"):
        gateway = Gateway("--store", self.store(), "--backend", self.backend.place, "--rate", rate,
                          "--limit", limit, "--ttl", ttl, "--wait", "1h", "--drain", "1h", *arguments)
        self.gateways.append(gateway)
        return gateway

    def wait_for(self, what):
        deadline = time.monotonic() + LIMIT
        while not what():
            self.assertLess(time.monotonic(), deadline, "what was waited for does not come")
            time.sleep(0.01)

    def wait_for_status(self, gateway, running, waiting):
        self.wait_for(lambda: gateway.status() == {"running": running, "waiting": waiting})


class Responses(GatewayTest):
    def test_without_a_key_there_is_no_answer(self):
        gateway = self.start()
        for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Basic YTpi"}, {"X-API-Key": ""}):
            response = gateway.ask(key=None, headers=headers)
            self.assertEqual(response.status, 401, headers)
            self.assertEqual(response.headers["WWW-Authenticate"], "Bearer")
        self.assertEqual(self.backend.asked, [])

    def test_answers_bear_the_fields_until_the_burst_is_used_up(self):
        self.backend.open.set()
        gateway = self.start(rate="3/d")
        policy = '"requests";q=3;w=86400'
        for left in (2, 1, 0):
            response = gateway.ask("why?")
            self.assertEqual(response.status, 200)
            self.assertEqual(json.loads(response.text), {"answer": "re: why?"})
            self.assertEqual(response.headers["RateLimit-Policy"], policy)
            self.assertRegex(response.headers["RateLimit"], rf'^"requests";r={left};t=\d+$')
            self.assertIsNone(response.headers["Retry-After"])
        response = gateway.ask("why?")
        self.assertEqual(response.status, 429)
        self.assertEqual(response.headers["RateLimit-Policy"], policy)
        seconds = int(response.headers["Retry-After"])
        self.assertEqual(response.headers["RateLimit"], f'"requests";r=0;t={seconds}')
        self.assertLessEqual(seconds, 28_800)  # a third of a day, less what has passed
        self.assertGreater(seconds, 28_800 - LIMIT)
        self.assertEqual(len(self.backend.asked), 3)
        # A quota is the key's own, however the key is given.
        self.assertEqual(gateway.ask(key=None, headers={"X-API-Key": "ann"}).status, 429)
        self.assertEqual(gateway.ask(key="bob").status, 200)

    def test_what_is_not_there_is_said(self):
        gateway = self.start()
        self.assertEqual(gateway.ask(path="/").status, 404)
        self.assertEqual(gateway.ask(method="DELETE").status, 405)
        self.assertEqual(gateway.ask(question="x" * 1_000_000).status, 413)
        self.assertEqual(gateway.ask("fail").status, 502)
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT) as client:
            client.sendall(b"what is this\r\n\r\n")
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 400 "))

    def test_its_page_is_there_if_it_is_wanted(self):
        self.assertEqual(self.start().ask(path="/console/", method="GET").status, 404)
        gateway = self.start("--console")
        response = gateway.ask(path="/console/limits?noun=limiter&key=backend", method="GET")
        self.assertEqual(response.status, 200)
        self.assertIn("In use", response.text)
        self.assertIn('href="/console/page.css"', response.text)
        self.assertEqual(gateway.ask(path="/consoles", method="GET").status, 404)
        self.assertEqual(gateway.ask(path="/console", method="GET", headers={"Host": "evil.test"}).status, 421)

    def test_F98_a_body_whose_end_is_not_certain_is_refused(self):
        self.backend.open.set()
        gateway = self.start()
        chunks = b"5\r\nhello\r\n0\r\n\r\n"
        for coding, status in ((b"chunked", 200), (b"Chunked", 200), (b"gzip, chunked", 501), (b"identity", 501),
                               (b"xchunked", 501), (b"chunked\r\nTransfer-Encoding: identity", 400),
                               (b"chunked, identity", 501), (b"chunked\r\nContent-Length: 5", 400)):
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT) as client:
                client.sendall(b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nX-API-Key: ann\r\nTransfer-Encoding: " +
                               coding + b"\r\nConnection: close\r\n\r\n" + chunks)
                said = b""
                while more := client.recv(4096):
                    said += more
            self.assertTrue(said.startswith(b"HTTP/1.1 %d " % status), (coding, said))
            self.assertEqual(said.count(b"HTTP/1.1 "), 1, (coding, said))
        self.assertEqual(self.backend.asked, ["hello"] * 2)

    def test_the_answer_to_a_question_for_a_head_has_no_body(self):
        gateway = self.start()
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT) as client:
            client.sendall(b"HEAD /status HTTP/1.1\r\nHost: x\r\n\r\nGET /status HTTP/1.1\r\nHost: x\r\n"
                           b"Connection: close\r\n\r\n")
            said = b""
            while more := client.recv(4096):
                said += more
        head, rest = said.split(b"\r\n\r\n", 1)
        self.assertRegex(head, rb"\AHTTP/1.1 405 [\s\S]*Content-Length: [1-9]")
        self.assertTrue(rest.startswith(b"HTTP/1.1 200 "), said)

    def test_a_client_of_HTTP_1_0_is_told_that_its_connection_stays(self):
        gateway = self.start()
        for kept in (b"keep-alive", b"close"):
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT) as client:
                client.sendall(b"GET /status HTTP/1.0\r\nConnection: " + kept + b"\r\n\r\n")
                head = client.recv(4096)
                self.assertEqual(b"\r\nConnection: keep-alive\r\n" in head, kept == b"keep-alive", head)

    def test_one_connection_serves_many_requests(self):
        self.backend.open.set()
        gateway = self.start()
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=LIMIT)
        for i in range(5):
            connection.request("POST", "/v1/answer", str(i), {"X-API-Key": "ann"})
            self.assertEqual(json.loads(connection.getresponse().read()), {"answer": f"re: {i}"})
        connection.close()

    def test_who_does_not_come_to_its_turn_does_not_pay_for_it(self):
        gateway = self.start("--wait", "0ms", rate="5/d", limit="1")
        results = []
        thread = gateway.ask_in_background(results, key="ann")
        self.wait_for_status(gateway, running=1, waiting=0)
        for _ in range(8):  # more often than its quota allows
            response = gateway.ask(key="bob")
            self.assertEqual(response.status, 429)
            self.assertEqual(response.headers["Retry-After"], "1")
            # The token goes back, though a little of it has refilled.
            self.assertIn(";r=5;", response.headers["RateLimit"])
        self.backend.open.set()
        thread.join(LIMIT)
        self.assertEqual(results[0].status, 200)

    def test_wrong_usage(self):
        for arguments in (["--bogus"], ["--rate", "3"], ["--rate", "0/s"], ["--store", "no"], ["--listen", "x"],
                          ["--wait", "5"], ["--limit"]):
            result = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr.startswith(b"gateway: "), result.stderr)
            self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)
        result = subprocess.run([PROGRAM, "--store", f"sqlite:{self.base}/no/file"], stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=LIMIT)
        self.assertEqual(result.returncode, 3, result.stderr)

    def test_F98_no_password_and_no_escape_sequence_is_printed(self):
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            port = nobody.getsockname()[1]
        for arguments in (["--store", f"redis://ann:s3cret@127.0.0.1:{port}"], ["--store", "redis://ann:s3cret@:x"],
                          [f"--stor=redis://ann:s3cret@127.0.0.1:{port}"], ["--rate", "\x1b]0;title\x07"],
                          ["--store", "sqlite:/\x1b[2J/\x9b2J"], ["redis://ann:s3cret@h"],
                          ["--rate", "redis://ann:s3cret@h"], ["--listen", "redis://ann:s3cret@h"]):
            result = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
            self.assertIn(result.returncode, (2, 3), arguments)
            self.assertNotIn(b"s3cret", result.stderr)
            self.assertRegex(result.stderr, rb"\A(weir: [ -~]*\n)*gateway: [ -~]*\n\Z")


class TwoGateways(GatewayTest):
    def test_they_share_a_quota(self):
        self.backend.open.set()
        gateways = [self.start(rate="7/d"), self.start(rate="7/d")]
        codes = [gateways[i % 2].ask().status for i in range(12)]
        self.assertEqual(codes, [200] * 7 + [429] * 5)

    def test_they_share_a_quota_when_all_ask_at_once(self):
        self.backend.open.set()
        gateways = [self.start(rate="10/d"), self.start(rate="10/d")]
        results = []
        threads = [gateways[i % 2].ask_in_background(results) for i in range(30)]
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual(sorted(result.status for result in results), [200] * 10 + [429] * 20)

    def test_they_share_the_turns(self):
        first, second = self.start(limit="2"), self.start(limit="2")
        results = []
        threads = [gateway.ask_in_background(results) for gateway in (first, second) * 3]
        self.wait_for_status(first, running=2, waiting=4)
        self.assertEqual(second.status(), {"running": 2, "waiting": 4})
        self.wait_for(lambda: len(self.backend.asked) == 2)
        self.backend.open.set()
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual([result.status for result in results], [200] * 6)
        self.wait_for_status(second, running=0, waiting=0)

    def test_what_a_killed_one_held_comes_back(self):
        ttl = "10s"  # which it renews, on a machine that is slow, too
        first = self.start(limit="1", ttl=ttl)
        results = []
        first.ask_in_background(results, "first")
        self.wait_for(lambda: self.backend.asked == ["first"])
        second = self.start(limit="1", ttl=ttl)
        thread = second.ask_in_background(results, "second")
        self.wait_for_status(second, running=1, waiting=1)
        first.end(signal.SIGKILL)
        self.backend.open.set()
        thread.join(LIMIT)
        answers = [result.text for result in results if isinstance(result, http.client.HTTPResponse)]
        self.assertEqual(answers, ['{"answer":"re: second"}\n'])


class TwoGatewaysOnRedis(TwoGateways):
    def setUp(self):
        super().setUp()
        # The server is what it is called by: Debian's tools bring it under the second name.
        program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        self.assertTrue(program, "redis-server is not installed")
        for _ in range(10):  # who asks for a free port may find it taken a moment later
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
            self.server = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir",
                                            str(self.base), "--save", ""], executable=program,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self.wait_for(lambda: self.server.poll() is not None or self.accepts())
            if self.server.poll() is None:
                return
        self.fail("redis-server does not start")

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT).close()
            return True
        except ConnectionRefusedError:
            return False

    def store(self):
        return f"redis://127.0.0.1:{self.port}"

    def tearDown(self):
        self.server.kill()
        self.server.wait(LIMIT)
        super().tearDown()


class Clients(GatewayTest):
    def test_one_that_leaves_gives_back_its_turn(self):
        gateway = self.start(limit="1")
        for leaving in ("half", "whole"):
            client = socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT)
            client.sendall(b"GET /v1/answer HTTP/1.1\r\nHost: x\r\nX-API-Key: ann\r\n\r\n")
            self.wait_for_status(gateway, running=1, waiting=0)
            if leaving == "half":
                client.shutdown(socket.SHUT_WR)
            else:
                client.close()
            self.wait_for_status(gateway, running=0, waiting=0)
            client.close()

    def test_one_that_leaves_gives_back_its_place_in_line(self):
        gateway = self.start(limit="1")
        results = []
        thread = gateway.ask_in_background(results, "first")
        self.wait_for_status(gateway, running=1, waiting=0)
        client = socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT)
        client.sendall(b"GET /v1/answer HTTP/1.1\r\nHost: x\r\nX-API-Key: ann\r\n\r\n")
        self.wait_for_status(gateway, running=1, waiting=1)
        client.close()
        self.wait_for_status(gateway, running=1, waiting=0)
        self.backend.open.set()
        thread.join(LIMIT)
        self.assertEqual(results[0].status, 200)
        self.assertEqual(self.backend.asked, ["first"])


    def test_F98_slow_ones_do_not_keep_others_from_being_served(self):
        self.backend.open.set()
        slow = []
        gateway = self.start("--connections", "1000", rate="100/s")
        for i in range(1000):
            slow.append(socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT))
            slow[-1].sendall((b"", b"POST /v1/answer HTTP/1.1\r\nX-Slow: ",
                              b"POST /v1/answer HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc")[i % 3])
        asked = 20
        for _ in range(asked):
            self.assertEqual(gateway.ask().status, 200)
        # Those that were there for longest made room: one for each, and nobody waited for their time to be over.
        gone = [i for i, client in enumerate(slow) if select.select([client], [], [], 0)[0]]
        self.assertLessEqual(len(gone), asked)
        for client in slow:
            client.close()

    def test_F98_those_who_take_no_response_do_not_keep_others_from_being_served(self):
        self.backend.open.set()
        gateway = self.start("--connections", "8", "--console", rate="100/s")
        slow = []
        for _ in range(8):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(("127.0.0.1", gateway.port))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(1200):
                    client.send(b"GET /console/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
            slow.append(client)
        self.assertEqual(gateway.ask().status, 200)
        # One made room, and nobody waited until the time of all was over.
        established = 1
        states = [client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] for client in slow]
        self.assertGreaterEqual(states.count(established), 5, states)
        for client in slow:
            client.close()

    def test_F98_what_stands_beside_a_body_is_bounded_too(self):
        gateway = self.start()
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT) as client:
            client.sendall(b"POST /v1/answer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;x=")
            with contextlib.suppress(ConnectionError):
                for _ in range(64):
                    client.sendall(b"a" * 16384)
            self.assertIn(b" 431 ", client.recv(4096))


class Ending(GatewayTest):
    def test_SIGTERM_lets_what_runs_and_what_waits_finish(self):
        gateway = self.start(limit="1")
        other = self.start(limit="1")
        idle = socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT)
        results = []
        threads = [gateway.ask_in_background(results) for _ in range(2)]
        self.wait_for_status(gateway, running=1, waiting=1)
        gateway.process.send_signal(signal.SIGTERM)
        self.assertIn("finishing", gateway.process.stdout.readline())
        self.assertEqual(idle.recv(1), b"")  # who has asked nothing is let go
        idle.close()
        self.wait_for(lambda: self.refuses(gateway))
        self.backend.open.set()
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual([result.status for result in results], [200, 200])
        self.assertEqual([result.headers["Connection"] for result in results], ["close", "close"])
        status, _, err = gateway.end()
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(other.status(), {"running": 0, "waiting": 0})

    def refuses(self, gateway):
        try:
            socket.create_connection(("127.0.0.1", gateway.port), timeout=LIMIT).close()
            return False
        except ConnectionRefusedError:
            return True

    def test_what_does_not_finish_is_cut_off_and_gives_back_its_turn(self):
        gateway = self.start("--drain", "0ms", limit="1")
        other = self.start(limit="1")
        results = []
        threads = [gateway.ask_in_background(results) for _ in range(2)]
        self.wait_for_status(gateway, running=1, waiting=1)
        status, _, err = gateway.end(signal.SIGINT)
        self.assertEqual(status, 1)
        # Its last answer about its status may have come, and it does not know that yet.
        self.assertRegex(err, "^gateway: [23] requests were cut off\n$")
        for thread in threads:
            thread.join(LIMIT)
        self.wait_for_status(other, running=0, waiting=0)

    def test_an_idle_one_ends_at_once(self):
        gateway = self.start()
        self.assertEqual(gateway.end(signal.SIGTERM)[0], 0)


if __name__ == "__main__":
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # for the gateways, too
    PROGRAM = sys.argv.pop(1)
    if "--redis" in sys.argv:
        sys.argv.remove("--redis")
    else:
        del TwoGatewaysOnRedis
    unittest.main(verbosity=2)
