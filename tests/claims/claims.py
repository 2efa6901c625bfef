# SPDX-License-Identifier: Apache-2.0
# Finds the figures of a page that are claimed to come from saved runs, and those that should be.
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "perf"))
import saved_runs  # noqa: E402

# Pages in which every figure with a unit needs a claim or an exception. In other pages what is claimed is compared.
STRICT_PAGES = ("README.md", "docs/benchmarks.md")
COMMENT = re.compile(r"<!--.*?-->", re.S)
CLAIM = re.compile(r"<!-- claim: (\S+) (.+?) -->", re.S)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# A figure with a unit, or a ratio.
FIGURE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?: ?(?:%|[GM]B/s|[GM]bit/s)| (?:us|ms|ns|times)\b|x\b)"
                    r"|\bratio (?:\w+ ){0,2}(\d[\d,]*(?:\.\d+)?)")
FARTHEST = 30  # characters between a figure and its claim

Claim = collections.namedtuple("Claim", "page printed file expression begin end")


def pages(root=ROOT):
    """Every page of the documentation, as a path below the root."""
    found = [path for path in root.glob("*.md")] + list((root / "docs").rglob("*.md"))
    return sorted(str(path.relative_to(root)) for path in found)


def prose(content):
    """The page with the same length, without code blocks, generated blocks and inline code."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    content = re.sub(r"^```.*?^```", blank, content, flags=re.S | re.M)
    content = re.sub(r"<!-- generated:.*?<!-- end -->", blank, content, flags=re.S)
    return re.sub(r"`[^`\n]*`", blank, content)


def without_code(content):
    """As prose(), but with inline code, which claims may hold."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r"^```.*?^```", blank, content, flags=re.S | re.M)


def find_claims(page, content):
    """Claims with the number before them. BadClaim if a claim has none."""
    content = without_code(content)
    found = []
    for match in CLAIM.finditer(content):
        before = COMMENT.sub(lambda one: " " * len(one[0]), content[:match.start()])
        numbers = list(NUMBER.finditer(before, max(0, match.start() - FARTHEST)))
        # A number that the window cuts in two would be read without its first digits.
        if numbers and numbers[-1].start() == match.start() - FARTHEST:
            numbers = []
        if not numbers:
            raise saved_runs.BadClaim(f"{page}: no number within {FARTHEST} characters before '{match[0]}'")
        number = numbers[-1]
        found.append(Claim(page, number[0], match[1], " ".join(match[2].split()), number.start(), number.end()))
    if len(found) != content.count("<!-- claim"):
        raise saved_runs.BadClaim(f"{page}: a claim is not <!-- claim: FILE FIGURE -->")
    return found


def fault_of(claim):
    """What is wrong with a claim, or nothing."""
    name = claim.file.removeprefix("perf/results/")
    if name == claim.file:
        return f"{claim.page}: {claim.file} is not in perf/results"
    try:
        value = saved_runs.figure(name, claim.expression)
    except (saved_runs.BadClaim, re.error) as error:
        return f"{claim.page}: {claim.printed}: {error}"
    printed = claim.printed.replace(",", "")
    digits = len(printed.partition(".")[2])
    # Half a unit of the last printed digit, and what floats add.
    if abs(value - float(printed)) <= 0.5 * 10.0 ** -digits + 1e-9 * abs(value):
        return ""
    return f"{claim.page}: {claim.printed}, but {claim.file} says {value:.{digits + 2}f} ({claim.expression})"


def read_exceptions(path):
    """{(page, figure): reason}; a line is PAGE | FIGURE | REASON."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            page, figure, reason = (part.strip() for part in line.split(" | "))
            found[page, figure] = reason
    return found


def unclaimed(page, content, exceptions):
    """Figures with a unit that have neither a claim nor an exception; and the exceptions that were used."""
    claimed = {claim.begin for claim in find_claims(page, content)}
    text = COMMENT.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), prose(content))
    missing, used = [], set()
    for match in FIGURE.finditer(text):
        number = 1 if match[1] else 2
        figure = " ".join(match[0].split())
        if match.start(number) in claimed:
            continue
        if (page, figure) in exceptions:
            used.add((page, figure))
        else:
            missing.append(figure)
    return missing, used
