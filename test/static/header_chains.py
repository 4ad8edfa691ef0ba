#!/usr/bin/env python3
"""Writes the fewest translation units in which each of weir's headers is compiled as if it were alone.

usage: header_chains.py INCLUDE_DIR OUT_DIR [HEADER ...]     write units of these headers, and print their files
       header_chains.py --self-test

A unit is a chain: each header of it is brought by what the next one includes above its own text. So nothing stands
before a header that it would not have there by itself, and whatever it lacks is missing there, too. Nothing follows
a header that another one includes below its text, since that one has to come first. Then the whole chain comes once
more, for its guards. The fewest chains of an order are found by a matching (Dilworth's theorem, by Fulkerson's
proof): as many headers as possible get a successor of their own. An include that is taken away may make other
chains: the units are right for the headers of which they were made.
"""

import pathlib
import re
import sys
import tempfile

from include_direction import House


class Order:
    """What stands above the text of each header, and which ones stand below another's."""

    def __init__(self, house):
        self.house = house
        self.all = {}  # what each includes, by whatever ways
        self.above, self.last = {}, set()
        for path, includes in house.own.items():
            text = self.first_line_of_text(path)
            above = {named for line, named in includes if line < text}
            self.above[path] = above.union(*(self.reached(named) for named in above))
            self.last.update(named for line, named in includes if line > text)

    def first_line_of_text(self, path):
        lines = (self.house.root / path).read_text(encoding="utf-8").splitlines()
        goes_on = False
        for number, line in enumerate(lines, 1):
            if not goes_on and not re.match(r"\s*(#|//|$)", line):
                return number
            goes_on = line.endswith("\\")
        return len(lines) + 1

    def reached(self, path):
        if path not in self.all:
            self.all[path] = set()  # while we look: a cycle is for include_direction.py to tell
            named = {named for _, named in self.house.own[path]}
            self.all[path] = named.union(*(self.reached(n) for n in named))
        return self.all[path]


def chains(headers, order):
    larger = sorted(headers, key=lambda header: (len(order.above[header]), header))
    after = {header: [other for other in larger if header in order.above[other] and header not in order.last]
             for header in headers}
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
    for chain in chains(headers, Order(House(include_dir))):
        file = pathlib.Path(out_dir) / pathlib.Path(chain[-1]).with_suffix(".cpp")
        text = "".join(f'#include "{header}"\n' for header in chain)
        text += "// guarded\n" + text
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        print(file)


def self_test():
    # Includes; behind a semicolon: below the header's text.
    tree = {"a": "", "b": "a", "c": "b", "d": "a", "e": "c d", "f": "h", "g": "a;f", "h": "", "i": "g"}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "weir").mkdir()
        for name, includes in tree.items():
            above, _, below = ("".join(f'#include "weir/{other}.hpp"\n' for other in part.split())
                               for part in includes.replace(";", " ; ").partition(";"))
            text = f"// {name}\n#define A \\\n  1\n\n{above}\nint {name}();\n{below}"
            (pathlib.Path(folder) / "weir" / f"{name}.hpp").write_text(text, encoding="utf-8")
        order = Order(House(folder))
    wrong = []
    for names, expected in [("abcdefghi", 4), ("abe", 1), ("bd", 2), ("ae", 1), ("fg", 2), ("ag", 1), ("hf", 1),
                            ("hg", 2), ("hi", 1), ("fi", 2), ("", 0)]:
        found = chains([f"weir/{name}.hpp" for name in names], order)
        if sorted(header[5] for chain in found for header in chain) != sorted(names):
            wrong.append(f"{names}: {found} are not its headers")
        if any(one not in order.above[other] for chain in found for one, other in zip(chain, chain[1:])):
            wrong.append(f"{names}: in {found} one does not stand above the next one's text")
        if any("weir/f.hpp" in chain[:-1] for chain in found):
            wrong.append(f"{names}: in {found} something follows what is included below")
        if len(found) != expected:
            wrong.append(f"{names}: {len(found)} chains, not {expected}")
    for line in wrong:
        print(f"self-test: {line}")
    if not wrong:
        print("self-test: eleven sets of headers, each in as few chains as can be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else write(*sys.argv[1:3], sys.argv[3:]))
