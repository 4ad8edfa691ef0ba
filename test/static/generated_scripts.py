#!/usr/bin/env python3
"""Makes the headers of the engines' scripts from the .lua and .sql files beside them, and of the
console's style and script from its .css and .js.

usage: generated_scripts.py              check that the headers are what the files say
       generated_scripts.py --fix        write the headers
       generated_scripts.py --expand DIR write each Lua script into DIR as its server gets it
       generated_scripts.py --self-test  check that this script rejects what it should

`weir.limits.key_size` in a script is `weir::limits::key_size` in C++: its number or text stands
there in the header. Every definition that is used is asserted in the header, so that C++ which says
something else does not compile. There is more to name:

  weir.ENUM.last                 the last enumerator
  weir.CONSTANT.magnitude        without its sign
  weir.PREDICATE.strategies      numbers of the strategies that it is true for; .others: of the rest
  weir.PREDICATE.by_strategy     true or false for each strategy but the first
  weir.RECORD.FIELD              where a field of big-endian numbers begins, counted from 1
  weir.RECORD.size, .after       how long the record is, and where the byte after it is
  weir.RECORD.form               how Lua packs it; .form_to_FIELD: up to this field
  weir.enum.NAME                 columns of a row, in the order of an enumeration

`---` begins a comment that the engine does not get, and `--\\` ends a line that goes on in the next.
In Lua, `---@part NAME` begins a part in shared/, and `---@use NAME, NAME` puts parts into a script;
`NAME()` among them puts in a whole script, as a function NAME of KEYS and ARGV. What follows `---@each`
is done for each of several calls that travel as one (shared/together.lua).
In SQL, `weir.NAME` is what the schema has under that name.
"""

import pathlib
import re
import shutil
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include" / "weir"
LUA, SQL, WEB = "store/redis/script", "store/postgres/schema", "console/web"
# A migration makes these, in this order.
SCHEMA = ["tables", "past", "base", "leases", "buckets", "floors", "pointers", "queues", "jobs", "claims", "dequeue"]
# What append_sql fills in.
FILLED = ["job_bytes", "function_settings", "hot_table", "jobs_table", "ended_table"]
# Where scripts find definitions: (header, which generated headers include it).
DEFINITIONS = {
    "limits.hpp": "lua sql",
    "unique.hpp": "lua sql",
    "job.hpp": "lua sql",
    "command/jobs.hpp": "lua sql",
    "rule/jobs.hpp": "lua sql",
    "rule/shards.hpp": "sql",
    "rule/bucket_scale.hpp": "sql",
    "store/redis/script.hpp": "lua",
    "store/redis/job_record.hpp": "lua",
    "store/postgres/job_row.hpp": "sql",
    "store/postgres/permit_step.hpp": "sql",
}

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)
ENUM = re.compile(r"^enum class (\w+) : [\w:]+ \{(.*?)^\};", re.M | re.S)
COLUMNS = re.compile(r"^class (\w+) \{(?:(?!^class).)*?^  enum : int \{(.*?)\};", re.M | re.S)
CONSTANT = re.compile(r"^( *)(?:inline|static) constexpr ([\w:]+)\s+(\w+)\s*=\s*([^;]*);", re.M)
STRUCT = re.compile(r"^struct (\w+) \{(.*?)^\};", re.M | re.S)
FIELD = re.compile(r"^  boost::endian::big_(?:u?int)(\d+)_t (\w+);", re.M)
PREDICATE = re.compile(r"constexpr bool (\w+)\(unique_strategy s\) noexcept \{\s*return (.*?);\s*\}",
                       re.S)
COMMENT = re.compile(r"//[^\n]*")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')

LINE_GOES_ON = re.compile(r" *--\\\n\s*")
OWN_COMMENT = re.compile(r"^---(?!@).*\n", re.M)
PART = re.compile(r"^---@part (\w+)\n", re.M)
USE = re.compile(r"^---@use (.*)\n", re.M)
EACH = re.compile(r"^---@each\n", re.M)
NAME = re.compile(r"\bweir((?:\.\w+)+)")


class Wrong(Exception):
    """Something that a script, or this script, cannot mean."""


def number_of(expression):
    """An integer constant as C++ writes it; durations in nanoseconds."""
    text = re.sub(r"std::chrono::hours\{(.*?)\}", r"(\1) * 3600000000000", expression)
    text = re.sub(r"[\w:]+\{(.*?)\}", r"(\1)", text.replace("'", ""))
    if not re.fullmatch(r"[\d\s()+*<-]+", text):
        return None
    return eval(text)  # digits and operators


def assert_number(name, kind, value):
    if kind == "duration":
        name += ".count()"
    if abs(value) < 1 << 63:
        return f"static_assert({name} == {value});"
    shift = abs(value).bit_length() - 1
    if abs(value) != 1 << shift:
        raise Wrong(f"{name}: {value} is too large to be asserted")
    return f"static_assert({name} == {'-' if value < 0 else ''}({kind}{{1}} << {shift}));"


# Columns of a job that who claims it does not read: they are not sent.
NOT_OF_A_LEASE = ("progress", "reason", "result")


class Definitions:
    """What scripts may name: {path: (text, assertions)}."""

    def __init__(self, include, language):
        self.known = {}
        self.predicates = {}
        self.headers = [h for h, languages in DEFINITIONS.items() if language in languages.split()]
        for header in self.headers:
            self.read(COMMENT.sub("", read(include / header)))
        self.add_predicates()

    def add(self, path, text, *assertions):
        self.known[path] = str(text), assertions

    def read(self, text):
        scopes = [s for s in NAMESPACE.findall(text) if s.startswith("weir") and "detail" not in s]
        scope = "".join(s + "::" for s in scopes[:1])[len("weir::"):]
        path = scope.replace("::", ".")
        for name, body in ENUM.findall(text):
            each = [e.strip() for e in body.split(",") if e.strip()]
            for value, enumerator in enumerate(each):
                if not enumerator.isidentifier():
                    raise Wrong(f"{name}: {enumerator} has a value of its own")
                asserted = f"static_assert(static_cast<int>({scope}{name}::{enumerator}) == {value});"
                self.add(f"{path}{name}.{enumerator}", value, asserted)
            self.known[f"{path}{name}.last"] = self.known[f"{path}{name}.{each[-1]}"]
        for name, body in COLUMNS.findall(text):
            each = [e.strip() for e in body.split(",") if e.strip()]
            asserted = [f"static_assert({name}::{e} == {i});" for i, e in enumerate(each)]
            for form, left_out, part, death in (
                    ("columns", (), "NULL::integer", "NULL::bigint"),
                    ("of_a_letter", (), "NULL::integer", "j.death"),
                    ("of_a_lease", NOT_OF_A_LEASE, "NULL::integer", "NULL::bigint"),
                    ("of_a_part", NOT_OF_A_LEASE, "j.part", "NULL::bigint")):
                columns = (death if e == "death" else "''::bytea" if e in left_out else "j." + e
                           for e in each[1:-1])
                self.add(f"{name}.{form}", ", ".join((*columns, part)), *asserted)
        structs = STRUCT.findall(text)
        for indent, kind, name, value in CONSTANT.findall(text):
            full, dotted = scope + name, path + name
            if indent:
                owner = next((s for s, body in structs if f" {name} = {value};" in body), None)
                if owner is None:
                    continue
                full, dotted = f"{scope}{owner}::{name}", f"{path}{owner}.{name}"
            if "string_view" in kind:
                said = "".join(STRING.findall(value))
                self.add(dotted, said, f'static_assert({full} == "{said}");')
            elif (number := number_of(value)) is not None:
                kind = scope + kind if kind == "bucket_units" else kind
                self.add(dotted, number, assert_number(full, kind, number))
                self.add(dotted + ".magnitude", abs(number), assert_number(full, kind, number))
        for name, body in structs:
            if fields := FIELD.findall(body):
                self.add_record(name, fields)
        self.predicates.update({name: (scope, " ".join(body.split()))
                                for name, body in PREDICATE.findall(text)})

    def add_record(self, record, fields):
        form, at, asserted = ">", 0, []
        for bits, field in fields:
            size = int(bits) // 8
            asserted.append(f"static_assert(offsetof({record}, {field}) == {at});")
            self.add(f"{record}.{field}", at + 1, asserted[-1])
            form += "B" if size == 1 else f"I{size}"
            at += size
            self.add(f"{record}.form_to_{field}", form, *asserted)
        asserted.append(f"static_assert(sizeof({record}) == {at});")
        self.add(f"{record}.form", form, *asserted)
        self.add(f"{record}.size", at, asserted[-1])
        self.add(f"{record}.after", at + 1, asserted[-1])

    def add_predicates(self):
        names = [p.split(".")[1] for p in self.known
                 if p.startswith("unique_strategy.") and not p.endswith(".last")]

        def holds(predicate, strategy):
            text = self.predicates[predicate][1]
            text = re.sub(r"unique_strategy::(\w+)", lambda m: str(names.index(m[1])), text)
            text = re.sub(r"(\w+)\(s\)", lambda m: str(holds(m[1], strategy)), text)
            text = text.replace("&&", " and ").replace("||", " or ")
            return bool(eval(text, {"__builtins__": {}}, {"s": strategy}))

        for predicate, (scope, _) in self.predicates.items():
            each = [holds(predicate, s) for s in range(len(names))]
            path = scope.replace("::", ".") + predicate
            asserted = [f"static_assert({'' if true else '!'}{scope}{predicate}(unique_strategy{{{s}}}));"
                        for s, true in enumerate(each)]
            self.add(path + ".strategies", ", ".join(str(s) for s, t in enumerate(each) if t), *asserted)
            self.add(path + ".others", ", ".join(str(s) for s, t in enumerate(each) if not t), *asserted)
            self.add(path + ".by_strategy", ", ".join(str(t).lower() for t in each[1:]), *asserted)


class Script:
    """One text in which definitions are filled in. Notes what has to be asserted."""

    def __init__(self, definitions, asserted):
        self.definitions, self.asserted = definitions, asserted

    def fill(self, text, where, others=lambda path: None):
        def filled(m):
            path = m[1][1:]
            if path in self.definitions.known:
                value, assertions = self.definitions.known[path]
                self.asserted.update(dict.fromkeys(assertions))
                return value
            if (other := others(path)) is not None:
                return other
            raise Wrong(f"{where}: there is no {m[0]}")

        return NAME.sub(filled, LINE_GOES_ON.sub(" ", OWN_COMMENT.sub("", text)))


def header(folder, kind, includes, asserted, body):
    guard = f"WEIR_{folder.upper().replace('/', '_')}_GENERATED_HPP"
    lines = [
        "// Copyright (c) 2026 The weir authors",
        "// Distributed under the Boost Software License, Version 1.0. "
        "(See LICENSE or https://www.boost.org/LICENSE_1_0.txt)",
        "",
        f"// Made from the {kind} files beside it by `./dev generate`: change those, not this.",
        "// clang-format off",
        "",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(f'#include "weir/{h}"' for h in sorted(includes)),
        "",
        "#include <cstddef>",
        "",
        f"namespace weir::detail::{body[0]} {{",
        "",
        *sorted(asserted),
        "",
        *body[1],
        f"}}  // namespace weir::detail::{body[0]}",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def literal(text, kind):
    end = f'){kind}"'
    if end in text:
        raise Wrong(f"a script has {end} in it")
    return f'R"{kind}({text}{end}'


def read(path):
    return path.read_text(encoding="utf-8")


class Lua:
    """The scripts of the Redis store: {name: [part or text]}, and the parts: {name: text}."""

    # What stands around that which is done for each of several calls; and for one alone.
    FRAME = ("together", "one_by_one")
    ALONE = "\nlocal together\n"

    def __init__(self, include):
        self.definitions = Definitions(include, "lua")
        self.asserted, self.parts, self.scripts = {}, {}, {}
        script = Script(self.definitions, self.asserted)
        for path in sorted((include / LUA / "shared").glob("*.lua")):
            pieces = self.split(PART, path)
            for name, text in zip(pieces[::2], pieces[1::2]):
                if name in self.parts:
                    raise Wrong(f"{path.name}: there is another part {name}")
                self.parts[name] = self.framed(script.fill(text, path.name))
        for path in sorted((include / LUA).glob("*.lua")):
            self.scripts[path.stem] = self.made(path, script)
        used = {n for pieces in self.scripts.values() for n, _ in pieces}
        used.update(self.FRAME)
        if unused := sorted(set(self.parts) - used):
            raise Wrong(f"nothing uses the part {unused[0]}")

    def made(self, path, script):
        pieces, out, own = self.split(USE, path), [], set()
        for used, text in zip(pieces[::2], pieces[1::2]):
            for name in (n.strip() for n in used.split(",")):
                if name in own:
                    raise Wrong(f"{path.name}: {name} is used twice")
                own.add(name)
                if name.endswith("()"):
                    out.append((None, self.framed(f"local function {name[:-2]}(KEYS, ARGV)")))
                    out += self.made(path.with_name(f"{name[:-2]}.lua"), script)
                    out.append((None, self.framed("end")))
                elif name in self.parts:
                    out.append((name, self.parts[name]))
                else:
                    raise Wrong(f"{path.name}: there is no part {name}")
            once, *each = EACH.split(script.fill(text, path.name))
            for i, text in enumerate((once, *each)):
                if i:
                    out.append(("each", None))
                if text := text.strip("\n"):
                    out.append((None, self.framed(text)))
        if len([n for n, _ in out if n == "each"]) > 1:
            raise Wrong(f"{path.name}: more than one @each")
        return out

    def halves(self, pieces):
        """What is done once, and what for each; the second is None where calls travel alone."""
        at = next((i for i, (n, _) in enumerate(pieces) if n == "each"), None)
        return (pieces, None) if at is None else (pieces[:at], pieces[at + 1:])

    @staticmethod
    def split(by, path):
        before, *pieces = by.split(read(path))
        if not pieces or OWN_COMMENT.sub("", before).strip():
            raise Wrong(f"{path.name}: it does not begin with what it uses, or a part")
        return pieces

    @staticmethod
    def framed(text):
        return "\n" + text.strip("\n") + "\n"

    def header(self):
        lines = []
        for name, text in self.parts.items():
            lines += [f"inline constexpr char part_{name}[] = {literal(text, 'lua')};", ""]
        for name, pieces in self.scripts.items():
            said = [", ".join(f"part_{n}" if n else literal(t, "lua") for n, t in half)
                    for half in self.halves(pieces) if half is not None]
            said = [f"{{{half}}}" for half in said]
            if len(said) == 2:
                said += [f"part_{n}" for n in self.FRAME]
            lines += [f"inline redis_script const& {name}() {{",
                      f"  static redis_script const script({', '.join(said)});",
                      "  return script;", "}", ""]
        return header(LUA, ".lua", self.definitions.headers, self.asserted, ("lua", lines))

    def expand(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.lua"):
            old.unlink()
        for name, pieces in self.scripts.items():
            once, each = ("".join(t for _, t in half) if half is not None else None
                          for half in self.halves(pieces))
            texts = {name: once}
            if each is not None:
                begin, end = (self.parts[n] for n in self.FRAME)
                texts = {name: once + self.ALONE + each, name + ".each": once + begin + each + end}
            for stem, text in texts.items():
                (folder / f"{stem}.lua").write_text(text, encoding="utf-8")


class Sql:
    """The schema of the PostgreSQL store: {file: text}."""

    def __init__(self, include):
        self.definitions = Definitions(include, "sql")
        self.asserted, self.texts = {}, {}
        script = Script(self.definitions, self.asserted)
        files = sorted((include / SQL).glob("*.sql"))
        made = {name for path in files
                for name in re.findall(r"^CREATE (?:(?:UNLOGGED )?\w+ weir\.|INDEX )(\w+)", read(path), re.M)}
        settings = {name for path in files
                    for name in re.findall(r"_(?:setting|config)\('weir\.(\w+)'", read(path))}

        def others(path):
            if path in FILLED:
                return "{" + path + "}"
            if path in settings:
                return "weir." + path
            return "~." + path if path.split(".")[0] in made else None

        for path in files:
            text = read(path).replace("SET weir.function_settings TO DEFAULT", "weir.function_settings")
            text = script.fill(text, path.name, others).replace("'weir'", "'~'")
            self.texts[path.stem] = "\n" + text.strip("\n") + "\n"
        if missing := set(SCHEMA) - set(self.texts):
            raise Wrong(f"there is no {sorted(missing)[0]}.sql")

    def header(self):
        lines = []
        for name, text in self.texts.items():
            lines += [f"inline constexpr char {name}[] = {literal(text, 'sql')};", ""]
        lines += [f"inline constexpr char const* whole[] = {{{', '.join(SCHEMA)}}};", ""]
        return header(SQL, ".sql", self.definitions.headers, self.asserted, ("pgsql", lines))


class Web:
    """The style and the script of the console's page, as they are."""

    def __init__(self, include):
        self.texts = {path.name.replace(".", "_"): (read(path), path.suffix[1:])
                      for path in sorted((include / WEB).glob("page.*"))}

    def header(self):
        lines = []
        for name, (text, kind) in self.texts.items():
            lines += [f"inline constexpr char {name}[] = {literal(text, kind)};", ""]
        return header(WEB, ".css and .js", [], {}, ("web", lines))


def check(include, fix):
    wrong = []
    for made, folder in (Lua, LUA), (Sql, SQL), (Web, WEB):
        try:
            text = made(include).header()
        except Wrong as problem:
            wrong.append(f"{folder}: {problem}")
            continue
        path = include / folder / "generated.hpp"
        if path.exists() and read(path) == text:
            continue
        if fix:
            path.write_text(text, encoding="utf-8")
        else:
            wrong.append(f"{folder}/generated.hpp is not what the files beside it say: ./dev generate")
    return wrong


# A header or a script, what of it is changed, and part of the complaint.
DEFECTS = [
    ("limits.hpp", "payload_size = 1 << 20", "payload_size = 1 << 21", "is not what the files"),
    ("unique.hpp", "  none,", "  some,\n  none,", "is not what the files"),
    ("unique.hpp", "s == unique_strategy::while_executing ||", "", "is not what the files"),
    ("unique.hpp", "  none,", "  none = 1,", "none = 1 has a value of its own"),
    ("rule/jobs.hpp", "its deadline was missed", "it came too late", "is not what the files"),
    ("store/redis/job_record.hpp", "uint32_t attempts", "uint16_t attempts", "is not what the files"),
    ("store/postgres/job_row.hpp", "    priority,\n    state,", "    state,\n    priority,",
     "is not what the files"),
    (f"{LUA}/take.lua", "bucket", "buckle", "there is no part buckle"),
    (f"{LUA}/refund.lua", "bucket, buckets", "bucket, bucket", "bucket is used twice"),
    (f"{LUA}/shards.lua", "---@use common", "", "it does not begin with what it uses"),
    (f"{LUA}/refund.lua", "---@each", "---@each\n---@each", "more than one @each"),
    (f"{LUA}/shared/locks.lua", "lease_of", "lease_by", "there is no part lease_of"),
    (f"{LUA}/shared/common.lua", "---@part tell", "---@part rest\n---@part tell",
     "nothing uses the part rest"),
    (f"{LUA}/cancel_job.lua", "cancel_outcome.ended", "cancel_outcome.over",
     "there is no weir.cancel_outcome.over"),
    (f"{SQL}/jobs.sql", "weir.limits.memo_size", "weir.limits.memory",
     "there is no weir.limits.memory"),
    (f"{SQL}/jobs.sql", "weir.keys", "weir.locks_and_keys", "there is no weir.locks_and_keys"),
    (f"{WEB}/page.js", "'use strict';", "", "is not what the files"),
    (f"{SQL}/jobs.sql", "-- Ends", "-- Breaks", "is not what the files"),
]


def self_test():
    failures = [f"what is there is refused: {complaint}" for complaint in check(INCLUDE, False)]
    for name, old, new, expected in DEFECTS:
        with tempfile.TemporaryDirectory() as folder:
            include = pathlib.Path(folder, "weir")
            shutil.copytree(INCLUDE, include)
            text = read(include / name)
            if old not in text:
                failures.append(f"{name}: there is no {old}")
            (include / name).write_text(text.replace(old, new), encoding="utf-8")
            found = check(include, False)
            if not any(expected in complaint for complaint in found):
                failures.append(f"{name} with {new} is not refused as '{expected}': {found}")
    for failure in failures:
        print(failure)
    print(f"generated scripts: self-test of {len(DEFECTS)} defects: {len(failures)} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) == 2 and arguments[0] == "--expand":
        Lua(INCLUDE).expand(pathlib.Path(arguments[1]))
        return 0
    if arguments not in ([], ["--fix"]):
        sys.exit(__doc__)
    wrong = check(INCLUDE, arguments == ["--fix"])
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
