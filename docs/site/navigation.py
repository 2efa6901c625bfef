# SPDX-License-Identifier: Apache-2.0
# The navigation of the documentation site: read from navigation.txt, compared with the pages, written as a list.
import dataclasses
import html
import pathlib
import sys

from addresses import REFERENCE, SiteError, address, relative

ROOT_PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md")
# An entry with more children than this shows them on its own pages and on theirs only.
CHILDREN_MOST = 8


@dataclasses.dataclass
class Entry:
    path: str
    label: str
    children: list = dataclasses.field(default_factory=list)


def read(path):
    """The entries of the file, each with its children."""
    entries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=1)
        if len(words) != 2:
            raise SiteError(f"{path.name}:{number}: '{line.strip()}' has no label")
        entry = Entry(words[0], words[1].strip())
        if not line.startswith(" "):
            entries.append(entry)
        elif entries:
            entries[-1].children.append(entry)
        else:
            raise SiteError(f"{path.name}:{number}: the first entry is below nothing")
    return entries


def in_order(entries):
    """All entries, as a reader meets them."""
    return [one for entry in entries for one in (entry, *entry.children)]


def faults(entries, root):
    """Pages that the navigation lacks, names that lead nowhere, and names that occur twice."""
    named = [entry.path for entry in in_order(entries)]
    pages = {path.relative_to(root).as_posix() for path in pathlib.Path(root, "docs").rglob("*.md")}
    pages.update(name for name in ROOT_PAGES if pathlib.Path(root, name).exists())
    found = [f"{path} is in the navigation and does not exist" for path in named
             if path != REFERENCE and path not in pages]
    found += [f"{path} is not in the navigation: add a line to docs/site/navigation.txt"
              for path in sorted(pages - set(named))]
    found += [f"{path} is in the navigation twice" for path in sorted(set(named)) if named.count(path) > 1]
    return found


def as_list(entries, current, page):
    """The navigation as HTML, for the page at address `page` that shows the file `current`."""
    def item(entry, children=""):
        mark = ' aria-current="page"' if entry.path == current else ""
        link = f'<a href="{relative(address(entry.path), page)}"{mark}>{html.escape(entry.label)}</a>'
        return f"<li>{link}{children}</li>"

    lines = []
    for entry in entries:
        is_inside = current in [one.path for one in (entry, *entry.children)]
        children = entry.children if is_inside or len(entry.children) <= CHILDREN_MOST else []
        below = "\n<ul>\n" + "\n".join(item(one) for one in children) + "\n</ul>\n" if children else ""
        lines.append(item(entry, below))
    return "<ul>\n" + "\n".join(lines) + "\n</ul>"


def neighbours(entries, current, page):
    """Links to the pages before and after."""
    order = in_order(entries)
    at = next((i for i, entry in enumerate(order) if entry.path == current), None)
    if at is None:
        return ""
    links = []
    for step, word in ((-1, "Previous"), (1, "Next")):
        if 0 <= at + step < len(order):
            entry = order[at + step]
            links.append(f'<a href="{relative(address(entry.path), page)}" rel="{word[:4].lower()}">'
                         f"<small>{word}</small> {html.escape(entry.label)}</a>")
    return f'<p class="neighbours">{"".join(links)}</p>'


def main(arguments):
    """navigation.py ROOT: says where the navigation and the pages of the repository at ROOT disagree."""
    if len(arguments) != 1:
        print("usage: navigation.py ROOT", file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0])
    try:
        entries = read(root / "docs/site/navigation.txt")
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    found = faults(entries, root)
    print("\n".join([*found, f"{len(in_order(entries))} entries, {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
