# SPDX-License-Identifier: Apache-2.0
# Breaks the prose of a Markdown page into lines, for programs that write a part of one.
import re

COLUMNS = 120
# What stays in one line: inline code, and a link with its text and target.
WORD = re.compile(r"(?:(?P<marks>`+)(?!`).+?(?<!`)(?P=marks)(?!`)|!?\[[^\]]*\]\([^)\s]*\)|\S)+")
# A line that begins so might not continue its paragraph, so such a word stays behind the one before it.
BLOCK = re.compile(r"[-+*]$|\d+[.)]$|#{1,6}$|[>|<=~]|---|```")
LIST_MARK = re.compile(r" *(?:[-+*]|\d+[.)]) ")


def wrapped(text, columns=COLUMNS):
    """The lines of a paragraph or of an item of a list, which keeps its indent; a row of a table is one line. A word
    that is longer than a line has its own."""
    if text.lstrip().startswith("|"):
        return [text]
    mark = LIST_MARK.match(text)
    indent = mark.end() if mark else len(text) - len(text.lstrip(" "))
    words = []
    for match in WORD.finditer(text, indent):
        if words and BLOCK.match(match[0]):
            words[-1] += " " + match[0]
        else:
            words.append(match[0])
    lines, line = [], text[:indent] + " ".join(words[:1])
    for word in words[1:]:
        if len(line) + 1 + len(word) > columns:
            lines.append(line)
            line = " " * indent + word
        else:
            line += " " + word
    return [*lines, line]
