# SPDX-License-Identifier: Apache-2.0
# Addresses in the documentation site: those of files of the repository, of headings, and the links of a page.
import html
import os
import pathlib
import re
import urllib.parse

# The path that stands for the C and C++ reference.
REFERENCE = "reference"


class SiteError(Exception):
    """Something that the author of a page has to mend."""


def address(path):
    """The address in the site of a file or folder of the repository; folders end with '/'."""
    if path == REFERENCE:
        return "reference/index.html"
    folder, name = os.path.split(path)
    if not name or name == "README.md":
        name = "index.html"
    elif name.endswith(".md"):
        name = name[:-3] + ".html"
    elif not name.endswith((".svg", ".png")):
        name += ".html"
    return os.path.join(folder, name)


def relative(target, page):
    """The address of `target` as a link in `page`; both are addresses in the site."""
    return os.path.relpath(target, os.path.dirname(page) or ".")


def slug(heading, taken):
    """The anchor of a heading: small letters, without punctuation, '-' for spaces; a number if it is taken."""
    base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    taken.add(name)
    return name


class Links:
    """Turns links of a file into links of its page, and collects the files that they lead to, and the faults."""

    def __init__(self, root, path):
        self.root, self.path = root, path
        self.page = address(path)
        self.targets = set()
        self.faults = []

    def link(self, link):
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path:
            return link
        target = os.path.normpath(os.path.join(os.path.dirname(self.path), urllib.parse.unquote(parts.path)))
        if target.startswith(("/", "..")) or not pathlib.Path(self.root, target).exists():
            self.faults.append(f"{self.path}: {link} does not exist")
            return link
        if pathlib.Path(self.root, target).is_dir():
            target = os.path.join(target, "")
        self.targets.add(target)
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        return urllib.parse.quote(relative(address(target), self.page)) + fragment

    def attribute(self, match):
        name, value = match[1], html.unescape(match[2])
        if name == "srcset":
            pieces = [candidate.split(maxsplit=1) for candidate in value.split(",")]
            value = ", ".join(" ".join([self.link(piece[0]), *piece[1:]]) for piece in pieces)
        else:
            value = self.link(value)
        return f'{name}="{html.escape(value)}"'

    def all_in(self, text):
        return re.sub(r'\b(href|src|srcset)="([^"]*)"', self.attribute, text)
