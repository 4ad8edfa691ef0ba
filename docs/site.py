#!/usr/bin/env python3
"""Makes pages of our Markdown for Doxygen, which knows neither GitHub's anchors nor links to files, and checks the site.

usage: site.py FILE.md         print the page as Doxygen is to read it: its INPUT filter
       site.py --index FOLDER  put the guides' headings, and what their tables explain, among what the site's search finds; and
                               mend what Doxygen makes of their code
       site.py --check FOLDER  every link and anchor of our Markdown, and of the site in FOLDER; exits with 1 and a line for each
                               that leads nowhere
"""

import html.parser
import json
import os
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOT_OURS = {"build", ".deps", ".git", ".cache"}
# What becomes a page, and its name on the site. Links to anything else of the repository become plain text there.
PAGES = {"README.md": "index", "SECURITY.md": "security", "CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing",
         "bench/README.md": "benchmarks"}
PAGES |= {f"docs/{p.name}": p.stem for p in sorted((ROOT / "docs").glob("*.md"))}
FENCE = re.compile(r"^(?:```|~~~)")
HEADING = re.compile(r"^(#{1,6}) +(.*?) *#*$")
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
BOLD = re.compile(r"\*\*((?:`[^`]*`|[^*`])+)\*\*")  # Doxygen's begins with a letter
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)


def slug(heading: str, taken: dict[str, int]) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-")
    number = taken.get(text, 0)
    taken[text] = number + 1
    return f"{text}-{number}" if number else text


def lines(text: str):
    """Each line, and whether it is prose and not of a fenced block."""
    fenced = False
    for line in text.split("\n"):
        if FENCE.match(line.lstrip("> ")):
            fenced = not fenced
            yield line, False
        else:
            yield line, not fenced


def anchors(file: pathlib.Path) -> set[str]:
    taken: dict[str, int] = {}
    found = set()
    for line, prose in lines(file.read_text(encoding="utf-8")):
        if prose and (match := HEADING.match(line)):
            found.add(slug(match[2], taken))
    return found


def target(page: pathlib.Path, link: str) -> tuple[str, str]:
    """The file that a link of a page leads to, below the repository, and the anchor in it."""
    path, _, anchor = link.partition("#")
    file = (page.parent / urllib.parse.unquote(path)).resolve() if path else page.resolve()
    return os.path.relpath(file, ROOT), anchor


# ------------------------------------------------------------------------------------------ filter


def section(name: str, anchor: str) -> str:
    return f"{name}_{anchor}"


def page(file: pathlib.Path) -> str:
    name = PAGES.get(os.path.relpath(file.resolve(), ROOT), "")
    taken: dict[str, int] = {}

    def linked(match: re.Match) -> str:
        text, link = match[1], match[2]
        if re.match(r"[a-z]+:", link):
            return match[0]
        to, anchor = target(file, link)
        if to not in PAGES:
            return text
        place = f"#{section(PAGES[to], anchor)}" if anchor else ""
        return f'<a href="{"" if to == os.path.relpath(file.resolve(), ROOT) and place else PAGES[to] + ".html"}{place}">{text}</a>'

    def coded(match: re.Match) -> str:
        """A name of ours in code is to be a link to its documentation: Doxygen links words, but not in code."""
        if re.fullmatch(r"weir::[\w:]+(\(\))?", match[2]):
            return f"<b class=\"code\">{match[2]}</b>"
        if "'" in match[2] and match[1] == "`":  # which ends code for Doxygen
            return f"``{match[2]}``"
        return match[0]

    out = []
    for line, prose in lines(file.read_text(encoding="utf-8")):
        if not prose:
            out.append(line)
            continue
        if match := HEADING.match(line):
            anchor = slug(match[2], taken)
            text = LINK.sub(r"\1", match[2]).replace("`", "")
            label = ("mainpage" if name == "index" else name) if len(match[1]) == 1 else section(name, anchor)
            out.append(f"{match[1]} {text} {{#{label}}}" if name else line)
            continue
        if line.startswith("<!-- ") and line.endswith(" -->"):
            out.append("")  # which keeps the numbers of lines
            continue
        out.append(CODE.sub(coded, BOLD.sub(r"<b>\1</b>", LINK.sub(linked, line))))
    return "\n".join(out)


# ------------------------------------------------------------------------------------------ search


def explained(file: pathlib.Path):
    """Each heading below the first, and each code that begins a row of a table: the text, and the anchor of its section."""
    taken: dict[str, int] = {}
    anchor = ""
    for line, prose in lines(file.read_text(encoding="utf-8")):
        if prose and (match := HEADING.match(line)):
            anchor = slug(match[2], taken)
            if len(match[1]) > 1:
                yield re.sub("[`*]", "", LINK.sub(r"\1", match[2])), anchor
        elif prose and anchor and line.startswith("| `"):
            for match in CODE.finditer(line.split(" | ")[0]):
                yield match[2], anchor


def index(folder: pathlib.Path) -> int:
    """Doxygen's search finds names and titles of pages by how they begin. So each word of ours begins an entry."""
    data = (folder / "search" / "searchdata.js").read_text(encoding="utf-8")
    letters = re.search(r'0: "([^"]*)"', data)[1]
    entries: dict[str, list[str]] = {}
    for file, name in PAGES.items():
        if not file.startswith("docs/") or name == "failures":
            continue
        title = next(m[2] for line in (ROOT / file).read_text(encoding="utf-8").split("\n") if (m := HEADING.match(line)))
        for text, anchor in explained(ROOT / file):
            for word in re.finditer(r"[a-z][a-z0-9]{2,}", text.lower()):
                rest = text[word.start():].lower()
                key = "".join(c if re.match(r"[a-z0-9]", c) else f"_{ord(c):02x}" for c in rest)
                shown = json.dumps([text, [f"../{name}.html#{section(name, anchor)}", 1, title]])
                entries.setdefault(word[0][0], []).append(f"  ['{key}_g{len(entries)}{word.start()}',{shown}],")
    for letter, rows in entries.items():
        if letter in letters:
            page = folder / "search" / f"all_{letters.index(letter):x}.js"
            begin, rest = page.read_text(encoding="utf-8").split("[\n", 1)
            page.write_text(begin + "[\n" + "\n".join(rows) + "\n" + rest, encoding="utf-8")
    return sum(len(rows) for rows in entries.values())


# -------------------------------------------------------------------------------------------- code

ROW = re.compile(r'<tr class="markdownTableRow.*?</tr>', re.DOTALL)
LONG = 24  # letters of code in a table that need not be broken


def breakable(row: re.Match) -> str:
    """Long codes behind a table's first column may be broken at their signs, so that the table is no wider than the page."""
    first, *rest = re.split(r"(?=<td )", row[0])[1:] or [row[0]]
    codes = re.compile(rf"<code>[^<]{{{LONG},}}</code>")
    cut = [codes.sub(lambda code: re.sub(r"(?<=\w)([._:/(])(?=\w)", r"\1<wbr/>", code[0]), cell) for cell in rest]
    return row[0].partition("<td ")[0] + first + "".join(cut)


def mend(folder: pathlib.Path) -> None:
    for name in PAGES.values():
        page = folder / f"{name}.html"
        text = page.read_text(encoding="utf-8")
        # Doxygen takes a variable for the enumerator of its name, and a program of bench/ for a header.
        text = re.sub(r'<a class="code hl_enumvalue"[^>]*>([^<:]*)</a>', r"\1", text)
        if name == "benchmarks":
            text = re.sub(r'<a class="el" href="[^"]*">([\w.]+\.hpp)</a>', r"\1", text)
        page.write_text(ROW.sub(breakable, text), encoding="utf-8")


# ------------------------------------------------------------------------------------------- check


def documents() -> list[pathlib.Path]:
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in NOT_OURS)
        found += [pathlib.Path(folder) / f for f in sorted(files) if f.endswith(".md")]
    return found


def check_markdown() -> list[str]:
    wrong = []
    for file in documents():
        shown = os.path.relpath(file, ROOT)
        for number, (line, prose) in enumerate(lines(file.read_text(encoding="utf-8")), 1):
            for match in LINK.finditer(CODE.sub("", line)) if prose else ():
                link = match[2]
                if re.match(r"[a-z]+:", link):
                    continue
                to, anchor = target(file, link)
                if not (ROOT / to).exists():
                    wrong.append(f"{shown}:{number}: {link}: there is no such file")
                elif anchor and (not to.endswith(".md") or anchor not in anchors(ROOT / to)):
                    wrong.append(f"{shown}:{number}: {link}: there is no such heading")
    return wrong


class Names(html.parser.HTMLParser):
    """The links of a page, and what may be linked to in it."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[k] for k in ("id", "name") if given.get(k)}
        for key in ("href", "src"):
            if given.get(key) and tag != "base":
                self.links.append(given[key])


def check_site(folder: pathlib.Path) -> tuple[list[str], int]:
    pages = {p.name: Names(p.read_text(encoding="utf-8", errors="replace")) for p in sorted(folder.glob("*.html"))}
    wrong = []
    count = 0
    for name, found in pages.items():
        for link in found.links:
            if re.match(r"[a-z]+:|//", link) or link == "#nested-classes":  # Doxygen 1.9 forgets that place
                continue
            count += 1
            path, _, anchor = urllib.parse.unquote(link).partition("#")
            to = path.partition("?")[0] or name
            if not (folder / to).exists():
                wrong.append(f"{name}: {link}: there is no such page")
            elif anchor and to in pages and anchor not in pages[to].ids:
                wrong.append(f"{name}: {link}: there is no such place")
    return wrong, count


def main() -> int:
    if sys.argv[1] == "--index":
        mend(pathlib.Path(sys.argv[2]))
        print(f"{index(pathlib.Path(sys.argv[2]))} entries of the guides are found by the search")
        return 0
    if sys.argv[1] != "--check":
        sys.stdout.write(page(pathlib.Path(sys.argv[1])))
        return 0
    wrong = check_markdown()
    on_site, count = check_site(pathlib.Path(sys.argv[2]))
    for line in wrong + on_site:
        print(line)
    if not wrong and not on_site:
        print(f"{count} links of the site, and those of our Markdown, lead somewhere")
    return 1 if wrong or on_site else 0


if __name__ == "__main__":
    sys.exit(main())
