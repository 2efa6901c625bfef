#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site: build.py ROOT OUT, which `./dev site` calls.
#
# The pages are README.md, SECURITY.md, CONTRIBUTING.md and docs/ of the repository at ROOT, in the order of
# docs/site/navigation.txt; a page has the path of its file. Files that the pages lead to become pages too, pictures are
# copied. The C and C++ reference comes from doxygen, the list of messages from tools/messages. The exit code is 1 if a
# page is missing, a link leads nowhere, a message has no advice, or doxygen warns.
#
# cmark-gfm renders Markdown as repository hosts do, and headings get the same anchors, so that a page reads the same in
# both places.
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import check_links
import navigation
import render
from addresses import REFERENCE, SiteError, address

HERE = pathlib.Path(__file__).resolve().parent
MESSAGES_PAGE = "docs/troubleshooting.md"  # it ends with every message of the library


class Site:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.entries = navigation.read(root / "docs/site/navigation.txt")
        self.labels = {address(entry.path): entry.label for entry in navigation.in_order(self.entries)}
        self.frame = (HERE / "page.html").read_text(encoding="utf-8").split("\n", 2)[2]
        self.version = (root / "VERSION").read_text(encoding="utf-8").strip()
        self.sections = []  # of the search: [page, heading, address, text]

    def in_frame(self, path, title, content, headings=()):
        """A whole page; `path` is the file that it shows."""
        page = address(path)
        parts = [f'<li><a href="#{anchor}">{html.escape(render.plain(text))}</a></li>'
                 for level, anchor, text in headings if level == 2]
        about = '<nav class="headings" aria-label="On this page"><p>On this page</p>\n<ul>\n' + "\n".join(parts) + \
            "\n</ul></nav>" if len(parts) > 1 else ""
        words = {
            "root": "../" * page.count("/"), "title": html.escape(title), "version": self.version, "headings": about,
            "navigation": navigation.as_list(self.entries, path, page), "content": content,
            "neighbours": navigation.neighbours(self.entries, path, page),
        }
        return re.sub(r"@(\w+)@", lambda match: words[match[1]], self.frame)

    def write(self, path, title, content, headings=()):
        target = self.out / address(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.in_frame(path, title, content, headings), encoding="utf-8")

    def add_sections(self, path, title, content):
        """One entry of the search for each heading."""
        page = address(path)
        pieces = re.split(r'<h[2-6] id="([^"]*)">(.*?)<a class="mark"[^>]*>#</a></h[2-6]>', content, flags=re.S)
        self.sections.append([title, title, page, words_of(pieces[0])])
        for anchor, heading, text in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
            self.sections.append([title, render.plain(heading), f"{page}#{anchor}", words_of(text)])

    def write_pages(self):
        """The pages of the navigation, then the files that they lead to, and so on."""
        shown = {entry.path for entry in navigation.in_order(self.entries)} - {REFERENCE}
        waiting, folders, is_named, faults = sorted(shown), set(), set(shown), []
        while waiting:
            path = waiting.pop(0)
            try:
                targets = self.write_file(path, path in is_named)
            except SiteError as error:
                faults.append(str(error))
                continue
            folders.update(target for target in targets if target.endswith("/"))
            readmes = {target + "README.md" for target in folders if (self.root / target / "README.md").is_file()}
            new = sorted((targets | readmes) - shown - folders)
            shown.update(new)
            waiting += new
        if faults:
            raise SiteError("\n".join(faults))
        for path in sorted(folders):
            if path + "README.md" not in shown:
                page = address(path)
                content = f"<h1><code>{html.escape(path)}</code></h1>\n" + render.folder(self.root, path, page, shown)
                self.write(path, path, content)

    def write_file(self, path, is_named):
        if path.endswith(".md"):
            more = list_of_messages(self.root) if path == MESSAGES_PAGE else ""
            content, headings, targets = render.markdown(self.root, path, self.labels, more)
            title = next((render.plain(text) for level, _, text in headings if level == 1), path)
            self.write(path, title, content, headings)
            if is_named:
                self.add_sections(path, title, content)
            return targets
        target = self.out / address(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix != ".html":
            shutil.copyfile(self.root / path, target)
        else:
            self.write(path, path, render.source(self.root, path))
        return set()

    def write_reference(self):
        """doxygen writes its pages into our frame, of which it takes the beginning and the end."""
        folder = self.out / "reference"
        folder.mkdir()
        frame = self.in_frame(REFERENCE, "$title", '<div class="reference"><div id="top">@SPLIT@</div>')
        begin, end = frame.split("@SPLIT@")
        tags = self.out / "reference.tag"
        for name, text in (("begin.html", begin), ("end.html", end)):
            (self.out / name).write_text(text, encoding="utf-8")
        settings = (self.root / "docs/site/Doxyfile").read_text(encoding="utf-8") + "\n".join([
            f"PROJECT_NUMBER = {self.version}", f"OUTPUT_DIRECTORY = {self.out}", "HTML_OUTPUT = reference",
            f"HTML_HEADER = {self.out}/begin.html", f"HTML_FOOTER = {self.out}/end.html",
            f"GENERATE_TAGFILE = {tags}"])
        result = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=self.root, check=False)
        if result.returncode != 0:
            raise SiteError("doxygen found faults in the comments of include/torii (above)")
        self.add_members(tags)
        for leftover in (self.out / "begin.html", self.out / "end.html", tags, *folder.glob("*.js"),
                         *folder.glob("*.css"), *folder.glob("*.png"), *folder.glob("*.svg")):
            leftover.unlink()
        for page in folder.glob("*.html"):
            page.write_text(without_broken_summary(page.read_text(encoding="utf-8")), encoding="utf-8")

    def add_members(self, tags):
        """Every name of the reference is found by the search."""
        for compound in xml.etree.ElementTree.parse(tags).getroot():
            where = compound.findtext("name", "")
            for member in compound.findall("member"):
                page = f"reference/{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                self.sections.append([where, member.findtext("name", ""), page, member.findtext("arglist") or ""])

    def write_index(self):
        index = json.dumps(self.sections, ensure_ascii=False, separators=(",", ":"))
        (self.out / "search_index.js").write_text(f"window.searchIndex = {index};\n", encoding="utf-8")


def without_broken_summary(text):
    """doxygen 1.9.4 links to a list of nested classes also if all of them are private, and so there is no list."""
    if 'id="nested-classes"' in text:
        return text
    return re.sub(r'<a href="#nested-classes">[^<]*</a>( &#124;)?', "", text)


def words_of(text):
    return " ".join(render.plain(re.sub(r"</(p|li|td|th|pre|h\d)>", " ", text)).split())


def list_of_messages(root):
    result = subprocess.run([sys.executable, "-B", str(root / "tools/messages/messages"), "--list"], check=False,
                            capture_output=True, encoding="utf-8")
    if result.returncode != 0:
        raise SiteError(result.stderr)
    return "\n" + result.stdout


def build(root, out):
    site = Site(root, out)
    faults = navigation.faults(site.entries, root)
    faults += [f"{program} is not installed" for program in ("cmark-gfm", "doxygen") if not shutil.which(program)]
    if faults:
        raise SiteError("\n".join(faults))
    if out.exists():
        if not (out / "site.css").exists():
            raise SiteError(f"{out} is no site built before, so it is not replaced")
        shutil.rmtree(out)
    out.mkdir(parents=True)
    for name in ("site.css", "site.js"):
        shutil.copyfile(HERE / name, out / name)
    site.write_pages()
    site.write_reference()
    site.write_index()


def main(arguments):
    if len(arguments) != 2:
        print("usage: build.py ROOT OUT", file=sys.stderr)
        return 2
    root, out = (pathlib.Path(argument).resolve() for argument in arguments)
    try:
        build(root, out)
    except SiteError as error:
        print(f"site: FAILED:\n{error}", file=sys.stderr)
        return 1
    result = check_links.main([os.fspath(out)])
    if result == 0:
        print(f"the site is in {os.path.relpath(out)}: open index.html in a browser")
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
