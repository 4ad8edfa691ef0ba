#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Lets a Prometheus server scrape what the example metrics prints, in both formats, with docs/alerts.yml as its rules.

usage: prometheus_server.py METRICS_PROGRAM
"""

import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 120  # seconds that nothing here should take: it fails rather than hangs
TYPES = {"text": "text/plain; version=0.0.4; charset=utf-8",
         "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8"}
# What the program has done, by queries; each of both targets.
EXPECTED = {
    "up": 1,
    'weir_commands_total{command="enqueue_jobs",result="ok"}': 3,
    'weir_jobs_claimed_total{queue="pictures"}': 3,
    'weir_job_events_total{queue="pictures",kind="resize",event="completed"}': 2,
    'weir_queue_jobs{queue="pictures",state="dead"}': 1,
    'weir_limit_permits_in_use{limit="model"}': 1,
    'histogram_quantile(1, sum by (le, instance) (weir_job_duration_seconds_bucket)) > bool 0': 1,
}
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: weir
    static_configs: [{{targets: [{targets}]}}]
"""


def served(program, form):
    text = subprocess.run([program, form], check=True, capture_output=True).stdout

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", TYPES[form])
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def asked(address, path, **parameters):
    with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as reply:
        return json.load(reply)["data"]


def wait_for(what, condition, server):
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"Prometheus has ended with {server.returncode}")
        try:
            if condition():
                return
        except OSError:  # it does not listen yet
            pass
        time.sleep(0.1)
    sys.exit(f"never: {what}")


def main():
    prometheus = shutil.which("prometheus") or shutil.which("prometheus", path=ROOT / ".deps/prometheus/usr/bin")
    if not prometheus:
        sys.exit("this test needs a Prometheus server, of Debian's package prometheus: ./dev setup fetches it")
    targets = [served(sys.argv[1], form) for form in TYPES]
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "prometheus.yml"
        config.write_text(CONFIG.format(rules=json.dumps(str(ROOT / "docs/alerts.yml")),
                                        targets=", ".join(map(json.dumps, targets))))
        log = open(pathlib.Path(folder) / "log", "w+")
        server = subprocess.Popen([prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address={address}"], stdout=log, stderr=log, cwd=folder)
        try:
            for query, value in EXPECTED.items():
                def holds():
                    found = asked(address, "query", query=query)["result"]
                    return sorted((r["metric"]["instance"], float(r["value"][1])) for r in found) == \
                        sorted((target, value) for target in targets)
                wait_for(query, holds, server)
            wait_for("rules that were evaluated without an error", lambda: all(
                rule["health"] == "ok" for group in asked(address, "rules")["groups"] for rule in group["rules"])
                and len(asked(address, "rules")["groups"]) > 0, server)
            rules = sum(len(group["rules"]) for group in asked(address, "rules")["groups"])
            bad = [t["lastError"] for t in asked(address, "targets")["activeTargets"] if t["health"] != "up"]
            if bad or rules != 10:
                sys.exit(f"{bad}, {rules} rules")
            print(f"Prometheus has scraped both formats, and evaluated {rules} alerts")
        finally:
            server.terminate()
            server.wait(LIMIT)
            log.close()


main()
