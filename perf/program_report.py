# SPDX-License-Identifier: Apache-2.0
# The tables of perf/programs, from its JSON rows.
import statistics

import paired_ratios
from program_runs import COMPARED, WAYS

HEAD = (f"{'program':18} {'ranks':>5} {'turns':>5} {'plain, s':>8}  {'plain again':22} {'torii':29} {'delay 0':29}")


class BadRows(Exception):
    """Rows of JSON are not those of perf/programs; the text says why."""


def times_of(rows):
    """By way, the seconds of all turns in which every way has run."""
    turns = {}
    for row in rows:
        if row["what"] == "time":
            turns.setdefault(row["turn"], {})[row["way"]] = row["seconds"]
    complete = [ways for _, ways in sorted(turns.items()) if set(ways) == set(WAYS)]
    return {way: [ways[way] for ways in complete] for way in WAYS}


def ratios_of(times, way):
    return [one / plain for one, plain in zip(times[way], times["plain"])]


def by_cell(rows):
    """The rows of each program and number of ranks."""
    cells = {}
    for row in rows:
        if not {"program", "ranks", "way", "what", "turn", "seconds"} <= row.keys():
            raise BadRows(f"a row has no program, ranks, way, what, turn or seconds: {str(row)[:100]}")
        cells.setdefault((row["program"], row["ranks"]), []).append(row)
    return cells


def ratio_text(ratios):
    found = paired_ratios.interval(ratios)
    return f"{statistics.median(ratios):.3f} " + (f"[{found[0]:.3f}, {found[1]:.3f}]" if found else "[too few]")


def cell_line(cell, rows, comparisons):
    """One line of the first table, or nothing if no turn is complete."""
    times = times_of(rows)
    if not times["plain"]:
        return ""
    name, ranks = cell
    columns = [f"{ratio_text(ratios_of(times, way))} {paired_ratios.verdict(ratios_of(times, way), comparisons):4}"
               for way in COMPARED]
    return (f"{name:18} {ranks:5} {len(times['plain']):5} {statistics.median(times['plain']):8.3f}  "
            f"{ratio_text(ratios_of(times, 'again')):22} {columns[0]:29} {columns[1]:29}").rstrip()


def where_lines(cell, rows):
    """Where the time goes: a line for each way of which a run has told it."""
    for row in (row for row in rows if row["what"] == "calls"):
        left = ", ".join(f"{count} {reason}" for reason, count in sorted(row["left"].items())) or "none"
        known = row["way"] in COMPARED
        yield (f"{cell[0]:18} {cell[1]:5} {row['way']:8} {row['calls']:9} {row['in_calls_s']:8.3f}"
               + (f" {row['taken']:9} {row['teams']:6} {row['team_s'] * 1e3:8.2f}  {left}" if known else ""))


def summary(cells, comparisons):
    found = {paired_ratios.LOSS: [], paired_ratios.GAIN: []}
    for (name, ranks), rows in cells.items():
        times = times_of(rows)
        for way in COMPARED:
            judged = paired_ratios.verdict(ratios_of(times, way), comparisons)
            if judged in found:
                found[judged].append(f"{name} on {ranks} ranks ({way})")
    return (f"# losses: {', '.join(found[paired_ratios.LOSS]) or 'none'}\n"
            f"# gains: {', '.join(found[paired_ratios.GAIN]) or 'none'}")


def own_rows(cells):
    """The rows of programs that print names and microseconds themselves: medians by way."""
    for (name, ranks), rows in cells.items():
        timed = [row for row in rows if row["what"] == "time" and row.get("rows")]
        for own in timed[0]["rows"] if timed else ():
            medians = {way: statistics.median(row["rows"][own] for row in timed if row["way"] == way) for way in WAYS
                       if any(row["way"] == way for row in timed)}
            yield f"{name:18} {ranks:5} {own:12} " + " ".join(f"{way} {value:.2f}" for way, value in medians.items())


def head(rows):
    return sorted({f"# host {row['host']}, {row['cpus']} CPUs, commit {row['commit']}"
                   + (f", coll/torii with {row['mca']}" if row["mca"] else "") for row in rows})


def report(rows):
    """Prints everything that saved rows say."""
    cells = by_cell(rows)
    comparisons = len(COMPARED) * len(cells)
    print("\n".join(head(rows) + [HEAD]))
    for cell, some in cells.items():
        print(cell_line(cell, some, comparisons) or f"{cell[0]:18} {cell[1]:5}     no complete turn")
    finish(cells, comparisons)


def finish(cells, comparisons):
    """Prints what stands below the first table."""
    print(summary(cells, comparisons))
    print(f"# ratios of paired times: median [95 % interval]; verdicts after correction for {comparisons} comparisons")
    lines = [line for cell, rows in cells.items() for line in where_lines(cell, rows)]
    if lines:
        print("\n# where the time goes: blocking collectives of all ranks; seconds and teams of the rank with most;\n"
              "# torii takes or leaves non-blocking ones too, and sees none of groups of one rank\n"
              f"{'program':18} {'ranks':>5} {'way':8} {'calls':>9} {'in, s':>8} {'taken':>9} {'teams':>6}"
              f" {'made, ms':>8}  left")
        print("\n".join(lines))
    own = list(own_rows(cells))
    if own:
        print("\n# us, medians\n" + "\n".join(own))
