#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The parts of the documentation site that need no other program: the link checker and the navigation on planted sites,
# addresses, and the marks in headers. Every fault is planted alone in a site that is right without it.
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/site"))
import addresses  # noqa: E402
import check_links  # noqa: E402
import header_filter  # noqa: E402
import navigation  # noqa: E402
import wrapping  # noqa: E402

SITE = {
    "index.html": """<html><head><link rel="stylesheet" href="site.css"><link rel="icon" href="data:,"></head><body>
<a href="docs/page.html">a page</a> <a href="docs/page.html#part">a part</a> <a href="docs/page.html#old">old</a>
<a href="#here">here</a> <p id="here"></p> <a href="https://example.org/missing.html#nowhere">elsewhere</a>
<a href="mailto:someone@example.org">mail</a> <a href="docs/a%20file.txt">a file</a>
<picture><source srcset="dark.svg 1x, dark.svg 2x"><img src="docs/picture.svg"></picture><!--FAULT--></body></html>""",
    "docs/page.html": '<html><h2 id="part">part</h2><a name="old"></a><a href="../index.html">back</a></html>',
    "docs/picture.svg": '<svg xmlns="http://www.w3.org/2000/svg"><defs><g id="one"/></defs><use href="#one"/></svg>',
    "docs/a file.txt": "text",
    "dark.svg": "<svg/>",
    "site.css": 'body { background: url("dark.svg"); }\n',
}

# What is planted into index.html, and what the checker says of it.
FAULTS = [
    ('<a href="docs/missing.html">', "docs/missing.html does not exist"),
    ('<a href="docs/page.html#missing">', "docs/page.html#missing: the page has no anchor 'missing'"),
    ('<a href="#missing">', "#missing: the page has no anchor 'missing'"),
    ('<a href="docs/">', "docs/ does not exist"),
    ('<a href="../outside.html">', "../outside.html leads out of the folder"),
    ('<a href="/index.html">', "/index.html begins at the root of the server"),
    ('<a href="javascript:go()">', "javascript:go() is no address of a page"),
    ('<a href="http://[">', "http://[ cannot be read"),
    ('<img src="docs/missing.svg">', "docs/missing.svg does not exist"),
    ('<source srcset="dark.svg, missing.svg 2x">', "missing.svg does not exist"),
    ('<script src="https://example.org/script.js"></script>', "https://example.org/script.js is loaded from elsewhere"),
    ('<link rel="stylesheet" href="//example.org/fonts.css">', "//example.org/fonts.css is loaded from elsewhere"),
    ('<p style="background: url(missing.svg)">', "missing.svg does not exist"),
]


def plant(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(main, *arguments):
    """The exit code of a program and all that it prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = main([str(argument) for argument in arguments])
    return code, output.getvalue()


class WithFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name, "site")
        self.folder.mkdir()


class LinkChecker(WithFolder):
    def refuses(self, files, message):
        plant(self.folder, {**SITE, **files})
        code, output = run(check_links.main, self.folder)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)
        self.assertIn(" 1 faults", output)

    def test_accepts_a_whole_site(self):
        plant(self.folder, SITE)
        code, output = run(check_links.main, self.folder)
        self.assertEqual(code, 0, output)
        self.assertIn("4 pages and pictures, 15 links, 0 faults", output)

    def test_finds_each_fault(self):
        for planted, message in FAULTS:
            with self.subTest(planted):
                text = SITE["index.html"].replace("<!--FAULT-->", planted)
                self.refuses({"index.html": text}, "index.html:5: " + message)

    def test_finds_a_missing_file(self):
        plant(self.folder, SITE)
        (self.folder / "docs/a file.txt").unlink()
        self.assertIn("docs/a%20file.txt does not exist", run(check_links.main, self.folder)[1])

    def test_reads_styles_and_pictures(self):
        self.refuses({"site.css": "p {}\np { background: url(fonts/missing.woff) }"},
                     "site.css:2: fonts/missing.woff does not exist")
        self.refuses({"site.css": '@import "https://example.org/fonts.css";'},
                     "site.css:1: https://example.org/fonts.css is loaded from elsewhere")
        self.refuses({"site.css": "", "dark.svg": '<svg><image xlink:href="missing.png"/></svg>'},
                     "dark.svg:1: missing.png does not exist")

    def test_refuses_symbolic_links(self):
        os.symlink("index.html", self.folder / "link.html")
        self.refuses({}, "link.html:0: is a symbolic link")

    def test_refuses_wrong_arguments(self):
        self.assertEqual(run(check_links.main)[0], 2)
        self.assertEqual(run(check_links.main, self.folder / "missing")[0], 2)
        code, output = run(check_links.main, self.folder)
        self.assertEqual(code, 2)
        self.assertIn("holds no page", output)


class Navigation(WithFolder):
    LIST = "# comment\nREADME.md Overview\ndocs/one.md One\n  reference Reference\n  docs/sub/two.md Page two\n"
    PAGES = {"README.md": "# A", "docs/one.md": "# One", "docs/sub/two.md": "# Two"}

    def says(self, text, pages):
        plant(self.folder, {"docs/site/navigation.txt": text, **pages})
        return run(navigation.main, self.folder)

    def test_accepts_pages_that_are_all_named(self):
        self.assertEqual(self.says(self.LIST, self.PAGES), (0, "4 entries, 0 faults\n"))

    def test_refuses_what_disagrees(self):
        code, output = self.says(self.LIST + "docs/three.md Three\ndocs/one.md Again\n",
                                 {**self.PAGES, "SECURITY.md": "# S", "docs/sub/four.md": "# F"})
        self.assertEqual(code, 1)
        self.assertIn("docs/three.md is in the navigation and does not exist", output)
        self.assertIn("docs/sub/four.md is not in the navigation: add a line", output)
        self.assertIn("SECURITY.md is not in the navigation: add a line", output)
        self.assertIn("docs/one.md is in the navigation twice", output)
        self.assertIn("6 entries, 4 faults", output)

    def test_refuses_lines_that_it_cannot_read(self):
        self.assertEqual(self.says("README.md\n", self.PAGES), (1, "navigation.txt:1: 'README.md' has no label\n"))
        self.assertEqual(self.says("  README.md A\n", self.PAGES),
                         (1, "navigation.txt:1: the first entry is below nothing\n"))
        self.assertEqual(run(navigation.main)[0], 2)

    def test_writes_links_from_any_page(self):
        self.says(self.LIST, self.PAGES)
        entries = navigation.read(self.folder / "docs/site/navigation.txt")
        written = navigation.as_list(entries, "docs/sub/two.md", "docs/sub/two.html")
        for part in ('<a href="../../index.html">Overview</a>', '<a href="../../reference/index.html">Reference</a>',
                     '<a href="two.html" aria-current="page">Page two</a>'):
            self.assertIn(part, written)
        around = navigation.neighbours(entries, "docs/one.md", "docs/one.html")
        self.assertIn('<a href="../index.html" rel="prev"><small>Previous</small> Overview</a>', around)
        self.assertIn('<a href="../reference/index.html" rel="next"><small>Next</small> Reference</a>', around)
        self.assertEqual(navigation.neighbours(entries, "LICENSE", "LICENSE.html"), "")


class Addresses(WithFolder):
    def test_follow_the_repository(self):
        for path, address in (("README.md", "index.html"), ("docs/a.md", "docs/a.html"), ("perf/results/",
                              "perf/results/index.html"), ("include/torii/torii.h", "include/torii/torii.h.html"),
                              ("docs/a.svg", "docs/a.svg"), ("docs/pictures/README.md", "docs/pictures/index.html")):
            self.assertEqual(addresses.address(path), address)

    def test_of_headings_are_those_of_repository_hosts(self):
        taken = set()
        self.assertEqual(addresses.slug("C & C++: `torii-run`, perf/limits", taken), "c--c-torii-run-perflimits")
        self.assertEqual([addresses.slug("Use", taken) for _ in range(3)], ["use", "use-1", "use-2"])

    def test_of_links(self):
        plant(self.folder, {"docs/a.md": "", "docs/b.svg": "", "examples/c.cpp": ""})
        links = addresses.Links(self.folder, "docs/a.md")
        self.assertEqual(
            links.all_in('<a href="../examples/c.cpp"><a href="../examples"><a href="#x"><a href="a.md#x">'
                         '<img src="b.svg"><source srcset="b.svg 2x"><a href="https://example.org/?a=1&amp;b=2">'),
            '<a href="../examples/c.cpp.html"><a href="../examples/index.html"><a href="#x"><a href="a.html#x">'
            '<img src="b.svg"><source srcset="b.svg 2x"><a href="https://example.org/?a=1&amp;b=2">')
        self.assertEqual(links.targets, {"examples/c.cpp", "examples/", "docs/a.md", "docs/b.svg"})
        self.assertEqual(links.faults, [])
        missing = ("missing.md", "../../outside.md", "/etc/passwd")
        self.assertEqual([links.link(link) for link in missing], list(missing))
        self.assertEqual(links.faults, [f"docs/a.md: {link} does not exist" for link in missing])


class Wrapping(unittest.TestCase):
    def test_breaks_between_words(self):
        self.assertEqual(wrapping.wrapped("one two three", 7), ["one two", "three"])
        self.assertEqual(wrapping.wrapped("one two", 7), ["one two"])
        self.assertEqual(wrapping.wrapped("", 7), [""])

    def test_items_keep_their_indent(self):
        self.assertEqual(wrapping.wrapped("- one two", 6), ["- one", "  two"])
        self.assertEqual(wrapping.wrapped("  10. one two", 9), ["  10. one", "      two"])
        self.assertEqual(wrapping.wrapped("  one two", 6), ["  one", "  two"])

    def test_keeps_code_links_and_rows_of_tables_whole(self):
        for word in ("`a b  c`", "``a ` b``", "[a b](c.md)", "[`a b`](c.md),", "([a b](c.md#d))", "![a b](c.svg)"):
            self.assertEqual(wrapping.wrapped(f"{word} {word}", 3), [word, word])
        self.assertEqual(wrapping.wrapped("| one | two |", 3), ["| one | two |"])

    def test_no_line_begins_like_another_block(self):
        for word in ("-", "+", "*", "1.", "2)", "#", "> a", "|", "=", "---", "<b>", "~~~"):
            self.assertEqual(wrapping.wrapped(f"one two {word} three", 8), ["one", f"two {word}", "three"])
        self.assertEqual(wrapping.wrapped("one -- two *three* 1.5", 3), ["one", "--", "two", "*three*", "1.5"])


class Headers(unittest.TestCase):
    def test_comments_of_c_are_marked(self):
        text = ["/* SPDX-License-Identifier: Apache-2.0", " * The file. */", "", "/* ---- part ----", " */", "",
                "/* About the file. */", "", "/* As torii_b and torii_c(). */", "int torii_a(void); /* behind */"]
        marked = ["/** @offile", " * The file. */", "", "/* ---- part ----", " */", "",
                  "/** @moreoffile About the file. */", "", "/** As #torii_b and torii_c(). */",
                  "int torii_a(void); /**< behind */"]
        self.assertEqual(header_filter.marked_c(text), marked)

    def test_comments_of_cpp_are_marked(self):
        text = ["// SPDX-License-Identifier: Apache-2.0", "// The file.", "#pragma once", "// aside"]
        self.assertEqual(header_filter.marked_cpp(text),
                         ["/// @offile", "/// The file.", "#pragma once", "// aside"])


if __name__ == "__main__":
    unittest.main()
