# SPDX-License-Identifier: Apache-2.0
# Finds the figures of a page that claims.txt says come from saved runs, and those that should be there.
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "perf"))
import saved_runs  # noqa: E402

# Pages in which every figure with a unit needs a claim or an exception. In other pages what is claimed is compared.
STRICT_PAGES = ("README.md", "docs/benchmarks.md")
PLACE = "{}"  # where an excerpt has a figure
NUMBER = r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)(?![\d]|[.,]\d)"
# A figure with a unit, or a ratio.
FIGURE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?:\s?(?:%|[GM]B/s|[GM]bit/s)|\s(?:us|ms|ns|times)\b|x\b)"
                    r"|\bratio\s(?:\w+\s){0,2}(\d[\d,]*(?:\.\d+)?)")

# An excerpt of a page, and for each of its figures where a saved run says it: pairs of file and expression.
Excerpt = collections.namedtuple("Excerpt", "page text figures")
Claim = collections.namedtuple("Claim", "page printed file expression begin end")


def pages(root=ROOT):
    """Every page of the documentation, as a path below the root."""
    found = [path for path in root.glob("*.md")] + list((root / "docs").rglob("*.md"))
    return sorted(str(path.relative_to(root)) for path in found)


def blanked(content, *patterns):
    """The content with the same length and lines, without what the patterns match."""
    for pattern in patterns:
        content = re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match[0]), content, flags=re.S | re.M)
    return content


def read_excerpts(text):
    """The excerpts of claims.txt, whose first lines say how it is written."""
    found, page = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip(" "))
        if indent == 0:
            page = line
        elif indent == 2 and page:
            found.append(Excerpt(page, line.strip(), []))
        elif indent == 4 and found and found[-1].page == page and " " in line.strip():
            found[-1].figures.append(tuple(line.strip().split(" ", 1)))
        else:
            raise saved_runs.BadClaim(f"claims.txt:{number}: neither a page, an excerpt nor FILE EXPRESSION")
    for excerpt in found:
        if not excerpt.figures or len(excerpt.figures) != excerpt.text.count(PLACE):
            raise saved_runs.BadClaim(f"{excerpt.page}: '{excerpt.text}' has {excerpt.text.count(PLACE)} places and "
                                      f"{len(excerpt.figures)} figures")
    return found


def find_claims(page, content, excerpts):
    """The claims of a page in their order. BadClaim if an excerpt is not there exactly once, or claims a figure that
    another one claims."""
    content = blanked(content, r"^```.*?^```", r"<!-- generated:.*?<!-- end -->")
    found = []
    for excerpt in excerpts:
        if excerpt.page != page:
            continue
        words = (r"\s+".join(map(re.escape, part.split(" "))) for part in excerpt.text.split(PLACE))
        # Within a look-ahead, matches that overlap are found, too.
        matches = list(re.finditer(f"(?={NUMBER.join(words)})", content))
        if len(matches) != 1:
            raise saved_runs.BadClaim(f"{page}: '{excerpt.text}' is there {len(matches)} times, and not once")
        for at, (file, expression) in enumerate(excerpt.figures, 1):
            found.append(Claim(page, matches[0][at], file, expression, *matches[0].span(at)))
    found.sort(key=lambda claim: claim.begin)
    for one, other in zip(found, found[1:]):
        if one.begin == other.begin:
            raise saved_runs.BadClaim(f"{page}: {one.printed} is claimed twice: {one.expression}, {other.expression}")
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


def unclaimed(page, content, excerpts, exceptions):
    """Figures with a unit that have neither a claim nor an exception; and the exceptions that were used."""
    claimed = {claim.begin for claim in find_claims(page, content, excerpts)}
    text = blanked(content, r"^```.*?^```", r"<!-- generated:.*?<!-- end -->", r"`[^`\n]*`", r"<!--.*?-->")
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
