#!/usr/bin/env python3
"""Holds the house together: which of weir's headers may include which.

usage: include_direction.py [INCLUDE_DIR]     check the headers (default: ours)
       include_direction.py --self-test       check that this script rejects what it should

Exits with 1 and one line per violation if there are any.
"""

import fnmatch
import pathlib
import re
import sys
import tempfile

# Which layer a header belongs to: the first pattern that matches its path below include/.
LAYERS = [
    ("weir.hpp", "umbrella"),
    ("weir/src.hpp", "umbrella"),
    ("weir/testing/model/*", "model"),
    ("weir/testing/conformance/*", "conformance"),
    ("weir/testing/*", "testing"),
    ("weir/store/*", "store"),
    ("weir/command/*", "command"),
    ("weir/rule/*", "rule"),
    ("weir/table/*", "table"),
    ("weir/schedule/*", "schedule"),
    ("weir/scheduler/*", "worker"),
    ("weir/clock/*", "clock"),
    ("weir/backoff/*", "backoff"),
    ("weir/detail/*", "detail"),
    ("weir/worker/*", "worker"),
    ("weir/observe/*", "observe"),
    ("weir/console/*", "console"),
    ("weir/lease/*", "primitive"),  # what limiter and uniqueness share
    ("weir/*/*", None),  # a folder that the house does not have
    ("weir/concept.hpp", "concept"),
    ("weir/execute.hpp", "detail"),  # concepts put to use, by primitives and stores
    ("weir/engine_store.hpp", "detail"),
    ("weir/owned_command.hpp", "detail"),  # what authors of stores use
    ("weir/parking.hpp", "detail"),
    ("weir/posting.hpp", "detail"),
    ("weir/limiter.hpp", "primitive"),
    ("weir/uniqueness.hpp", "primitive"),
    ("weir/bucket.hpp", "primitive"),
    ("weir/rate_limiter.hpp", "primitive"),
    ("weir/enqueue.hpp", "primitive"),  # what a queue and a transaction share
    ("weir/job_queue.hpp", "primitive"),
    ("weir/worker.hpp", "worker"),
    ("weir/registered_worker.hpp", "worker"),
    ("weir/job_context.hpp", "worker"),  # what it hands over goes with the worker's renewals
    ("weir/schedules.hpp", "worker"),
    ("weir/scheduler.hpp", "worker"),
    ("weir/console.hpp", "console"),
    ("weir/explain.hpp", "console"),
    ("weir/*", "value"),
    ("*", None),
]

# What each layer may include, itself among it: values <- command <- rule <- concept <- {clock,
# backoff, detail} <- primitives <- worker. Within the braces, detail serves the other two. "leaf"
# is a detail header that itself includes nothing but values, leaves and pure headers (see below),
# whoever wrote it. "store" means the same store only.
MAY_INCLUDE = {
    "value": "value leaf",
    "schedule": "value leaf schedule",
    "command": "value leaf command",
    "rule": "value leaf command rule",
    "table": "value leaf command rule table",
    "concept": "value leaf command rule concept",
    "detail": "value leaf command rule concept detail",
    "clock": "value leaf command rule concept detail clock",
    "backoff": "value leaf command rule concept detail backoff",
    "primitive": "value leaf command rule concept detail clock backoff primitive",
    "worker": "value leaf command rule schedule concept detail clock backoff primitive worker",
    "store": "value leaf command rule table concept detail clock backoff store",
    "observe": "value leaf command rule concept detail clock worker observe",
    "console": "value leaf command schedule concept detail clock primitive worker console",
    "testing": "*",
    # What judges the stores shares no code with the rules that they are made of (F66).
    "model": "value leaf command model",
    "conformance": "value leaf command concept model testing conformance",
    "umbrella": "value leaf command rule table concept detail clock backoff primitive worker store",
}

# The umbrella header has no optional dependency, so of the stores it may include only this one.
UMBRELLA_STORES = {"memory"}

# Headers from outside: (pattern, layers that may include it, why the others may not).
EXTERNAL = [
    ("boost/asio.hpp", "", "it costs every user half a second: include the narrow Asio headers"),
    ("boost/asio/*timer*.hpp", "clock testing", "only clock/ knows timers"),
]

# Whatever a rule reaches is pure: the standard library and these, less the I/O libraries. A leaf
# may ask the platform, too.
PURE = ["boost/*", "nlohmann/*"]
PLATFORM = ["pthread.h", "sys/random.h", "unistd.h"]
IMPURE = [
    "boost/asio*",
    "boost/beast*",
    "boost/cobalt*",
    "boost/mysql*",
    "boost/process*",
    "boost/redis*",
]

# --------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r"^\s*#\s*include\s*(.*?)\s*(?://.*|/\*.*)?$", re.MULTILINE)
BLOCK_COMMENT = re.compile(r"^\s*/\*.*?\*/", re.MULTILINE | re.DOTALL)


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def layer_of(path):
    return next(layer for pattern, layer in LAYERS if fnmatch.fnmatchcase(path, pattern))


def store_of(path):
    """weir/store/redis.hpp and weir/store/redis/jobs.hpp are both of the store redis."""
    return path.split("/")[2].removesuffix(".hpp")


def is_pure(external):
    standard = "/" not in external and "." not in external
    return standard or (matches(external, PURE) and not matches(external, IMPURE))


class House:
    def __init__(self, root):
        self.own = {}  # path -> [(line, path of ours)]
        self.external = {}  # path -> [(line, path of others)]
        self.errors = []
        self.leaves = {}
        self.root = pathlib.Path(root)
        for file in sorted(self.root.rglob("*.hpp")):
            self.read(file.relative_to(self.root).as_posix())

    def error(self, path, line, text):
        self.errors.append(f"{path}:{line}: {text}")

    def read(self, path):
        text = (self.root / path).read_text(encoding="utf-8")
        text = BLOCK_COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
        own, external = self.own.setdefault(path, []), self.external.setdefault(path, [])
        for include in INCLUDE.finditer(text):
            line = text.count("\n", 0, include.start(1)) + 1
            named = include.group(1)
            if len(named) < 3 or named[0] + named[-1] not in ('""', "<>"):
                self.error(path, line, f"what does `#include {named}` include?")
                continue
            named = named[1:-1]
            if named == "weir.hpp" or named.startswith("weir/"):
                if (self.root / named).is_file():
                    own.append((line, named))
                else:
                    self.error(path, line, f"there is no {named}")
            elif (self.root / path).parent.joinpath(named).is_file() or named.startswith("."):
                self.error(path, line, f"{named}: write the path from include/")
            else:
                external.append((line, named))

    def is_leaf(self, path):
        if path not in self.leaves:
            self.leaves[path] = True  # while we look: a cycle is reported as such, not here
            self.leaves[path] = all(
                is_pure(named) or matches(named, PLATFORM) for _, named in self.external[path]
            ) and all(
                layer_of(named) == "value" or layer_of(named) == "detail" and self.is_leaf(named)
                for _, named in self.own[path]
            )
        return self.leaves[path]

    def may_include(self, path, named):
        layer, other = layer_of(path), layer_of(named)
        allowed = MAY_INCLUDE[layer].split()
        if allowed == ["*"]:
            return True
        if other == "detail" and "leaf" in allowed and self.is_leaf(named):
            return True
        if other not in allowed:
            return False
        if other == "store":
            if layer == "umbrella":
                return store_of(named) in UMBRELLA_STORES
            return store_of(named) == store_of(path)
        return True

    def check(self):
        for path in self.own:
            layer = layer_of(path)
            if layer is None:
                self.error(path, 1, "has no place in the house")
                continue
            for line, named in self.own[path]:
                other = layer_of(named)
                if other is not None and not self.may_include(path, named):
                    self.error(path, line, f"{layer} may not include {named} ({other})")
            for line, named in self.external[path]:
                for pattern, layers, why in EXTERNAL:
                    if fnmatch.fnmatchcase(named, pattern) and layer not in layers.split():
                        self.error(path, line, f"{layer} may not include <{named}>: {why}")
            if layer == "rule":
                self.check_pure(path)
        self.check_cycles()
        return self.errors

    def check_pure(self, rule):
        """A rule decides: neither it nor what it includes does I/O."""
        seen, todo = {rule}, [(rule, rule)]
        while todo:
            path, way = todo.pop()
            for line, named in self.external[path]:
                if not is_pure(named):
                    at = line if path == rule else 1
                    self.error(rule, at, f"rule reaches <{named}> by {way}")
            for _, named in self.own[path]:
                if named not in seen:
                    seen.add(named)
                    todo.append((named, f"{way} > {named}"))

    def check_cycles(self):
        done, way = set(), []

        def visit(path):
            if path in way:
                cycle = way[way.index(path) :] + [path]
                self.error(path, 1, "includes itself: " + " > ".join(cycle))
            elif path not in done:
                way.append(path)
                for _, named in self.own[path]:
                    visit(named)
                way.pop()
                done.add(path)

        for path in self.own:
            visit(path)


# --------------------------------------------------------------------------------------------------

GOOD = {
    "weir.hpp": ["weir/worker.hpp", "weir/store/memory.hpp"],
    "weir/time.hpp": ["chrono"],
    "weir/error.hpp": ["boost/system/error_code.hpp", "weir/detail/leaf.hpp"],
    "weir/lease.hpp": ["weir/time.hpp", "weir/detail/leaf.hpp"],
    "weir/schedule/tick.hpp": ["weir/time.hpp", "weir/schedule/zone.hpp"],
    "weir/schedule/zone.hpp": ["chrono"],
    "weir/command/permits.hpp": ["weir/lease.hpp"],
    "weir/rule/permits.hpp": ["weir/command/permits.hpp", "weir/detail/leaf.hpp"],
    "weir/table/job_shard.hpp": ["weir/rule/permits.hpp"],
    "weir/concept.hpp": ["weir/command/permits.hpp", "boost/asio/async_result.hpp"],
    "weir/clock/system.hpp": [
        "weir/concept.hpp",
        "weir/detail/lift.hpp",
        "boost/asio/steady_timer.hpp",
    ],
    "weir/backoff/capped.hpp": ["weir/concept.hpp", "weir/time.hpp", "weir/backoff/constant.hpp"],
    "weir/id_source.hpp": ["weir/detail/platform_leaf.hpp"],
    "weir/backoff/constant.hpp": ["weir/time.hpp"],
    "weir/detail/leaf.hpp": [
        "cstdint",
        "weir/detail/other_leaf.hpp",
        "weir/time.hpp",
        "boost/hash2/sha2.hpp",
    ],
    "weir/detail/other_leaf.hpp": ["array"],
    "weir/detail/platform_leaf.hpp": ["pthread.h"],
    "weir/detail/lift.hpp": ["weir/concept.hpp", "boost/asio/post.hpp"],
    "weir/detail/asio_leaf.hpp": ["boost/asio/post.hpp"],
    "weir/limiter.hpp": [
        "weir/clock/system.hpp",
        "weir/backoff/capped.hpp",
        "weir/detail/lift.hpp",
    ],
    "weir/job_queue.hpp": ["weir/lease.hpp", "weir/rule/permits.hpp"],
    "weir/worker.hpp": ["weir/limiter.hpp", "weir/job_queue.hpp"],
    "weir/store/memory.hpp": ["weir/store/memory/permits.hpp", "weir/clock/system.hpp"],
    "weir/store/memory/permits.hpp": ["weir/rule/permits.hpp", "weir/detail/lift.hpp"],
    "weir/store/redis.hpp": ["weir/concept.hpp", "boost/asio/ssl/stream.hpp"],
    "weir/testing/faulty_store.hpp": ["weir/store/memory.hpp", "weir/limiter.hpp"],
    "weir/testing/model/permits.hpp": ["weir/command/permits.hpp", "weir/lease.hpp"],
    "weir/testing/conformance/permits.hpp": ["weir/testing/model/permits.hpp", "weir/concept.hpp"],
}

BAD = [  # (header, what it includes on top of GOOD, part of the complaint)
    ("weir/time.hpp", "weir/command/permits.hpp", "value may not include weir/command/permits.hpp"),
    ("weir/time.hpp", "weir/concept.hpp", "value may not include"),
    ("weir/error.hpp", "weir/detail/lift.hpp", "value may not include"),
    ("weir/error.hpp", "weir/detail/asio_leaf.hpp", "value may not include"),
    ("weir/command/permits.hpp", "weir/rule/permits.hpp", "command may not include"),
    ("weir/rule/permits.hpp", "weir/concept.hpp", "rule may not include"),
    ("weir/rule/permits.hpp", "boost/asio/post.hpp", "rule reaches <boost/asio/post.hpp>"),
    ("weir/lease.hpp", "boost/asio/any_io_executor.hpp", "weir/rule/permits.hpp:1: rule reaches"),
    ("weir/rule/permits.hpp", "weir/id_source.hpp", "rule reaches <pthread.h>"),
    ("weir/rule/permits.hpp", "unistd.h", "rule reaches <unistd.h>"),
    ("weir/lease.hpp", "sqlite3.h", "weir/rule/permits.hpp:1: rule reaches"),
    ("weir/rule/permits.hpp", "weir/clock/system.hpp", "rule may not include"),
    ("weir/concept.hpp", "weir/detail/lift.hpp", "concept may not include"),
    ("weir/concept.hpp", "weir/limiter.hpp", "concept may not include"),
    ("weir/schedule/tick.hpp", "weir/command/permits.hpp", "schedule may not include"),
    ("weir/clock/system.hpp", "weir/backoff/constant.hpp", "clock may not include"),
    ("weir/backoff/constant.hpp", "weir/clock/system.hpp", "backoff may not include"),
    ("weir/detail/lift.hpp", "weir/clock/system.hpp", "detail may not include"),
    ("weir/detail/lift.hpp", "weir/job_queue.hpp", "detail may not include"),
    ("weir/detail/lift.hpp", "weir/store/memory.hpp", "detail may not include"),
    ("weir/limiter.hpp", "weir/worker.hpp", "primitive may not include"),
    ("weir/limiter.hpp", "weir/store/memory.hpp", "primitive may not include"),
    ("weir/worker.hpp", "weir/store/memory.hpp", "worker may not include"),
    ("weir/worker.hpp", "weir.hpp", "worker may not include"),
    ("weir/store/memory.hpp", "weir/limiter.hpp", "store may not include"),
    ("weir/table/job_shard.hpp", "weir/concept.hpp", "table may not include"),
    ("weir/limiter.hpp", "weir/table/job_shard.hpp", "primitive may not include"),
    ("weir/store/redis.hpp", "weir/store/memory.hpp", "store may not include"),
    ("weir/store/memory/permits.hpp", "weir/store/redis.hpp", "store may not include"),
    ("weir/limiter.hpp", "weir/testing/faulty_store.hpp", "primitive may not include"),
    ("weir/store/memory.hpp", "weir/testing/faulty_store.hpp", "store may not include"),
    ("weir.hpp", "weir/testing/faulty_store.hpp", "umbrella may not include"),
    ("weir/testing/model/permits.hpp", "weir/rule/permits.hpp", "model may not include"),
    ("weir/testing/model/permits.hpp", "weir/table/job_shard.hpp", "model may not include"),
    ("weir/testing/model/permits.hpp", "weir/store/memory.hpp", "model may not include"),
    ("weir/testing/model/permits.hpp", "weir/testing/faulty_store.hpp", "model may not include"),
    ("weir/testing/conformance/permits.hpp", "weir/rule/permits.hpp", "conformance may not include"),
    ("weir.hpp", "weir/store/redis.hpp", "umbrella may not include"),
    ("weir/concept.hpp", "boost/asio.hpp", "include the narrow Asio headers"),
    ("weir/testing/faulty_store.hpp", "boost/asio.hpp", "include the narrow Asio headers"),
    ("weir/limiter.hpp", "boost/asio/steady_timer.hpp", "only clock/ knows timers"),
    ("weir/store/redis.hpp", "boost/asio/basic_waitable_timer.hpp", "only clock/ knows timers"),
    ("weir/time.hpp", "weir/lease.hpp", "includes itself"),
    ("weir/time.hpp", "weir/nowhere.hpp", "there is no weir/nowhere.hpp"),
    ("weir/lease.hpp", "time.hpp", "write the path from include/"),
    ("weir/lease.hpp", "../weir/time.hpp", "write the path from include/"),
    ("weir/lease.hpp", "MACRO", "what does `#include MACRO` include?"),
    ("weir/policy/key.hpp", "string", "has no place in the house"),
    ("other.hpp", "string", "has no place in the house"),
]


def complaints(headers):
    with tempfile.TemporaryDirectory() as root:
        for path, includes in headers.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = ["// #include <boost/asio.hpp>", "/*", "#include <boost/asio.hpp>", "*/"]
            for named in includes:
                quoted = f'"{named}"' if named.startswith(("weir", ".", "time")) else f"<{named}>"
                lines.append(f"#include {named if named == 'MACRO' else quoted} // why")
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return House(root).check()


def self_test():
    failures = [f"a good tree is refused: {complaint}" for complaint in complaints(GOOD)]
    for path, named, expected in BAD:
        found = complaints({**GOOD, path: GOOD.get(path, []) + [named]})
        if not any(expected in complaint for complaint in found):
            failures.append(f"{path} including {named} is not refused as '{expected}': {found}")
    for failure in failures:
        print(failure)
    print(f"include direction: self-test of {len(BAD)} violations: {len(failures)} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    ours = pathlib.Path(__file__).parents[2] / "include"
    root = pathlib.Path(arguments[0]) if arguments else ours
    if not root.is_dir():
        sys.exit(f"{root} is not a directory")
    house = House(root)
    errors = house.check()
    for error in errors:
        print(error)
    print(f"include direction: {len(house.own)} headers, {len(errors)} violations")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
