# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Puts deliberate defects into a store's own headers, and sees that tests notice each.

  run.py BUILD LIST [--only NAME,...]   BUILD: a configured build folder; LIST: nats, for nats.py here

The defects of a list are compiled together, once, into what tests link of the store, and one of
them is chosen when a test runs. The headers are not changed."""

import argparse
import importlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include" / "weir"
SWITCH = """#pragma once
#include <cstdlib>
#include <cstring>
#include <type_traits>
namespace weir_mutant {
inline bool chosen(char const* name) {
  static char const* const one = std::getenv("WEIR_MUTANT");
  return one != nullptr && std::strcmp(one, name) == 0;
}
constexpr bool is(char const* name) {
  return !std::is_constant_evaluated() && chosen(name);
}
}  // namespace weir_mutant
"""


# How a text is changed where the defect is the chosen one.


def instead(new):
    """Other statements."""
    return lambda condition, old: f"if ({condition}) {{ {new} }} else {{ {old} }}"


def before(new):
    """Statements before it."""
    return lambda condition, old: f"if ({condition}) {{ {new} }}\n{old}"


def after(new):
    """Statements behind it."""
    return lambda condition, old: f"{old}\nif ({condition}) {{ {new} }}"


def value(new):
    """Another expression."""
    return lambda condition, old: f"({condition} ? ({new}) : ({old}))"


# The suite need not go on when it has noticed. Here, this is nobody's defect.
SOONER = ("", "", "testing/settings.hpp", "bool until_first_failure = false;",
          lambda _, old: old.replace("false", "true"), {})


def overlay(mutants, folder):
    """Writes the headers with all defects in them."""
    texts, changed = {}, {}
    for name, _, header, old, change, _ in [*mutants, SOONER]:
        text = texts.setdefault(header, (INCLUDE / header).read_text())
        if text.count(old) != 1:
            sys.exit(f"{header}: this does not stand there once, but {text.count(old)} times: {old}")
        key = header, old
        changed[key] = change(f'weir_mutant::is("{name}")', changed.get(key, old))
    for (header, old), new in changed.items():
        texts[header] = texts[header].replace(old, new)
    for header, text in texts.items():
        to = folder / "weir" / header
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text.replace("#define ", '#include "weir_mutant.hpp"\n#define ', 1))
    (folder / "weir_mutant.hpp").write_text(SWITCH)


def commands(build, target):
    """The commands that make a target, the last ones first."""
    return subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True,
                          capture_output=True, text=True).stdout.splitlines()[::-1]


def run(build, command):
    command = re.sub(r"^: && | && :$", "", command)
    done = subprocess.run(shlex.split(command), cwd=build, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-4000:])


def compile_store(build, store, mutants, folder):
    """Compiles what of a store is compiled once, with all defects. Gives the object file."""
    source = str(build / f"weir_compiled_{store}.cpp")
    command = next(c["command"] for c in json.loads((build / "compile_commands.json").read_text())
                   if c["file"] == source)
    out = folder / "store.o"
    command = re.sub(r" -o \S+\.o ", f" -o {out} ", command)
    command = re.sub(r" -M[FT]? \S+| -MD", "", command.replace(" -I", f" -I{folder} -I", 1))
    # What was compiled before has the headers without defects in it.
    command = re.sub(r"( -Xclang)? -include(-pch)?( -Xclang)? \S*cmake_pch\S*", "", command)
    run(build, re.sub(r" -Werror\b", "", command) + " -w")
    compiled = out.read_bytes()
    nowhere = [name for name, *_ in mutants if b"\0" + name.encode() + b"\0" not in compiled]
    if nowhere:
        sys.exit("defects of code that is compiled nowhere: " + ", ".join(nowhere))
    return out


def program_of(build, test):
    """The program of a test, and the suite of it that is the test; empty: all of it."""
    known = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    program, *options = next(t for t in json.loads(known)["tests"] if t["name"] == test)["command"]
    suite = [o.removeprefix("--run_test=") + "/" for o in options if o.startswith("--run_test=")]
    return pathlib.Path(program).name, "".join(suite)


def link(build, target, store, folder):
    """Links a program of tests with the defects. Gives the file."""
    program = folder / target
    if program.exists():
        return program
    command = next(c for c in commands(build, "test/" + target) if f"-o test/{target} " in c)
    command = command.replace(f"-o test/{target} ", f"-o {program} ")
    # First, so that its functions are taken and not those of the test that are inline.
    run(build, re.sub(r" (\S+\.o) ", rf" {store} \1 ", command, count=1))
    return program


def notices(program, cases, mutant, seconds):
    """The first thing that the cases complain about; empty: they do not."""
    environment = dict(os.environ, WEIR_MUTANT=mutant)
    try:
        done = subprocess.run([program, "--run_test=" + cases, "--color_output=no"], text=True,
                              env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"it hangs: no end after {seconds} s"
    if done.returncode == 0:
        return ""
    if done.returncode == 99:
        sys.exit(f"{mutant}: what it changes is not there")
    said = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line]
    return (said or ["it ends with %d" % done.returncode])[0].split("error: ")[-1]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("list")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--seconds", type=int, default=90)
    asked = arguments.parse_args()
    sys.path.insert(0, str(HERE))
    module = importlib.import_module(asked.list)
    only = asked.only.split(",") if asked.only else None
    mutants = [m for m in module.MUTANTS if only is None or m[0] in only]
    build = asked.build.resolve()
    targets = sorted({target for m in mutants for target in m[5]})
    subprocess.run(["ninja", "-C", build, *targets], check=True, stdout=subprocess.DEVNULL)
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        overlay(module.MUTANTS, folder)
        store = compile_store(build, asked.list, module.MUTANTS, folder)
        for target in targets:
            name, suite = program_of(build, target)
            program = link(build, name, store, folder)
            for case in sorted({c for m in mutants for c in m[5].get(target, [])}):
                if without := notices(program, suite + "*/" + case, "", asked.seconds):
                    print(f"  {target} {case} fails without a defect: {without}", flush=True)
                    survived += 1
            for mutant, defect, _, _, _, where in mutants:
                for case in where.get(target, []):
                    said = notices(program, suite + "*/" + case, mutant, asked.seconds)
                    survived += not said
                    print(f"  {defect}\n      {target} {case}: {said or 'SURVIVED'}", flush=True)
    print(f"  {len(mutants)} defects, {survived} not noticed")
    return survived != 0


if __name__ == "__main__":
    sys.exit(main())
