# SPDX-License-Identifier: Apache-2.0
# Draws the chart of README.md from saved runs: torii beside the best MPI in repeated calls and in calls that change,
# the limit, and Gloo under PyTorch.
import html
import math
import statistics

import saved_runs

WIDTH, HEIGHT = 1330, 448
PANEL_WIDTH, PANEL_TOP, PANEL_BOTTOM, PANEL_LEFT, PANEL_STEP = 262, 92, 350, 52, 330

STYLE = """<style>
svg { --ground: #ffffff; --ink: #1f2328; --faint: #d0d7de; --note: #57606a;
  --a: #0072b2; --b: #b35900; --bad: #cc1133; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0d1117; --ink: #e6edf3; --faint: #3d444d; --note: #9198a1;
    --a: #56b4e9; --b: #e69f00; --bad: #ff6b81; }
}
text { font-family: sans-serif; font-size: 12px; fill: var(--ink); }
.title { font-size: 14px; font-weight: bold; }
.note { font-size: 11px; fill: var(--note); }
.ground { fill: var(--ground); }
.grid { stroke: var(--faint); }
.one { stroke: var(--ink); stroke-width: 1.5; }
.a { fill: var(--a); } .b { fill: var(--b); }
.line { fill: none; stroke-width: 2; }
.line.a { stroke: var(--a); fill: none; } .line.b { stroke: var(--b); fill: none; }
.lost { fill: none; stroke: var(--bad); stroke-width: 1.5; }
.bad { fill: var(--bad); }
</style>"""

SIZES = ((8, "8 B"), (1 << 10, "1 K"), (1 << 15, "32 K"), (1 << 20, "1 M"), (1 << 25, "32 M"))
SIZE_LEAST, SIZE_MOST = 2, 1 << 26  # a barrier has no bytes and is drawn at the left edge


def text(x, y, words, style="", anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{html.escape(words)}</text>'


class Panel:
    """Ratios over lengths, or over `columns`: the names of kinds."""

    def __init__(self, number, title, least, most, marks, columns=()):
        self.left = PANEL_LEFT + PANEL_STEP * number
        self.least, self.most = least, most
        self.parts = [text(self.left + PANEL_WIDTH / 2, PANEL_TOP - 14, title, "title")]
        for mark in marks:
            y = self.y(mark)
            self.parts.append(f'<line x1="{self.left}" x2="{self.left + PANEL_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" '
                              f'class="{"one" if mark == 1 else "grid"}"/>')
            self.parts.append(text(self.left - 6, y + 4, f"{mark:g}x", anchor="end"))
        self.columns = len(columns)
        for at, name in enumerate(columns):
            self.parts.append(text(self.column(at), PANEL_BOTTOM + 18, name))
        for size, name in () if columns else SIZES:
            self.parts.append(text(self.x(size), PANEL_BOTTOM + 18, name))

    def column(self, at):
        return self.left + PANEL_WIDTH * (at + 0.5) / self.columns

    def x(self, size):
        share = math.log(max(size, SIZE_LEAST) / SIZE_LEAST) / math.log(SIZE_MOST / SIZE_LEAST)
        return self.left + PANEL_WIDTH * share

    def y(self, ratio):
        inside = min(max(ratio, self.least), self.most)
        return PANEL_BOTTOM - (PANEL_BOTTOM - PANEL_TOP) * math.log(inside / self.least) / math.log(
            self.most / self.least)

    def dots(self, points, style, shift, may_lose):
        for size, ratio in points:
            self.dot(self.x(size) + shift, ratio, style, may_lose)

    def dot(self, x, ratio, style, may_lose):
        y = self.y(ratio)
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" class="{style}" opacity="0.55"/>')
        if may_lose and ratio < 1:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="lost"/>')

    def line(self, points, style):
        places = " ".join(f"{self.x(size):.1f},{self.y(ratio):.1f}" for size, ratio in sorted(points))
        self.parts.append(f'<polyline points="{places}" class="line {style}"/>')

    def key(self, row, style, words):
        y = PANEL_BOTTOM + 36 + 15 * row
        self.parts.append(f'<circle cx="{self.left + 4}" cy="{y - 4}" r="4" class="{style}"/>')
        self.parts.append(text(self.left + 14, y, words, "note", "start"))


def medians(points):
    sizes = {}
    for size, ratio in points:
        sizes.setdefault(size, []).append(ratio)
    return [(size, statistics.median(ratios)) for size, ratios in sizes.items() if size > 0]


def compared(panel, rows, field, may_lose):
    for style, shift, memories in (("a", -1.5, ("malloc",)), ("b", 1.5, ("allocated", "adopted"))):
        points = [(row["bytes"], row[field]) for row in rows if row["memory"] in memories and row[field]]
        panel.dots(points, style, shift, may_lose)
        panel.line(medians(points), style)


def changing(panel, rows, kinds):
    """A column for each number of ranks and kind of pass: its dots side by side, a line at their median."""
    for at, (ranks, kind) in enumerate(kinds):
        ratios = [row["ratio"] for row in rows if (row["ranks"], row["kind"]) == (ranks, kind)]
        style = "a" if kind == "later" else "b"
        for place, ratio in enumerate(ratios):
            panel.dot(panel.column(at) + 2 * (place - len(ratios) / 2), ratio, style, True)
        if ratios:
            x, y = panel.column(at), panel.y(statistics.median(ratios))
            panel.parts.append(f'<polyline points="{x - 25:.1f},{y:.1f} {x + 25:.1f},{y:.1f}" class="line {style}"/>')


def draw(compare, torch, varied, results=saved_runs.RESULTS):
    """The chart as text, from a run of perf/compare, one of perf/compare_torch and one of perf/varied --summary."""
    rows = saved_runs.comparisons(compare, results)
    host, commit = saved_runs.provenance(compare, results)
    torch_host, torch_commit = saved_runs.provenance(torch, results)
    lost = sum(row["ratio"] < 1 for row in rows)
    mpi = Panel(0, "repeated calls, beside the best MPI", 0.5, 32, (0.5, 1, 2, 4, 8, 16, 32))
    compared(mpi, rows, "ratio", True)
    mpi.key(0, "a", "any memory (malloc)")
    mpi.key(1, "b", "memory that peers map (allocated, adopted)")
    mpi.key(2, "lost", f"slower than MPI: {lost} of {len(rows)}")
    kinds = [(ranks, kind) for ranks in (2, 4) for kind in ("first", "later")]
    change = Panel(1, "calls that change, beside the best MPI", 0.125, 8, (0.125, 0.25, 0.5, 1, 2, 4, 8),
                   [f"{ranks}, {kind}" for ranks, kind in kinds])
    sequences = saved_runs.varied_rows(varied, results)
    changing(change, [row for row in sequences if row["sequence"] != "same"], kinds)
    change.key(0, "b", "by ranks; first: the first pass on new teams")
    change.key(1, "a", "later: other passes of the sequence")
    limit = Panel(2, "repeated calls, beside the limit", 0.125, 8, (0.125, 0.25, 0.5, 1, 2, 4, 8))
    reach = [{**row, "speed": 1 / row["over_limit"] if row["over_limit"] else None} for row in rows]
    compared(limit, reach, "speed", False)
    limit.key(0, "a", "colours as on the far left; the limit: hand-written")
    more = "loops that move the same bytes, by turns"
    limit.parts.append(text(limit.left + 14, PANEL_BOTTOM + 51, more, "note", "start"))
    gloo = Panel(3, "PyTorch all_reduce, beside Gloo", 1, 256, (1, 4, 16, 64, 256))
    for style, ranks in (("a", 2), ("b", 4)):
        points = [(row["bytes"], row["ratio"]) for row in saved_runs.torch_rows(torch, results)
                  if row["ranks"] == ranks and row["operation"] == "all_reduce"]
        gloo.dots(points, style, 0, True)
        gloo.line(points, style)
        gloo.key(0 if ranks == 2 else 1, style, f"{ranks} ranks")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
             f'height="{HEIGHT}" role="img">', "<title>torii beside the best MPI, the limit, and Gloo</title>", STYLE,
             f'<rect width="{WIDTH}" height="{HEIGHT}" class="ground"/>',
             text(PANEL_LEFT, 26, "How many times faster torii is", "title", "start"),
             text(PANEL_LEFT, 44, "Above 1x torii is faster. A dot is one comparison, a line the median of a size. "
                  "2, 4 and 8 ranks on 2 CPUs, all collectives over shared memory.", "note", "start")]
    for panel in (mpi, change, limit, gloo):
        parts += panel.parts
    parts.append(text(PANEL_LEFT, HEIGHT - 8, f"{host}; commit {commit[:7]} (MPI, limit: perf/compare), "
                      f"{saved_runs.json_rows(varied, results)[0]['commit'][:7]} (calls that change: perf/varied), "
                      f"{torch_commit[:7]} (Gloo: perf/compare_torch)" + (
                          "" if torch_host == host else f" on {torch_host}"), "note", "start"))
    return "\n".join(parts + ["</svg>"]) + "\n"
