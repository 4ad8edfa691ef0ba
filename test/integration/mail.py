#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Runs the README's first program as it says: until its mail is sent, then to its end by SIGTERM; and once more on the same file.

usage: mail.py PROGRAM
"""

import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

LIMIT = 240  # seconds that nothing here should take: a test fails rather than hangs
SENT = ["enqueued", "started", "to ann@example.com", "completed"]


def sends_a_mail(program, folder):
    """What is wrong; nothing: all is well."""
    process = subprocess.Popen([program], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    guard = threading.Timer(LIMIT, process.kill)
    guard.start()
    try:
        said = []
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            if said[-1] == "completed":
                process.send_signal(signal.SIGTERM)
        status = process.wait()
    finally:
        guard.cancel()
        process.kill()
    # The worker may be told of the job before its enqueue is answered.
    if status != 0 or sorted(said) != sorted([*SENT, "the worker has ended"]) or said[-1] != "the worker has ended":
        return f"it said {said} and ended with {status}"
    return ""


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="weir-mail-") as folder:
        for time in ("the first", "the second"):
            if wrong := sends_a_mail(program, folder):
                print(f"{time} time {wrong}")
                return 1
        if not (pathlib.Path(folder) / "jobs.db").exists():
            print("there is no jobs.db")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
