#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Prints a public header with its comments marked for doxygen: header_filter.py FILE.
#
# The headers have plain comments, which doxygen ignores. A comment describes the declaration after it. Behind a
# declaration it describes that declaration. The first comment, and one that an empty line follows, describe the file.
# Lines keep their numbers, so that doxygen's warnings name the right ones.
import re
import sys


def comment_end(lines, start):
    """The number of the line on which the comment that begins on line `start` ends."""
    while start < len(lines) - 1 and "*/" not in lines[start]:
        start += 1
    return start


def with_links(line):
    """The line of a comment, in which doxygen links every function and type, and warns if there is none."""
    return re.sub(r"(?<![\w#/`<\".])(torii_[a-z][a-z0-9_]*)(?![\w(/`*.-])", r"#\1", line)


def marked_c(lines):
    """The lines of a C header. `offile` and `moreoffile` are aliases of the Doxyfile: `@file` and a line break."""
    lines = list(lines)
    at = 0
    while at < len(lines):
        line = lines[at]
        end = comment_end(lines, at)
        if re.match(r"\s*/\* ----", line):
            at = end  # a line that divides the header into parts
        elif re.match(r"\s*/\* ", line):
            is_about_file = end + 1 == len(lines) or not lines[end + 1].strip()
            mark = "/** @moreoffile " if is_about_file else "/** "
            lines[at] = "/** @offile" if at == 0 else line.replace("/* ", mark, 1)
            lines[at : end + 1] = map(with_links, lines[at : end + 1])
            at = end
        elif re.search(r"[;,\w)]\s+/\* ", line):
            lines[at] = line.replace("/* ", "/**< ", 1)
            at = end
        at += 1
    return lines


def marked_cpp(lines):
    """The lines of a C++ header: only the comment at its beginning is a plain one that describes something."""
    lines = list(lines)
    for at, line in enumerate(lines):
        if not line.startswith("//"):
            break
        lines[at] = "/// @offile" if at == 0 else line.replace("//", "///", 1)
    return lines


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().split("\n")
    marked = marked_c(lines) if sys.argv[1].endswith(".h") else marked_cpp(lines)
    sys.stdout.write("\n".join(marked))


if __name__ == "__main__":
    main()
