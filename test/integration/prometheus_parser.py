#!/usr/bin/env python3
"""Reads what the example metrics prints with Prometheus' own Python parsers, in both formats.

usage: prometheus_parser.py METRICS_PROGRAM
"""

import subprocess
import sys

try:
    from prometheus_client import parser
except ImportError:  # Debian's package is for Debian's interpreter, and this may be another one
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        from prometheus_client import parser
    except ImportError:
        sys.exit("this test needs prometheus_client: apt-get install python3-prometheus-client")
from prometheus_client.openmetrics import parser as openmetrics_parser

EXPECTED = {
    ("weir_commands_total", ("command", "enqueue_jobs"), ("result", "ok")): 3,
    ("weir_permits_total", ("result", "granted")): 1,
    ("weir_permits_total", ("result", "refused")): 1,
    ("weir_takes_total", ("result", "denied")): 1,
    ("weir_jobs_enqueued_total", ("outcome", "enqueued"), ("queue", "pictures")): 3,
    ("weir_jobs_claimed_total", ("queue", "pictures")): 3,
    ("weir_job_events_total", ("event", "completed"), ("kind", "resize"), ("queue", "pictures")): 2,
    ("weir_job_duration_seconds_count", ("kind", "resize"), ("queue", "pictures")): 3,
    ("weir_queue_jobs", ("queue", "pictures"), ("state", "dead")): 1,
    ("weir_limit_permits_in_use", ("limit", "model")): 1,
}


def read(program, form, families_of):
    text = subprocess.run([program, form], check=True, capture_output=True, text=True).stdout
    families = list(families_of(text))
    samples = {}
    for family in families:
        if family.type not in ("counter", "gauge", "histogram") or not family.documentation:
            raise SystemExit(f"{form}: {family.name} is {family.type}: {family.documentation!r}")
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            if key in samples:
                raise SystemExit(f"{form}: {key} is there twice")
            samples[key] = sample.value
    for key, value in EXPECTED.items():
        if samples.get(key) != value:
            raise SystemExit(f"{form}: {key} is {samples.get(key)} and not {value}\n{text}")
    for (name, *labels), value in samples.items():
        if name.endswith("_bucket") and ("le", "+Inf") in labels:
            rest = tuple(label for label in labels if label[0] != "le")
            count = samples[(name.removesuffix("_bucket") + "_count", *rest)]
            if count != value:
                raise SystemExit(f"{form}: {name}{rest}: {value} in all buckets, count {count}")
    print(f"{form}: {len(families)} families, {len(samples)} samples")


program = sys.argv[1]
read(program, "text", parser.text_string_to_metric_families)
read(program, "openmetrics", openmetrics_parser.text_string_to_metric_families)
