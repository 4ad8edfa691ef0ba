#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Holds the program `manifest` to what `find` and `sha256sum` say.

usage: manifest.py PROGRAM [--servers redis,postgres,nats] [unittest arguments]

--servers: which ones the program was built for; the test starts its own.
"""

import contextlib
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from servers import IDENTITY, LIMIT, NatsServer, PostgresServer, RedisServer
from terminal import read_terminal

PROGRAM = ""  # a copy that an ordinary user can reach


class Result:
    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err.decode(errors="replace")


class ManifestTest(unittest.TestCase):
    STORE = "sqlite"

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="weir-manifest-"))
        os.chmod(self.base, 0o755)
        self.tree = self.base / "tree"
        self.tree.mkdir()
        self.work = self.base / "work"  # where the program runs and writes
        self.work.mkdir()
        self.sums = self.work / "SHA256SUMS"
        (self.base / "store").mkdir()
        self.database = self.base / "store" / "jobs.db"

    def tearDown(self):
        # Neither minds a path that is too long.
        subprocess.run(["chmod", "-R", "u+rwx", self.base], check=True)
        subprocess.run(["rm", "-rf", self.base], check=True)

    def file(self, name, data=b"x"):
        path = os.path.join(os.fsencode(self.tree), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def own(self):
        """Gives everything to who runs the program."""
        if IDENTITY:
            subprocess.run(["chown", "-hR", f"{IDENTITY['user']}:{IDENTITY['group']}", self.base], check=True)

    def command(self, *arguments):
        return [PROGRAM, "--store", "memory" if self.STORE == "memory" else f"sqlite:{self.database}", *arguments]

    def start(self, *arguments, **keywords):
        self.own()
        return subprocess.Popen(self.command(*arguments), cwd=self.work, stdin=subprocess.DEVNULL,
                                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **IDENTITY, **keywords})

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"the program hangs: {err}")
        return Result(process.returncode, out, err)

    def run_program(self, *arguments):
        return self.finish(self.start(*arguments))

    def expected(self, directory, leave_out=()):
        """What sha256sum prints for the files that find prints, ordered by path."""
        found = subprocess.run(["find", "-H", directory, "-type", "f", "-print0"], cwd=self.work,
                               stdout=subprocess.PIPE, check=True).stdout
        paths = sorted(path for path in found.split(b"\0") if path and path not in leave_out)
        if not paths:
            return b""
        return subprocess.run(["xargs", "-0", "sha256sum", "--"], cwd=self.work, input=b"\0".join(paths),
                              stdout=subprocess.PIPE, check=True).stdout

    def check_sums(self):
        checked = subprocess.run(["sha256sum", "-c", "--quiet", "--strict", self.sums], cwd=self.work,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def wait_for(self, what):
        deadline = time.monotonic() + LIMIT
        while not what():
            self.assertLess(time.monotonic(), deadline, "what was waited for does not come")
            time.sleep(0.005)

    def row(self, result):
        """What the summary says, by its words."""
        said = re.search(r"(\S+) files: (\S+) listed \((\S+) from the store, (\S+) read\), (\S+) retries, (\S+) dead;",
                         result.err)
        names = ("files", "done", "stored", "read here", "retries", "dead")
        return {name: int(text.replace(",", "")) for name, text in zip(names, said.groups())}

    def slow_tree(self, files=40, size=50_000):
        for i in range(files):
            self.file(f"d{i % 3}/{i:03}", os.urandom(size))

    def wait_until_walked(self, process):
        """Reads progress until the number of files is final; gives the lines."""
        lines = []
        for line in iter(process.stderr.readline, b""):
            lines.append(line)
            if b" of " in line:
                return lines
        self.fail(f"it ended too soon: {lines}")

    def wait_until_some_is_done(self, process):
        line = self.wait_until_walked(process)[-1]
        while b" 0 of " in line:
            line = process.stderr.readline()


class Manifest(ManifestTest):
    def test_it_is_what_sha256sum_prints(self):
        self.file("a")
        self.file("empty", b"")
        self.file("large", os.urandom(3_000_001))
        self.file("d/e/f/g", b"deep")
        for name in (b"new\nline", b"carriage\rreturn", b"back\\slash", b"both\\\n", b"\xff\xfe", b"100%", b"%41",
                     b" lead", b"-n", b"tab\t", b"\x1b[31m", "grüß".encode(), b"*"):
            self.file(name, name)
            self.file(b"in " + name + b"/" + name, name)
        result = self.run_program(str(self.tree))
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.sums.read_bytes(), self.expected(str(self.tree)))
        self.check_sums()

    def test_the_folder_is_written_as_it_was_given(self):
        self.file("d/a")
        for given in ("../tree", "../tree/", "../tree//", ".././tree/d/..", str(self.tree) + "/d/a", "../tree/d"):
            with self.subTest(given):
                self.assertEqual(self.run_program(given).status, 0)
                self.assertEqual(self.sums.read_bytes(), self.expected(given))

    def test_a_large_tree(self):
        tree = "/usr/include"
        if not os.path.isdir(tree):
            self.skipTest("there is no " + tree)
        result = self.run_program("--plain")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.sums.read_bytes(), self.expected(tree))
        self.assertLess(result.err.count("\n"), 120)

    def test_an_empty_tree_has_an_empty_manifest(self):
        self.assertEqual(self.run_program("../tree").status, 0)
        self.assertEqual(self.sums.read_bytes(), b"")

    def test_links_are_not_followed_and_special_files_are_left_out(self):
        self.file("d/a")
        os.symlink("d", self.tree / "to_folder")
        os.symlink("d/a", self.tree / "to_file")
        os.symlink("..", self.tree / "d" / "loop")
        os.symlink("nowhere", self.tree / "dangling")
        os.mkfifo(self.tree / "pipe")
        self.assertEqual(self.run_program("../tree").status, 0)
        self.assertEqual(self.sums.read_bytes(), self.expected("../tree"))
        os.symlink("tree", self.base / "link")
        self.assertEqual(self.run_program("../link").status, 0)
        self.assertEqual(self.sums.read_bytes(), self.expected("../link"))
        self.assertEqual(self.sums.read_bytes().count(b"\n"), 1)

    def test_long_paths(self):
        long = "/".join(["n" * 200] * 8) + "/a"  # longer than a key may be
        self.file(long)
        self.file(long + "b")
        self.assertEqual(self.run_program("../tree").status, 0)
        self.assertEqual(self.sums.read_bytes(), self.expected("../tree"))

    def test_a_path_that_no_program_can_open_is_said(self):
        self.file("a")
        expected = self.expected("../tree")
        at = os.open(self.tree, os.O_RDONLY)
        for _ in range(30):
            os.mkdir("n" * 200, dir_fd=at)
            at, above = os.open("n" * 200, os.O_RDONLY, dir_fd=at), at
            os.close(above)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)
        result = self.run_program("../tree")
        self.assertEqual(result.status, 1, result.err)
        self.assertRegex(result.err, "not walked .*\n  ../tree/nnn.*: File name too long\n")
        self.assertEqual(self.sums.read_bytes(), expected)

    def test_what_cannot_be_read_is_a_dead_letter_and_all_else_is_listed(self):
        self.file("d/a")
        expected = self.expected("../tree")
        os.chmod(self.file("d/un\nreadable"), 0)
        self.file("closed/secret")
        self.file("unsearchable/named")
        self.own()
        os.chmod(self.tree / "closed", 0)
        os.chmod(self.tree / "unsearchable", 0o444)
        process = subprocess.Popen(self.command("../tree"), cwd=self.work, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **IDENTITY)
        result = self.finish(process)
        self.assertEqual(result.status, 1, result.err)
        self.assertIn("  ../tree/d/un\\x0Areadable: Permission denied\n", result.err)
        self.assertIn("  ../tree/unsearchable/named: Permission denied\n", result.err)
        self.assertIn("  ../tree/closed: Permission denied\n", result.err)
        self.assertEqual(self.sums.read_bytes(), expected)
        # Three attempts are two retries.
        row = self.row(result)
        self.assertEqual([row[name] for name in ("files", "done", "retries", "dead")], [3, 1, 4, 2])

    def test_attempts_are_counted(self):
        os.chmod(self.file("a"), 0)
        for attempts in (1, 2, 5):
            result = self.run_program("../tree", "--attempts", str(attempts))
            row = self.row(result)
            self.assertEqual([row[name] for name in ("files", "done", "retries", "dead")], [1, 0, attempts - 1, 1])

    def test_a_file_that_is_deleted_while_it_runs_is_a_dead_letter(self):
        self.slow_tree()
        process = self.start("../tree", "--rate", "300kB/s", "--workers", "2", "--open-files", "2")
        self.wait_until_walked(process)
        shutil.rmtree(self.tree / "d0")
        for path in (*self.tree.glob("d1/*"), *self.tree.glob("d2/*")):
            path.unlink()
        result = self.finish(process)
        self.assertEqual(result.status, 1, result.err)
        self.assertIn(": No such file or directory", result.err)
        row = self.row(result)
        self.assertEqual(row["files"], 40)
        self.assertEqual(row["done"] + row["dead"], 40)
        self.assertEqual(self.sums.read_bytes().count(b"\n"), row["done"])

    def test_a_file_that_changes_while_it_is_read_is_not_listed(self):
        self.file("still", b"x" * 1000)
        changing = self.file("changing", b"x" * 1_000_000)
        process = self.start("../tree", "--rate", "500kB/s", "--attempts", "2")
        ended = threading.Event()

        def change():
            while not ended.wait(0.01):
                with open(changing, "ab") as file:
                    file.write(b"y")

        changer = threading.Thread(target=change)
        changer.start()
        try:
            result = self.finish(process)
        finally:
            ended.set()
            changer.join()
        self.assertEqual(result.status, 1, result.err)
        self.assertIn("/changing: changed while it was read\n", result.err)
        self.assertEqual(self.sums.read_bytes().count(b"\n"), 1)
        self.check_sums()


class ManifestInMemory(Manifest):
    STORE = "memory"


class Resumption(ManifestTest):
    """What a sqlite store keeps from one run to the next, and between runs at the same time."""

    def stored_results(self):
        """How many files' checksums are in the store, by its own tables."""
        if not self.database.exists():
            return 0
        with self.as_the_program(), contextlib.closing(
                sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=LIMIT)) as db:
            try:
                return db.execute("SELECT count(*) FROM weir_jobs WHERE kept IS NOT NULL").fetchone()[0]
            except sqlite3.OperationalError:  # killed before the tables were made
                return 0

    @contextlib.contextmanager
    def as_the_program(self):
        """With the rights of its user: the files that SQLite puts beside a database are whose reader made them."""
        if not IDENTITY:
            yield
            return
        os.setegid(IDENTITY["group"])
        os.seteuid(IDENTITY["user"])
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def check_complete(self, result, directory="../tree"):
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.sums.read_bytes(), self.expected(directory))
        self.check_sums()

    def unread(self, directory):
        """Puts every file's time of last access before its time of modification, so that a read shows."""
        for folder, _, names in os.walk(directory):
            for name in names:
                path = os.path.join(folder, name)
                os.utime(path, ns=(1, os.stat(path).st_mtime_ns))

    def read_since(self, directory):
        return sum(os.stat(os.path.join(folder, name)).st_atime_ns != 1
                   for folder, _, names in os.walk(directory) for name in names)

    def kill_and_resume(self, directory, files, *arguments):
        """Kills runs at random moments until one reaches the end."""
        kills = 0
        for attempt in range(60):
            before = self.stored_results()
            self.unread(self.tree)
            # Half of the runs are killed early, the others anywhere; after enough kills one may end.
            process = self.start(directory, *(arguments if kills < 4 else ()))
            if kills < 4:
                if attempt % 2 == 0:
                    self.wait_for(lambda: process.poll() is not None or self.stored_results() > before)
                time.sleep(random.uniform(0.05, 0.4))
                process.kill()
            result = self.finish(process)
            # Nothing that is in the store is read again. (A file that was being read when its process died is.)
            self.assertLessEqual(self.read_since(self.tree), files - before)
            if result.status != 0:
                self.assertEqual(result.status, -signal.SIGKILL, result.err)
                self.assertFalse(self.sums.exists())
                kills += 1
                continue
            row = self.row(result)
            self.assertEqual(row["stored"], before)
            self.assertEqual(row["read here"], files - before)
            break
        print(f"{kills} kills; {before} of {files} were in the store at the last", file=sys.stderr)
        self.assertGreaterEqual(kills, 3)
        self.assertGreater(before, 0)
        self.check_complete(result, directory)

    def test_kill_9_at_any_moment_loses_nothing_and_lists_nothing_twice(self):
        self.slow_tree(files=600, size=5_000)
        self.kill_and_resume("../tree", 600, "--rate", "500kB/s")

    def test_kill_9_on_a_real_tree(self):
        source = next((path for path in ("/usr/include/c++", "/usr/include/linux", "/usr/include") if
                       os.path.isdir(path)), None)
        if source is None:
            self.skipTest("there is no /usr/include")
        found = subprocess.run(["find", source, "-type", "f"], stdout=subprocess.PIPE, check=True).stdout.splitlines()
        for i, path in enumerate(sorted(found)[:700]):
            self.file(os.fsencode(f"{i % 9}/") + os.path.relpath(path, os.fsencode(source)),
                      pathlib.Path(os.fsdecode(path)).read_bytes())
        size = sum(path.stat().st_size for path in self.tree.rglob("*") if path.is_file())
        self.kill_and_resume("../tree", len(sorted(found)[:700]), "--rate", f"{size // 3}B/s")

    def test_files_that_are_in_the_store_need_not_even_be_readable(self):
        self.slow_tree(files=20)
        self.check_complete(self.run_program("../tree"))
        expected = self.expected("../tree")
        for path in self.tree.glob("*/*"):
            path.chmod(0)
        result = self.run_program("../tree")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.row(result)["read here"], 0)
        self.assertEqual(self.sums.read_bytes(), expected)

    def test_a_file_that_changed_is_read_again(self):
        self.slow_tree(files=20)
        self.check_complete(self.run_program("../tree"))
        path = next(self.tree.glob("d0/*"))
        was = path.stat()
        path.write_bytes(os.urandom(was.st_size))  # the same size and inode, another time
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns + 1))
        other = next(self.tree.glob("d1/*"))
        was = other.stat()
        (self.tree / "new").write_bytes(os.urandom(was.st_size))  # the same size and time, another inode
        os.utime(self.tree / "new", ns=(was.st_atime_ns, was.st_mtime_ns))
        os.replace(self.tree / "new", other)
        result = self.run_program("../tree")
        self.check_complete(result)
        self.assertEqual(self.row(result)["read here"], 2)
        self.assertEqual(self.row(result)["stored"], 18)

    def test_a_file_that_changed_while_its_job_waited_is_read_as_it_is_now(self):
        self.slow_tree(files=60)
        process = self.start("../tree", "--rate", "200kB/s")
        self.wait_until_walked(process)
        process.kill()
        self.finish(process)
        was = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.tree.glob("*/*")}
        for path in was:
            path.write_bytes(b"changed " + os.fsencode(path.name))
        self.check_complete(self.run_program("../tree"))
        # What a waiting job of the earlier state read is read once more, and then known.
        self.check_complete(self.run_program("../tree"))
        result = self.run_program("../tree")
        self.check_complete(result)
        self.assertEqual(self.row(result)["stored"], 60)
        # And should a file become again what it was, then a result is not its own for the id alone.
        for path, (data, time_ns) in was.items():
            path.write_bytes(data)
            os.utime(path, ns=(time_ns, time_ns))
        self.check_complete(self.run_program("../tree"))

    def test_what_is_gone_is_not_listed(self):
        self.slow_tree(files=20)
        self.check_complete(self.run_program("../tree"))
        shutil.rmtree(self.tree / "d0")
        result = self.run_program("../tree")
        self.check_complete(result)
        self.assertEqual(self.row(result)["read here"], 0)

    def test_what_waits_and_is_gone_is_no_failure(self):
        self.slow_tree(files=60)
        process = self.start("../tree", "--rate", "200kB/s")
        self.wait_until_walked(process)
        process.kill()
        self.finish(process)
        shutil.rmtree(self.tree / "d0")
        self.check_complete(self.run_program("../tree"))

    def test_a_dead_letter_is_tried_again_by_the_next_run(self):
        self.slow_tree(files=5)
        self.file("secret")
        os.chmod(self.tree / "secret", 0)
        for _ in range(2):
            result = self.run_program("../tree", "--attempts", "2")
            self.assertEqual(result.status, 1, result.err)
            self.assertIn("/secret: Permission denied\n", result.err)
            self.assertEqual(self.row(result)["retries"], 1)
        os.chmod(self.tree / "secret", 0o644)
        result = self.run_program("../tree")
        self.check_complete(result)
        self.assertEqual(self.row(result)["read here"], 1)

    def test_fresh_reads_everything(self):
        self.slow_tree(files=20)
        for _ in range(2):
            result = self.run_program("../tree", "--fresh")
            self.check_complete(result)
            self.assertEqual(self.row(result)["read here"], 20)

    def test_fresh_takes_nothing_away_from_a_run(self):
        self.slow_tree(files=60)
        process = self.start("../tree", "--rate", "1MB/s", "-o", "other")
        self.wait_until_walked(process)
        self.check_complete(self.run_program("../tree", "--fresh"))
        self.assertEqual(self.finish(process).status, 0)
        self.assertEqual((self.work / "other").read_bytes(), self.expected("../tree"))

    def test_what_is_not_a_store_is_left_alone(self):
        self.slow_tree(files=2)
        with contextlib.closing(sqlite3.connect(self.database)) as db:
            db.execute("CREATE TABLE photos (name)")
            db.commit()
        before = self.database.read_bytes()
        for arguments in (["--fresh"], []):
            result = self.run_program("../tree", *arguments)
            self.assertEqual(result.status, 4, result.err)
            self.assertEqual(result.err.count("\n"), 1)
        self.assertEqual(self.database.read_bytes(), before)
        self.database.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
        self.assertEqual(self.run_program("../tree", "--fresh").status, 4)

    def test_a_store_in_its_own_tree_is_not_listed(self):
        self.file("a")
        self.database = self.tree / "jobs.db"
        for _ in range(2):
            self.assertEqual(self.run_program("../tree").status, 0)
            self.assertEqual(self.sums.read_bytes().count(b"\n"), 1)

    def test_two_trees_may_share_a_store(self):
        self.slow_tree(files=30)
        (self.base / "second" / "d0").mkdir(parents=True)
        for i in range(3):
            (self.base / "second" / "d0" / f"{i:03}").write_bytes(os.urandom(10))
        for directory in ("../tree", "../second", "../tree", str(self.tree)):
            self.check_complete(self.run_program(directory), directory)

    def test_two_processes_share_the_work_and_both_end_with_the_whole_manifest(self):
        files = 400
        self.slow_tree(files=files, size=5_000)
        self.unread(self.tree)
        first = self.start("../tree", "--rate", "1MB/s")
        second = self.start(str(self.tree), "--rate", "1MB/s", "-o", "other")
        results = [self.finish(first), self.finish(second)]
        rows = [self.row(result) for result in results]
        print([{name: row[name] for name in ("stored", "read here")} for row in rows], file=sys.stderr)
        for row in rows:
            self.assertEqual(row["done"], files)
            self.assertGreater(row["read here"], 0)
        # A lease that was over before its result was stored would be read twice, and counted twice.
        self.assertEqual(sum(row["read here"] for row in rows), files)
        self.check_complete(results[0])
        self.assertEqual(results[1].status, 0, results[1].err)
        self.assertEqual((self.work / "other").read_bytes(), self.expected(str(self.tree)))

    def test_one_of_two_processes_may_be_killed(self):
        self.slow_tree(files=200, size=5_000)
        first = self.start("../tree", "--rate", "300kB/s", "-o", "other")
        self.wait_until_walked(first)
        second = self.start("../tree", "--rate", "300kB/s")
        self.wait_until_walked(second)
        first.kill()
        self.finish(first)
        self.check_complete(self.finish(second))


class OnServer(ManifestTest):
    """Several processes on a server."""

    SERVER = None  # a class

    @classmethod
    def setUpClass(cls):
        cls.server = cls.SERVER()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def command(self, *arguments):
        return [PROGRAM, "--store", self.server.url(), *arguments]

    def start_three(self, *arguments):
        return [self.start(str(self.tree), "-o", f"sums{i}", *arguments) for i in range(3)]

    def check_all(self, results):
        expected = self.expected(str(self.tree))
        for i, result in enumerate(results):
            self.assertEqual(result.status, 0, result.err)
            self.sums = self.work / f"sums{i}"
            self.assertEqual(self.sums.read_bytes(), expected)
            self.check_sums()

    def test_three_processes_read_every_file_exactly_once(self):
        files = 400
        self.slow_tree(files=files, size=5_000)
        results = [self.finish(process) for process in self.start_three("--rate", "1MB/s")]
        rows = [self.row(result) for result in results]
        print([{name: row[name] for name in ("stored", "read here")} for row in rows], file=sys.stderr)
        for row in rows:
            self.assertEqual(row["done"], files)
            self.assertGreater(row["read here"], 0)
        self.assertEqual(sum(row["read here"] for row in rows), files)
        self.check_all(results)

    def test_one_of_three_is_killed_and_its_run_is_resumed(self):
        files = 300
        self.slow_tree(files=files, size=5_000)
        processes = self.start_three("--rate", "300kB/s")
        for process in processes:
            self.wait_until_walked(process)
        processes[0].kill()
        results = [self.finish(process) for process in processes]
        self.assertEqual(results[0].status, -signal.SIGKILL)
        self.assertFalse((self.work / "sums0").exists())
        # What it was reading when it died is read by another, once its lease is over.
        self.assertLess(sum(self.row(result)["read here"] for result in results[1:]), files)
        results[0] = self.run_program(str(self.tree), "-o", "sums0")
        self.assertEqual(self.row(results[0])["stored"], files)
        self.assertEqual(self.row(results[0])["read here"], 0)
        self.check_all(results)

    def test_all_are_killed_and_nothing_that_was_stored_is_read_again(self):
        files = 300
        self.slow_tree(files=files, size=5_000)
        processes = self.start_three("--rate", "300kB/s")
        for process in processes:
            self.wait_until_some_is_done(process)
        for process in processes:
            process.kill()
        for process in processes:
            self.finish(process)
        result = self.run_program(str(self.tree), "-o", "sums0")
        row = self.row(result)
        print(f"{row['stored']} of {files} were on the server", file=sys.stderr)
        self.assertGreater(row["stored"], 0)
        self.assertEqual(row["stored"] + row["read here"], files)
        self.check_all([result])

    def test_a_server_that_is_not_there_is_said(self):
        self.file("a")
        self.own()
        url = self.server.url().replace(f":{self.server.port}", ":1")
        process = subprocess.Popen([PROGRAM, "--store", url, str(self.tree)], cwd=self.work, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **IDENTITY)
        result = self.finish(process)
        self.assertEqual(result.status, 4, result.err)
        self.assertEqual(result.err.count("\n"), 1)

    def test_fresh_reads_everything(self):
        self.slow_tree(files=20)
        for _ in range(2):
            result = self.run_program(str(self.tree), "-o", "sums0", "--fresh")
            self.assertEqual(self.row(result)["read here"], 20)
            self.check_all([result])


class Output(ManifestTest):
    def test_a_manifest_in_its_own_tree_does_not_list_itself(self):
        self.file("a")
        self.sums = self.tree / "SHA256SUMS"
        other = os.fsencode(self.file("d/SHA256SUMS"))
        for _ in range(2):
            result = self.run_program(str(self.tree), "--output", "../tree/SHA256SUMS")
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(self.sums.read_bytes(), self.expected(str(self.tree), [os.fsencode(self.sums)]))
            self.assertIn(other, self.sums.read_bytes())
            self.check_sums()
        self.assertEqual(sorted(os.listdir(self.tree)), ["SHA256SUMS", "a", "d"])

    def test_standard_output_and_devices_take_it_too(self):
        self.file("a")
        expected = self.expected("../tree")
        self.assertEqual(self.run_program("../tree", "-o", "-").out, expected)
        os.mkfifo(self.work / "pipe")
        process = self.start("../tree", "--output=pipe")
        self.assertEqual((self.work / "pipe").read_bytes(), expected)
        self.assertEqual(self.finish(process).status, 0)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.work / "pipe").st_mode))
        self.assertEqual(os.listdir(self.work), ["pipe"])

    def test_an_output_that_cannot_be_written_is_said_before_the_work(self):
        self.file("a")
        for place in ("nowhere/SUMS", "../tree", "../tree/a/SUMS", "x" * 300):
            with self.subTest(place):
                result = self.run_program("../tree", "--output", place)
                self.assertEqual(result.status, 3)
                self.assertNotIn("files/s", result.err)
                self.assertEqual(result.err.count("\n"), 1)

    def test_a_full_disk_is_said(self):
        self.file("a")
        result = self.run_program("../tree", "--output", "/dev/full")
        self.assertEqual(result.status, 3)
        self.assertIn("No space left on device", result.err)

    def test_a_reader_that_went_away_is_said(self):
        self.file("a")
        reader, writer = os.pipe()
        os.close(reader)
        process = self.start("../tree", "-o", "-", stdout=writer)
        os.close(writer)
        self.assertEqual(self.finish(process).status, 3)

    def test_wrong_usage_leaves_the_old_manifest_alone(self):
        self.sums.write_bytes(b"before")
        self.file("a")
        for arguments in (["../nowhere"], ["--bogus"], ["a", "b"], ["--rate", "0"], ["--workers", "0"],
                          ["--store", "no"], ["--output"]):
            with self.subTest(arguments):
                result = self.run_program(*arguments)
                self.assertEqual(result.status, 2, result.err)
                self.assertTrue(result.err.startswith("manifest: "), result.err)
                self.assertEqual(self.sums.read_bytes(), b"before")
                self.assertEqual(os.listdir(self.work), ["SHA256SUMS"])

    def test_no_password_is_shown_and_no_escape_sequence(self):
        for arguments in (["--store", "redsi://me:secret@host"], ["a", "redis://me:secret@host"],
                          ["--store", "tls://me:secret@127.0.0.1:1"], ["--store", "\x1b[2Jno"]):
            with self.subTest(arguments):
                result = self.run_program(*arguments)
                self.assertNotEqual(result.status, 0)
                self.assertNotIn("secret", result.err)
                self.assertNotIn("\x1b", result.err)

    def test_help(self):
        result = self.run_program("--help")
        self.assertEqual(result.status, 0)
        self.assertTrue(result.out.startswith(b"Writes the SHA-256 checksum"))


class Limits(ManifestTest):
    def test_no_more_files_are_open_than_allowed(self):
        self.slow_tree(files=30, size=20_000)
        process = self.start("../tree", "--rate", "200kB/s", "--open-files", "3", "--workers", "8")
        most = 0
        while process.poll() is None:
            names = []
            try:
                for fd in os.listdir(f"/proc/{process.pid}/fd"):
                    names.append(os.readlink(f"/proc/{process.pid}/fd/{fd}"))
            except OSError:
                continue  # it was closed, or the program has ended
            most = max(most, sum(os.fspath(self.tree) in name and os.path.basename(name).isdigit() for name in names))
            time.sleep(0.002)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.err)
        self.assertGreater(most, 0)
        self.assertLessEqual(most, 3)
        self.assertEqual(self.sums.read_bytes(), self.expected("../tree"))

    def test_a_file_larger_than_the_budget_holds_is_read_at_the_rate(self):
        self.file("large", os.urandom(600_000))
        began = time.monotonic()
        result = self.run_program("../tree", "--rate", "300kB/s")
        took = time.monotonic() - began
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.sums.read_bytes(), self.expected("../tree"))
        self.assertGreater(took, 1.5)  # a promise of the rate limit, which no slow machine breaks


class Interruption(ManifestTest):
    def interrupted(self, number):
        self.slow_tree(files=200)
        process = self.start("../tree", "--rate", "2MB/s")
        self.wait_until_walked(process)
        process.send_signal(number)
        sent = time.monotonic()
        result = self.finish(process)
        print(f"ended {time.monotonic() - sent:.2f} s after the signal", file=sys.stderr)
        self.assertEqual(result.status, 130, result.err)
        lines = self.sums.read_bytes().count(b"\n")
        self.assertGreater(lines, 0)
        self.assertLess(lines, 200)
        self.check_sums()
        self.assertEqual(os.listdir(self.work), ["SHA256SUMS"])

    def test_Ctrl_C_ends_with_what_is_done_in_the_manifest(self):
        self.interrupted(signal.SIGINT)

    def test_SIGTERM_ends_with_what_is_done_in_the_manifest(self):
        self.interrupted(signal.SIGTERM)

    def test_the_second_Ctrl_C_ends_at_once_and_leaves_the_old_manifest(self):
        self.slow_tree(files=10, size=1_000_000)
        self.sums.write_bytes(b"before")
        process = self.start("../tree", "--rate", "100kB/s")
        self.wait_until_walked(process)
        process.send_signal(signal.SIGINT)
        for line in iter(process.stderr.readline, b""):
            if b"stopping" in line:
                break
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.status, -signal.SIGINT, result.err)  # a shell says 130
        self.assertEqual(self.sums.read_bytes(), b"before")
        self.assertEqual(os.listdir(self.work), ["SHA256SUMS"])

    def test_an_early_Ctrl_C_is_no_harm(self):
        self.slow_tree(files=10)
        for _ in range(20):
            process = self.start("../tree")
            time.sleep(0.01)  # anywhere in its life
            process.send_signal(signal.SIGINT)
            self.assertIn(self.finish(process).status, (130, 0, -signal.SIGINT))
            self.assertLessEqual(set(os.listdir(self.work)), {"SHA256SUMS"})


class Terminal(ManifestTest):
    def on_terminal(self, *arguments):
        self.own()
        master, slave = pty.openpty()
        process = subprocess.Popen(self.command(*arguments), cwd=self.work, stdin=subprocess.DEVNULL, stdout=slave,
                                   stderr=slave, env={**os.environ, "TERM": "xterm"}, **IDENTITY)
        os.close(slave)
        shown = read_terminal(master)
        os.close(master)
        self.assertIn(process.wait(timeout=LIMIT), (0, 1))
        return shown

    def test_a_bar_is_drawn_over_and_over(self):
        self.slow_tree(files=20, size=20_000)
        shown = self.on_terminal("../tree", "--rate", "400kB/s")
        self.assertGreater(shown.count(b"\r["), 3)
        self.assertIn(b"left", shown)
        self.assertIn(b"#", shown)
        plain = self.on_terminal("../tree", "--plain")
        self.assertNotIn(b"\x1b", plain)

    def test_no_name_reaches_the_terminal_raw(self):
        os.chmod(self.file(b"\x1b[31mred\x07\xc2\x9b\xff/\x1b]0;title\x07"), 0)
        shown = self.on_terminal("../tree", "--attempts", "1").replace(b"\x1b[K", b"")
        self.assertIn(b"\\x1B]0;title\\x07: Permission denied", shown)
        for byte in (b"\x1b", b"\x07", b"\xff", b"\x9b"):
            self.assertNotIn(byte, shown)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv.pop(1))
    servers = []
    if len(sys.argv) > 2 and sys.argv[1] == "--servers":
        servers = sys.argv.pop(2).split(",")
        sys.argv.pop(1)
    for name, kind in (("redis", RedisServer), ("postgres", PostgresServer), ("nats", NatsServer)):
        if name in servers:
            class_name = "On" + kind.__name__
            globals()[class_name] = type(class_name, (OnServer,), {"SERVER": kind})
    del OnServer  # it is none by itself
    home = tempfile.mkdtemp(prefix="weir-manifest-program-")
    try:
        os.chmod(home, 0o755)
        PROGRAM = shutil.copy(program, home)
        unittest.main(verbosity=2)
    finally:
        shutil.rmtree(home)
