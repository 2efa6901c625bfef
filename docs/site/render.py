# SPDX-License-Identifier: Apache-2.0
# Files of the repository as HTML: Markdown by cmark-gfm, with the anchors that repository hosts give; sources.
import html
import os
import pathlib
import re
import subprocess

import pygments
import pygments.formatters
import pygments.lexers
import pygments.util

from addresses import Links, SiteError, address, relative, slug

EXTENSIONS = ("table", "strikethrough", "autolink", "tasklist")


def plain(text):
    """The words of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip()


def coloured(code, lexer):
    return pygments.highlight(code, lexer, pygments.formatters.HtmlFormatter(nowrap=True))


def with_colours(text, path):
    """Code blocks that name their language, coloured."""
    def block(match):
        try:
            lexer = pygments.lexers.get_lexer_by_name(match[1])
        except pygments.util.ClassNotFound as error:
            raise SiteError(f"{path}: a code block has the unknown language '{match[1]}'") from error
        return f"<pre><code>{coloured(html.unescape(match[2]), lexer)}</code></pre>"

    return re.sub(r'<pre><code class="language-([^"]*)">(.*?)</code></pre>', block, text, flags=re.S)


def with_anchors(text):
    """The page with an anchor for each heading, and its headings: (level, anchor, HTML)."""
    taken, headings = set(), []

    def heading(match):
        level, inner = match[1], match[2]
        anchor = slug(plain(inner), taken)
        headings.append((int(level), anchor, inner))
        mark = f'<a class="mark" href="#{anchor}" aria-label="Link to this part">#</a>' if level != "1" else ""
        return f'<h{level} id="{anchor}">{inner}{mark}</h{level}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", heading, text, flags=re.S), headings


def with_labels(text, page, labels):
    """Links whose text is the name of a file, as in `see [tuning.md](tuning.md)`, say the label of that page."""
    def named(match):
        target = os.path.normpath(os.path.join(os.path.dirname(page), match[1]))
        return f"{match[0][: match.start(3) - match.start()]}{html.escape(labels.get(target, match[3]))}</a>"

    return re.sub(r'<a href="([^"#:]*)(#[^"]*)?">([\w./]+\.md)</a>', named, text)


def markdown(root, path, labels, more=""):
    """A Markdown file, with `more` at its end: its HTML, its headings, and the files that it leads to. `labels` are
    those of addresses."""
    command = ["cmark-gfm", "--unsafe", *(word for name in EXTENSIONS for word in ("-e", name))]
    text = pathlib.Path(root, path).read_text(encoding="utf-8") + more
    text = subprocess.run(command, input=text, check=True, capture_output=True, encoding="utf-8").stdout
    links = Links(root, path)
    text = links.all_in(text)
    if links.faults:
        raise SiteError("\n".join(links.faults))
    text, headings = with_anchors(with_labels(with_colours(text, path), address(path), labels))
    # On a phone a wide table scrolls by itself, and the page does not.
    text = text.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return text, headings, links.targets


def source(root, path):
    """A text file with its lines coloured."""
    text = pathlib.Path(root, path).read_text(encoding="utf-8")
    try:
        lexer = pygments.lexers.get_lexer_for_filename(path)
    except pygments.util.ClassNotFound:
        lexer = pygments.lexers.get_lexer_by_name("bash" if text.startswith("#!/usr/bin/env bash") else "text")
    return f"<h1><code>{html.escape(path)}</code></h1>\n<pre><code>{coloured(text, lexer)}</code></pre>"


def folder(root, path, page, shown):
    """The names in a folder; those of files that the site shows are links."""
    items = []
    for entry in sorted(pathlib.Path(root, path).iterdir()):
        name = entry.relative_to(root).as_posix()
        label = html.escape(entry.name + ("/" if entry.is_dir() else ""))
        link = f'<a href="{relative(address(name), page)}">{label}</a>' if name in shown else label
        items.append(f"<li><code>{link}</code></li>")
    return "<ul>\n" + "\n".join(items) + "\n</ul>"
