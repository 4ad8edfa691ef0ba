#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Holds weir's traces and metrics to OpenTelemetry's messaging conventions, as a receiver of OTLP gets them.

usage: traces.py --scenarios PROGRAM [--example PROGRAM]

The programs export by the SDK's own exporter to a receiver here, as OTLP/JSON.
"""

import argparse
import collections
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading

INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = 1, 2, 3, 4, 5
KINDS = {"create": {PRODUCER}, "send": {PRODUCER, CLIENT}, "receive": {CLIENT}, "settle": {CLIENT}, "process": {CONSUMER}}


class Receiver:
    """Of OTLP by HTTP, on a free port."""

    def __init__(self):
        self.got = collections.defaultdict(list)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Type"] != "application/json":
                    raise SystemExit(f"not JSON: {self.headers['Content-Type']}")
                receiver.got[self.path].append(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def run(self, *command):
        address = f"http://127.0.0.1:{self.server.server_port}"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_") and not k.endswith("_proxy")}
        environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
        self.server.shutdown()
        self.server.server_close()
        if done.returncode != 0:
            raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout


def decoded(value):
    (kind, inner), = value.items()
    return int(inner) if kind == "intValue" else inner


def attributes(of):
    out = {}
    for item in of.get("attributes", []):
        require(item["key"] not in out, f"{item['key']} is there once")
        out[item["key"]] = decoded(item["value"])
    return out


def require(holds, what):
    if not holds:
        raise SystemExit(f"does not hold: {what}")


def equal(got, wanted, what):
    require(got == wanted, f"{what}: {got!r}, not {wanted!r}")


class Span:
    def __init__(self, scope, raw):
        self.scope, self.name, self.kind = scope, raw["name"], raw["kind"]
        self.trace, self.id, self.parent = raw["traceId"], raw["spanId"], raw.get("parentSpanId", "")
        self.begin, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
        self.failed = raw.get("status", {}).get("code") == 2
        self.message = raw.get("status", {}).get("message", "")
        self.attributes = attributes(raw)
        self.links = [(link["traceId"], link["spanId"], attributes(link).get("messaging.message.id"),
                       link.get("traceState", "")) for link in raw.get("links", [])]
        self.events = [event["name"] for event in raw.get("events", [])]

    def __getitem__(self, key):
        return self.attributes.get("messaging." + key)

    def links_to(self, *others, ids=False):
        wanted = sorted((o.trace, o.id, o["message.id"] if ids else None, "") for o in others)
        equal(sorted(self.links, key=str), sorted(wanted, key=str), f"links of {self.name}")

    def is_child_of(self, other):
        equal((self.trace, self.parent), (other.trace, other.id), f"parent of {self.name}")

    def is_root(self):
        equal(self.parent, "", f"parent of {self.name}")


class Spans:
    def __init__(self, receiver):
        self.all = [Span(scope["scope"]["name"], raw) for body in receiver.got["/v1/traces"]
                    for resource in body["resourceSpans"] for scope in resource["scopeSpans"]
                    for raw in scope["spans"]]
        equal(len({s.id for s in self.all}), len(self.all), "span ids")

    def named(self, name, count=None):
        found = sorted((s for s in self.all if s.name == name), key=lambda s: s.begin)
        require(found if count is None else len(found) == count, f"spans named {name}: {len(found)}, not {count}")
        return found

    def one(self, name):
        return self.named(name, 1)[0]


def by_the_conventions(spans):
    """Holds for every span of weir's."""
    partitions = {}
    for s in spans.all:
        if s.scope != "weir":
            continue
        equal(s["system"], "weir", f"system of {s.name}")
        name, template = s["destination.name"], s["destination.template"]
        require((name is None) != (template is None), f"{s.name} has a name or a template: {s.attributes}")
        equal(s.name, f"{s['operation.name']} {name or template or ''}".strip(), "span name")
        require(s.kind in KINDS[s["operation.type"]], f"kind of {s.name}: {s.kind}")
        require((s["message.id"] is None) != (s["batch.message_count"] is None), f"{s.name} is of one message or many")
        require(s["batch.message_count"] != 1, f"{s.name} is of one message")
        equal("error.type" in s.attributes, s.failed, f"{s.name} failed: {s.message}")
        require(s.begin <= s.end, f"{s.name} ends after it began")
        if s["destination.partition.id"] is not None:
            equal(partitions.setdefault(name or template, s["destination.partition.id"]),
                  s["destination.partition.id"], f"partition of {s.name}")
            require(0 <= int(s["destination.partition.id"]) < 1024, f"partition of {s.name}")
        if s["operation.type"] == "process":
            require(s["weir.job.kind"] in ("task", "walk", "stall", "baton", "resize") and s["weir.job.attempt"] >= 1, f"job of {s.name}")
    return partitions


def failed(span, error_type, message=None):
    equal(span.attributes.get("error.type"), error_type, f"error.type of {span.name}")
    if message is not None:
        equal(span.message, message, f"status of {span.name}")


def one_job(spans):
    request, enqueue = spans.one("request"), spans.one("enqueue request")
    process, complete = spans.one("process request"), spans.one("complete request")
    # A worker may claim a job for which it has no hand by then, and return it.
    dequeues = spans.named("dequeue request")
    enqueue.is_child_of(request)
    equal(enqueue.kind, PRODUCER, "kind of an enqueue whose context goes with the job")
    equal(enqueue.links, [], "links of an enqueue whose context goes with the job")
    for span in (*dequeues, process, complete):
        span.links_to(enqueue)
        equal(span["message.id"], enqueue["message.id"], f"message of {span.name}")
    for dequeue in dequeues:
        dequeue.is_root()
    process.is_root()
    require(process.trace != enqueue.trace, "a process span begins a trace")
    complete.is_child_of(process)
    require(enqueue["message.id"].count("-") == 4, "a message's id is a UUID")


def several_jobs(spans):
    creates, enqueue = spans.named("create several", 3), spans.one("enqueue several")
    by_id = {s["message.id"]: s for s in creates}
    equal(len(by_id), 3, "create spans are of one message each")
    equal(enqueue.kind, CLIENT, "kind of an enqueue whose jobs have create spans")
    equal(enqueue["batch.message_count"], 3, "messages of an enqueue")
    enqueue.links_to(*creates, ids=True)
    for dequeue in spans.named("dequeue several"):
        if dequeue["batch.message_count"] == 3:
            dequeue.links_to(*creates, ids=True)
    for process in spans.named("process several", 3):
        process.links_to(by_id.pop(process["message.id"]))
    returns = spans.named("return several")
    for one in returns:
        one.is_root()
    lost = [s for s in returns if s.failed]
    equal(len(lost), 1, "leases that are lost")
    failed(lost[0], "lease_lost", "the lease is over")
    linked = {link[1] for s in returns for link in s.links}
    equal(linked, {s.id for s in creates}, "links of what was returned")


def contexts(spans):
    """Of the application's own, and without room."""
    theirs = [("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", None, "a=b")]
    equal(spans.one("enqueue given").kind, CLIENT, "kind of an enqueue of a job that has a context")
    for op in ("enqueue", "dequeue", "process", "complete"):
        for span in spans.named(f"{op} given"):
            equal(span.links, theirs, f"links of {op} given")
    enqueue = spans.one("enqueue full")
    equal(enqueue.events, ["no room for the trace context"], "events of an enqueue without room")
    equal(spans.one("process full").links, [], "links of a job that has no context")
    spans.one("complete full").is_child_of(spans.one("process full"))
    for op in ("enqueue", "dequeue", "process", "complete"):
        for span in spans.named(op + " tenant/{id}"):
            equal(span["destination.template"], "tenant/{id}", "template")
    require(not any("zeta" in str(s.attributes) for s in spans.all), "no tenant is named")
    equal([s.name for s in spans.all if s["destination.name"] == "empty"], [], "spans of dequeues that found nothing")
    failed(spans.one("enqueue"), "invalid_queue")


def fates(spans):
    first, second = spans.named("process fails once", 2)
    failed(first, "std::runtime_error", "the first time")
    equal((first["weir.job.attempt"], second["weir.job.attempt"]), (1, 2), "attempts")
    requeue = spans.one("requeue fails once")
    equal((requeue["weir.outcome"], requeue.failed), ("requeued", False), "outcome of a requeue")
    requeue.is_child_of(first)
    spans.one("complete fails once").is_child_of(second)
    for span in (first, second, requeue):
        span.links_to(spans.one("enqueue fails once"))
    require(first.trace != second.trace, "each attempt has a trace of its own")

    for span in spans.named("process fails", 2):
        failed(span, "std::out_of_range", "always")
    equal([s["weir.outcome"] for s in spans.named("requeue fails", 2)], ["requeued", "dead_lettered"], "outcomes")

    failed(spans.one("process is buried"), "weir::give_up", "never")
    spans.one("bury is buried").is_child_of(spans.one("process is buried"))

    snoozed = spans.named("process is snoozed", 2)
    equal([(s["weir.outcome"], s.failed) for s in snoozed], [("snoozed", False), (None, False)], "a snooze")
    spans.one("snooze is snoozed").is_child_of(snoozed[0])

    for span in spans.named("process is refused", 2):
        failed(span, "store_full")

    failed(spans.one("process stalls"), "operation_aborted")
    equal(spans.one("requeue stalls")["weir.outcome"], "dead_lettered", "outcome of a time-out")


def coroutines(spans):
    steps = collections.Counter()
    for step in spans.named("step", 20):
        process, = [s for s in spans.all if s.id == step.parent]
        equal((process.name, process.trace), ("process walks", step.trace), "where a step belongs")
        require(process.begin <= step.begin and step.end <= process.end, "a step is within its span")
        steps[process.id] += 1
    equal(sorted(steps.values()), [5, 5, 5, 5], "steps of each handler")


def passed_on(spans):
    """Headers with the context of the job that is processed."""
    first, enqueue = spans.one("process batons"), spans.one("enqueue passed")
    first.links_to(spans.one("enqueue batons"))
    equal(enqueue.kind, PRODUCER, "kind of an enqueue by a handler")
    equal(enqueue.links, [], "links of an enqueue by a handler")
    enqueue.is_child_of(first)
    spans.one("process passed").links_to(enqueue)


def parents(spans):
    enqueue = spans.one("enqueue direct")
    equal((enqueue.kind, enqueue.links), (PRODUCER, []), "an enqueue without create spans")
    require(not [s for s in spans.all if s.name == "create direct"], "there are no create spans")
    for process in spans.named("process direct", 2):
        process.is_child_of(enqueue)
        process.links_to(enqueue)


def measured(receiver, spans):
    """Each operation once, under the names of the conventions."""
    got = collections.Counter()
    units = {}
    for body in receiver.got["/v1/metrics"]:
        for resource in body["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    units[metric["name"]] = metric["unit"]
                    points = (metric.get("histogram") or metric.get("sum"))["dataPoints"]
                    for p in points:
                        a = attributes(p)
                        equal(a.get("messaging.system"), "weir", "system")
                        key = (metric["name"], a["messaging.operation.name"],
                               a.get("messaging.destination.template") or a["messaging.destination.name"],
                               a.get("error.type"))
                        # Each export has all that was measured so far.
                        got[key] = max(got[key], int(p["count"] if "histogram" in metric else p["asInt"]))
    equal(units, {"messaging.client.operation.duration": "s", "messaging.process.duration": "s",
                  "messaging.client.sent.messages": "{message}",
                  "messaging.client.consumed.messages": "{message}"}, "units")
    wanted = collections.Counter()
    for s in spans.all:
        if s.scope != "weir" or s["operation.type"] == "create":
            continue
        key = (s["operation.name"], s["destination.template"] or s["destination.name"], s.attributes.get("error.type"))
        messages = s["batch.message_count"] or 1
        kind = s["operation.type"]
        wanted["messaging.process.duration" if kind == "process" else "messaging.client.operation.duration", *key] += 1
        if kind == "send":
            wanted["messaging.client.sent.messages", *key] += messages
        if kind == "receive":
            wanted["messaging.client.consumed.messages", *key] += messages
    for key in got.keys() | wanted.keys():
        equal(got[key], wanted[key], f"measurements of {key}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", required=True)
    parser.add_argument("--example")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for store in ("memory", str(pathlib.Path(folder) / "jobs.db")):
            receiver = Receiver()
            receiver.run(chosen.scenarios, store)
            spans = Spans(receiver)
            partitions = by_the_conventions(spans)
            require("request" in partitions and "direct" not in partitions, f"partitions: {partitions}")
            for part in (one_job, several_jobs, contexts, fates, coroutines, passed_on, parents):
                part(spans)
            measured(receiver, spans)
            print(f"{store.rpartition('/')[2]}: {len(spans.all)} spans")
    if chosen.example:
        receiver = Receiver()
        equal(receiver.run(chosen.example), "a.png\n", "output of the example")
        spans = Spans(receiver)
        by_the_conventions(spans)
        equal(sorted(s.name for s in spans.all),
              [f"{op} pictures" for op in ("complete", "dequeue", "enqueue", "process")], "spans of the example")
        spans.one("process pictures").links_to(spans.one("enqueue pictures"))
        equal(spans.one("process pictures").events, ["resized"], "events of the example")
        print(f"the example: {len(spans.all)} spans")


main()
