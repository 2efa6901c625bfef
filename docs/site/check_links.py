#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Checks that a folder of pages is whole: check_links.py FOLDER.
#
# Every link leads to a file and an anchor inside the folder; the network is not asked. Style sheets, scripts and
# pictures come from the folder, so that the pages work offline. No symbolic links. Prints each fault; the exit code is
# 1 if there are any, and 2 if the folder holds no page.
import html.parser
import pathlib
import re
import sys
import urllib.parse

LINKS = {"a": "href", "area": "href"}
PARTS = {"link": "href", "script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data",
         "video": "src", "audio": "src", "embed": "src", "image": "href", "use": "href"}


class Page(html.parser.HTMLParser):
    """The anchors, links and parts of a page, with their lines."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []  # (line, address)
        self.parts = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        line = self.getpos()[0]
        self.anchors.update(values[name] for name in ("id", "name") if name in values and (name == "id" or tag == "a"))
        if LINKS.get(tag) in values:
            self.links.append((line, values[LINKS[tag]]))
        for name in (PARTS.get(tag), "xlink:href"):
            if name in values:
                self.parts.append((line, values[name]))
        for candidate in values.get("srcset", "").split(","):
            if candidate.strip():
                self.parts.append((line, candidate.split()[0]))
        for address in re.findall(r"url\(['\"]?([^'\")]+)", values.get("style", "")):
            self.parts.append((line, address))


def style_parts(text):
    """What a style sheet loads: (line, address)."""
    pattern = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
    return [(text.count("\n", 0, match.start()) + 1, match[1] or match[2]) for match in pattern.finditer(text)]


class Checker:
    def __init__(self, folder):
        self.folder = folder.resolve()
        self.faults = []
        self.links = 0
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() or path.is_symlink())
        for path in files:
            if path.is_symlink():
                self.fault(path, 0, "is a symbolic link")
        # A picture in SVG has links and parts as a page has.
        self.pages = {path: Page(path.read_text(encoding="utf-8")) for path in files
                      if path.suffix in (".html", ".svg")}
        self.styles = {path: style_parts(path.read_text(encoding="utf-8")) for path in files if path.suffix == ".css"}

    def fault(self, path, line, text):
        self.faults.append(f"{path.relative_to(self.folder)}:{line}: {text}")

    def check(self, path, line, address, is_part):
        self.links += 1
        try:
            parts = urllib.parse.urlsplit(address)
        except ValueError:
            self.fault(path, line, f"{address} cannot be read")
            return
        if parts.scheme == "data":
            return
        if parts.scheme or parts.netloc:
            if is_part:
                self.fault(path, line, f"{address} is loaded from elsewhere")
            elif parts.scheme not in ("http", "https", "mailto"):
                self.fault(path, line, f"{address} is no address of a page")
            return
        name = urllib.parse.unquote(parts.path)
        if name.startswith("/"):
            self.fault(path, line, f"{address} begins at the root of the server")
            return
        target = (path.parent / name).resolve() if name else path
        if self.folder not in target.parents:
            self.fault(path, line, f"{address} leads out of the folder")
        elif not target.is_file():
            self.fault(path, line, f"{address} does not exist")
        elif parts.fragment and target in self.pages:
            anchor = urllib.parse.unquote(parts.fragment)
            if anchor not in self.pages[target].anchors:
                self.fault(path, line, f"{address}: the page has no anchor '{anchor}'")

    def run(self):
        for path, page in self.pages.items():
            for line, address in page.links:
                self.check(path, line, address, is_part=False)
            for line, address in page.parts:
                self.check(path, line, address, is_part=True)
        for path, parts in self.styles.items():
            for line, address in parts:
                self.check(path, line, address, is_part=True)
        return self.faults


def main(arguments):
    if len(arguments) != 1 or not pathlib.Path(arguments[0]).is_dir():
        print("usage: check_links.py FOLDER", file=sys.stderr)
        return 2
    checker = Checker(pathlib.Path(arguments[0]))
    if not any(path.suffix == ".html" for path in checker.pages):
        print(f"check_links: {arguments[0]} holds no page", file=sys.stderr)
        return 2
    for fault in checker.run():
        print(fault, file=sys.stderr)
    print(f"{len(checker.pages)} pages and pictures, {checker.links} links, {len(checker.faults)} faults")
    return 1 if checker.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
