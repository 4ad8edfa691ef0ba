# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Puts deliberate defects into a store's own headers, and sees that tests notice each.

  run.py BUILD LIST [--only NAME,...]   BUILD: a configured build folder; LIST: nats, for nats.py here

The defects of a list are compiled together, one program for each test, and one of them is chosen
when it runs; so it costs a compilation for each test and not for each defect. Neither the headers
nor the build folder are changed."""

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


def prepare(build, targets):
    """Builds what they need beside themselves: what all tests share, and what some start."""
    needed = set()
    for target in targets:
        said = subprocess.run(["ninja", "-C", build, "-t", "query", "test/" + target], check=True,
                              capture_output=True, text=True).stdout
        needed.update(re.findall(r"\|\| (\S+)", said))
    subprocess.run(["ninja", "-C", build, *sorted(needed)], check=True, stdout=subprocess.DEVNULL)


def commands(build, target):
    """How a test is compiled and linked there."""
    said = subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    source = next(c["file"] for c in json.loads((build / "compile_commands.json").read_text())
                  if c["file"].endswith("/" + target.replace(".", "/", 1) + ".cpp"))
    compile_ = next(line for line in said if line.endswith("-c " + source))
    link = next(line for line in reversed(said) if f"-o test/{target} " in line)
    return compile_, link


def build_one(build, target, folder):
    """Compiles and links a test with the defects. Gives the program."""
    compile_, link = commands(build, target)
    out, program = folder / (target + ".o"), folder / target
    match = re.search(r" -o (\S+\.o) ", compile_)
    compile_ = compile_.replace(f" -o {match[1]} ", f" -o {out} ").replace(
        " -I", f" -I{folder} -I", 1)
    compile_ = re.sub(r" -MF \S+", f" -MF {out}.d", compile_)
    # What was compiled before the tests has the headers without defects in it.
    compile_ = re.sub(r"( -Xclang)? -include(-pch)?( -Xclang)? \S*cmake_pch\S*", "", compile_)
    # So has what is compiled once, and is not taken from there if the test has it.
    compile_ = re.sub(r" -DWEIR_SEPARATE_COMPILATION\b", "", compile_)
    compile_ = re.sub(r" -Werror\b", "", compile_) + " -w"
    link = link.replace(match[1], str(out)).replace(f"-o test/{target} ", f"-o {program} ")
    for command in (compile_, re.sub(r"^: && | && :$", "", link)):
        done = subprocess.run(shlex.split(command), cwd=build, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr[-4000:])
    return program


def notices(program, case, mutant, seconds):
    """The first thing that the test complains about; empty: it does not."""
    environment = dict(os.environ, WEIR_MUTANT=mutant)
    try:
        done = subprocess.run([program, "--run_test=*/" + case, "--color_output=no"], text=True,
                              env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"it hangs: no end after {seconds} s"
    if done.returncode == 0:
        return ""
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
    prepare(build, targets)
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        overlay(module.MUTANTS, folder)
        for target in targets:
            program = build_one(build, target, folder)
            for case in sorted({c for m in mutants for c in m[5].get(target, [])}):
                if without := notices(program, case, "", asked.seconds):
                    print(f"  {target} {case} fails without a defect: {without}", flush=True)
                    survived += 1
            for mutant, defect, _, _, _, where in mutants:
                for case in where.get(target, []):
                    said = notices(program, case, mutant, asked.seconds)
                    survived += not said
                    print(f"  {defect}\n      {target} {case}: {said or 'SURVIVED'}", flush=True)
    print(f"  {len(mutants)} defects, {survived} not noticed")
    return survived != 0


if __name__ == "__main__":
    sys.exit(main())
