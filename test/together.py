#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Writes the sources of a program of many test files: what five of them have in common is compiled once.

usage: together.py OUT TEST.cpp ...     write OUT_0.cpp of the first five, OUT_5.cpp of the next
       together.py --self-test

What stands in STEM.cpp becomes a suite of Boost.Test, file_STEM, which `--run_test=file_STEM` runs, and so has a
namespace of its own. Only a file's head stays as it is: its includes, and what comes before the end of its last
specialisation of a template of weir's, or of the last namespace that has a name. The names in the heads must differ."""

import pathlib
import re
import sys
import tempfile


def head(lines):
    """How many lines stay as they are."""
    end = 0
    for line in lines:
        if line.strip() and not line.startswith(("#", "//")):
            break
        end += 1
    specialises = False
    for number, line in enumerate(lines, 1):
        specialises = specialises or re.match(r"(struct|class) \w+::.*<", line)
        if specialises and re.match(r"\S.*;$", line) or re.match(r"}  // namespace \w", line):
            end, specialises = number, False
    return end


def together(files):
    heads, suites = [], []
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        end = head(lines)
        if any("_TEST_CASE" in line for line in lines[:end]):
            sys.exit(f"{file}: its cases are in its head, so that they would be in no suite: have no named namespace around them")
        heads += [f'#line 1 "{file}"', *lines[:end]]
        suites += [f"BOOST_AUTO_TEST_SUITE(file_{file.stem})", f'#line {end + 1} "{file}"', *lines[end:],
                   "BOOST_AUTO_TEST_SUITE_END()"]
    return "\n".join([*heads, *suites, ""])


def check_names(files):
    """Two types of one name would be one to the linker, and one test's would be used in the other."""
    first = {}
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        for line in lines[:head(lines)]:
            if name := re.match(r"(?:struct|class|enum class) (\w+)(?: final)?(?: [:{]|$)", line):
                if first.setdefault(name[1], file) != file:
                    sys.exit(f"{file}: {name[1]} is in the head of {first[name[1]]}, too: rename one of them")


def self_test():
    first = ["// Why.", "#include <a>", "", "#if B", "#include <b>", "#endif", "namespace {", "int c;", "}"]
    assert head(first) == 6
    special = [*first, "template <>", "struct weir::traits<c> {", "  struct weir::d<e> {};", "};", "using namespace f;"]
    assert head(special) == 13
    assert head([*first, "template <>", "struct weir::traits<c> : g {};", "void h();"]) == 11
    assert head([*first, "namespace f {", "int g;", "}  // namespace f", "void h();"]) == 12
    with tempfile.TemporaryDirectory() as folder:
        one, two = pathlib.Path(folder, "one.cpp"), pathlib.Path(folder, "two.cpp")
        one.write_text("#include <a>\nint b;\n")
        two.write_text("int c;\n")
        assert together([one, two]).splitlines() == [
            f'#line 1 "{one}"', "#include <a>", f'#line 1 "{two}"',
            "BOOST_AUTO_TEST_SUITE(file_one)", f'#line 2 "{one}"', "int b;", "BOOST_AUTO_TEST_SUITE_END()",
            "BOOST_AUTO_TEST_SUITE(file_two)", f'#line 1 "{two}"', "int c;", "BOOST_AUTO_TEST_SUITE_END()"]
        check_names([one, two])
        for file in (one, two):
            file.write_text("namespace a {\nstruct b;\nstruct c : d {};\n}  // namespace a\n")
        try:
            check_names([one, two])
            raise AssertionError("two types of one name")
        except SystemExit as complaint:
            assert ": c is in the head of " in str(complaint)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) > 2:
        every = [pathlib.Path(file) for file in sys.argv[2:]]
        check_names(every)
        for at in range(0, len(every), 5):
            out, text = pathlib.Path(f"{sys.argv[1]}_{at}.cpp"), together(every[at:at + 5])
            if not out.exists() or out.read_text(encoding="utf-8") != text:  # what has not changed is not compiled anew
                out.write_text(text, encoding="utf-8")
    else:
        sys.exit(__doc__)
