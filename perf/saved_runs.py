# SPDX-License-Identifier: Apache-2.0
# Reads the saved runs of perf/results: rows for the tables of documents, and single figures for claims.
"""A claim names a saved run and a figure in it. There are two ways to name a figure:

  /PATTERN/                     the group of a regular expression; its matches in the file, in order
  FIELD of NAME=VALUE ...       a field of the rows that satisfy all conditions (=, <, >); "FIELD" alone: of all rows

Before it may stand min, max, median or count. Without one of them the figure has to be the only one, or for a pattern
the first one. Rows of a comparison (perf/compare) are comparisons: the MPI with the least time, and one kind of memory.
"""
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "perf/results"
MEMORIES = ("malloc", "allocated", "adopted")
COLLECTIVES = ("allreduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "alltoall", "scatter", "gather",
               "barrier")


class BadClaim(Exception):
    """A figure cannot be found; the text says why."""


def text(name, results=RESULTS):
    path = results / name
    if not path.is_file():
        raise BadClaim(f"there is no saved run {name}")
    return path.read_text(encoding="utf-8")


def json_rows(name, results=RESULTS):
    return [json.loads(line) for line in text(name, results).splitlines() if line.startswith("{")]


def best_rows(name, results=RESULTS):
    """Of each cell of a comparison the row with the least MPI time, in the order of compare_report."""
    best = {}
    for row in json_rows(name, results):
        key = (COLLECTIVES.index(row["collective"]), row["timing"], row["ranks"], row["bytes"])
        if key not in best or row["mpi_us"] < best[key]["mpi_us"]:
            best[key] = row
    return [best[key] for key in sorted(best)]


def comparisons(name, results=RESULTS):
    """Each of best_rows() once for every kind of memory, with time_us, ratio, limit_us and over_limit of that kind."""
    rows = []
    for row in best_rows(name, results):
        for memory in MEMORIES:
            limit = row["limit_private_us"] if memory == "malloc" else row["limit_mapped_us"] or row["limit_private_us"]
            time = row[f"torii_{memory}_us"]
            rows.append({**row, "memory": memory, "time_us": time, "ratio": row[f"ratio_{memory}"], "limit_us": limit,
                         "over_limit": time / limit if limit else None})
    return rows


def varied_rows(name, results=RESULTS):
    """Of each sequence of calls that change (perf/varied --summary) and each kind of pass, "first" and "later", the MPI
    with the least time: sequence, ranks, kind, mpi_us, time_us and ratio."""
    best = {}
    for row in json_rows(name, results):
        for kind, suffix in (("first", "_first"), ("later", "")):
            key = (row["ranks"], row["sequence"], kind)
            if key not in best or row[f"mpi{suffix}_us"] < best[key]["mpi_us"]:
                best[key] = {"sequence": row["sequence"], "ranks": row["ranks"], "kind": kind,
                             "setting": row["setting"], "mpi_us": row[f"mpi{suffix}_us"],
                             "time_us": row[f"torii{suffix}_us"], "ratio": row[f"ratio{suffix}"]}
    return list(best.values())


def printed_comparisons(name, results=RESULTS):
    """The rows that compare_mpi printed, once for every kind of memory: a saved run in text."""
    rows = []
    for line in text(name, results).splitlines():
        words = line.split()
        if len(words) < 14 or words[0] not in COLLECTIVES:
            continue
        numbers = [float(word) for word in words[2:12]]
        for at, memory in enumerate(MEMORIES):
            rows.append({"collective": words[0], "timing": words[1], "bytes": int(numbers[0]), "mpi_us": numbers[1],
                         "memory": memory, "time_us": numbers[2 + at], "ratio": numbers[1] / numbers[2 + at],
                         "limit_us": numbers[8]})
    return rows


def sections(name, heading, results=RESULTS):
    """The lines below each line that `heading` matches: pairs of the match and the lines."""
    found = []
    for line in text(name, results).splitlines():
        match = re.match(heading, line)
        if match:
            found.append((match, []))
        elif found:
            found[-1][1].append(line)
    return found


def torch_rows(name, results=RESULTS):
    """Of each cell of perf/compare_torch the run with the lowest ratio of Gloo's best round to torii's median."""
    lowest = {}
    for match, lines in sections(name, r"(\d+) ranks, \d+ rounds", results):
        for line in lines:
            row = re.match(r"(\S.{18,}?) +(\d+) +([\d.]+) +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+ +([\d.]+)", line)
            if row:
                torii, gloo = float(row[3]), float(row[4])
                key = (int(match[1]), row[1].strip(), int(row[2]))
                new = {"ranks": key[0], "operation": key[1], "bytes": key[2], "time_us": torii, "gloo_us": gloo,
                       "ratio": gloo / torii}
                if key not in lowest or new["ratio"] < lowest[key]["ratio"]:
                    lowest[key] = new
    return list(lowest.values())


def gloo_rows(name, results=RESULTS):
    rows = []
    for match, lines in sections(name, r"# Gloo \S+, (\d+) ranks", results):
        for line in lines:
            words = line.split()
            if len(words) == 10 and words[0] in COLLECTIVES:
                rows.append({"ranks": int(match[1]), "collective": words[0], "bytes": int(words[1]),
                             "time_us": float(words[2]), "gloo_us": float(words[5]), "ratio": float(words[6])})
    return rows


def side_by_side_rows(name, results=RESULTS):
    """Of each cell of mpi_side_by_side, under each setting of Open MPI, the medians over the runs."""
    cells = {}
    for match, lines in sections(name, r"# (\d+) ranks, setting: ([^,\n]*)", results):
        for line in lines:
            row = re.match(r"(\S.*?) +(\d+) +([\d.]+) +([\d.]+) +[\d.]+$", line)
            if row:
                cell = cells.setdefault((int(match[1]), match[2], row[1], int(row[2])), ([], []))
                cell[0].append(float(row[3]))
                cell[1].append(float(row[4]))
    return [{"ranks": ranks, "setting": setting, "operation": operation, "bytes": bytes_,
             "without_us": statistics.median(without), "with_us": statistics.median(with_torii)}
            for (ranks, setting, operation, bytes_), (without, with_torii) in cells.items()]


def provenance(name, results=RESULTS):
    """(host, commit) of a saved run. A run without them proves nothing to a reader, so that is an error."""
    rows = json_rows(name, results) if name.endswith(".json") else []
    if rows and "host" in rows[0]:
        return rows[0]["host"], rows[0]["commit"]
    content = text(name, results)
    host = re.search(r"^# *[Hh]ost:? +([^;\n]*?)(?:[,;] (?:\d+ ranks|commit|idle|which|built)|\n|;)", content, re.M)
    commit = re.search(r"\bcommit:? +([0-9a-f]{7,12})\b", content)
    if not host or not commit:
        raise BadClaim(f"{name} does not say its host and commit")
    return host[1].replace(" virtual", ""), commit[1]


def rows_of(name, results=RESULTS):
    rows = json_rows(name, results)
    return comparisons(name, results) if rows and "ratio_malloc" in rows[0] else rows


def satisfies(row, condition):
    match = re.fullmatch(r"(\w+)([=<>])(.+)", condition)
    if not match:
        raise BadClaim(f"the condition '{condition}' is not NAME=VALUE, NAME<VALUE or NAME>VALUE")
    name, sign, value = match.groups()
    if name not in row:
        return False
    if sign == "=":
        return str(row[name]) == value
    return row[name] < float(value) if sign == "<" else row[name] > float(value)


def figures(name, expression, results=RESULTS):
    pattern = re.fullmatch(r"/(.*)/", expression)
    if pattern:
        if re.compile(pattern[1]).groups != 1:
            raise BadClaim(f"the pattern of '{expression}' needs one group")
        return [float(figure) for figure in re.findall(pattern[1], text(name, results), re.M)]
    field, _, conditions = expression.partition(" of ")
    if not re.fullmatch(r"\w+", field):
        raise BadClaim(f"'{expression}' is neither /PATTERN/ nor FIELD of NAME=VALUE ...")
    rows = [row for row in rows_of(name, results) if all(satisfies(row, part) for part in conditions.split())]
    return [float(row[field]) for row in rows if row.get(field) is not None]


def figure(name, expression, results=RESULTS):
    """The figure that a claim means; BadClaim if there is none, or several."""
    summary, _, rest = expression.partition(" ")
    functions = {"min": min, "max": max, "median": statistics.median, "count": len}
    if summary not in functions:
        found = figures(name, expression, results)
        if len(set(found)) > 1 and not expression.startswith("/"):
            raise BadClaim(f"'{expression}' fits {len(found)} rows of {name}; give more conditions")
        functions, summary = {"": lambda values: values[0]}, ""
    else:
        found = figures(name, rest, results)
    if not found and summary != "count":
        raise BadClaim(f"'{expression}' is nowhere in {name}")
    return float(functions[summary](found))
