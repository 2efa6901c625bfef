# SPDX-License-Identifier: Apache-2.0
# Reads the fenced blocks of Markdown pages.
"""The programs and fragments that pages show."""
import dataclasses
import pathlib
import re


@dataclasses.dataclass
class Block:
    """One fenced block. `line` is the number of its first line, from 1."""

    page: pathlib.Path
    line: int
    language: str
    text: str
    output: str = None  # of a whole program: what four ranks print

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        """Whether the block is a whole program. Everything else is a fragment."""
        if self.language in ("c", "cpp"):
            return re.search(r"^int main\(", self.text, re.MULTILINE) is not None
        return self.language == "python" and re.match(r"import ", self.text) is not None

    @property
    def is_declaration(self):
        """Whether a fragment of C or C++ stands outside of functions."""
        return re.match(r"(static|struct|template|#include) ?", self.text) is not None


def read_blocks(root, page):
    """The blocks of a page, in order. A block of the language "output" belongs to the program before it."""
    blocks, opened = [], None
    for number, line in enumerate((root / page).read_text(encoding="utf-8").splitlines(), 1):
        if opened is None:
            if match := re.match(r"```(\S*)$", line):
                opened = Block(page, number + 1, match[1], "")
        elif line == "```":
            if opened.language == "output":
                blocks_before = [block for block in blocks if block.is_program]
                if not blocks_before or blocks_before[-1].output is not None:
                    raise ValueError(f"{opened.place}: no program prints this")
                blocks_before[-1].output = opened.text
            else:
                blocks.append(opened)
            opened = None
        else:
            opened.text += line + "\n"
    if opened is not None:
        raise ValueError(f"{opened.place}: the block has no end")
    return blocks


def pages(root):
    """README.md and all pages under docs/, as paths from the root."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page.relative_to(root) for page in found]
