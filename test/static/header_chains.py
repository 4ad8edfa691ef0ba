#!/usr/bin/env python3
"""Writes the fewest translation units in which each of weir's headers is compiled as if it were alone.

usage: header_chains.py INCLUDE_DIR OUT_DIR [HEADER ...]     write units of these headers, and print their files
       header_chains.py --self-test

A unit is a chain: each header of it is included, by whatever ways, by the next one. What stands before a header brings
nothing that the header would not bring by itself, so whatever it lacks is missing there, too. Nothing follows a header
that another one includes below its own text, since that one has to come first. Then the whole chain comes once more, for
its guards. The fewest chains of an order are found by a matching (Dilworth's theorem, by Fulkerson's proof): as many
headers as possible get a successor of their own.
"""

import pathlib
import re
import sys
import tempfile

from include_direction import House


def reached(own):
    """What each header includes, by whatever ways."""
    out = {}

    def visit(path):
        if path not in out:
            out[path] = set()  # while we look: a cycle is for include_direction.py to tell
            out[path] = {named for _, named in own[path]}.union(*(visit(named) for _, named in own[path]))
        return out[path]

    for path in own:
        visit(path)
    return out


def included_below(house):
    """The headers that another one includes below its own text."""
    out = set()
    for path, includes in house.own.items():
        lines = (house.root / path).read_text(encoding="utf-8").splitlines()
        text = next((n for n, line in enumerate(lines, 1) if not re.match(r"\s*(#|//|$)", line)), len(lines))
        out.update(named for line, named in includes if line > text)
    return out


def chains(headers, reach, last):
    larger = sorted(headers, key=lambda header: (len(reach[header]), header))
    after = {header: [other for other in larger if header in reach[other] and header not in last] for header in headers}
    before = {}

    def give_successor(header, seen):
        for other in after[header]:
            if other not in seen:
                seen.add(other)
                if other not in before or give_successor(before[other], seen):
                    before[other] = header
                    return True
        return False

    for header in reversed(larger):
        give_successor(header, set())
    out = []
    for end in sorted(set(headers) - set(before.values())):
        chain = [end]
        while chain[0] in before:
            chain.insert(0, before[chain[0]])
        out.append(chain)
    return out


def write(include_dir, out_dir, headers):
    sys.setrecursionlimit(100_000)
    house = House(include_dir)
    for chain in chains(headers, reached(house.own), included_below(house)):
        file = pathlib.Path(out_dir) / pathlib.Path(chain[-1]).with_suffix(".cpp")
        text = "".join(f'#include "{header}"\n' for header in chain)
        text += "// guarded\n" + text
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        print(file)


def self_test():
    tree = {"a": "", "b": "a", "c": "b", "d": "a", "e": "c d", "f": "", "g": "a;f"}  # behind a semicolon: below its text
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "weir").mkdir()
        for name, includes in tree.items():
            above, _, below = ("".join(f'#include "weir/{other}.hpp"\n' for other in part.split())
                               for part in includes.replace(";", " ; ").partition(";"))
            text = f"// {name}\n\n{above}\nint {name}();\n{below}"
            (pathlib.Path(folder) / "weir" / f"{name}.hpp").write_text(text, encoding="utf-8")
        house = House(folder)
        reach, last = reached(house.own), included_below(house)
    wrong = []
    for names, expected in [("abcdefg", 4), ("abe", 1), ("bd", 2), ("ae", 1), ("fg", 2), ("ag", 1), ("", 0)]:
        found = chains([f"weir/{name}.hpp" for name in names], reach, last)
        if sorted(header[5] for chain in found for header in chain) != sorted(names):
            wrong.append(f"{names}: {found} are not its headers")
        if any(one not in reach[other] for chain in found for one, other in zip(chain, chain[1:])):
            wrong.append(f"{names}: in {found} one does not include the one before")
        if any("weir/f.hpp" in chain[:-1] for chain in found):
            wrong.append(f"{names}: in {found} something follows what is included below")
        if len(found) != expected:
            wrong.append(f"{names}: {len(found)} chains, not {expected}")
    for line in wrong:
        print(f"self-test: {line}")
    if not wrong:
        print("self-test: seven sets of headers, each in as few chains as can be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else write(*sys.argv[1:3], sys.argv[3:]))
