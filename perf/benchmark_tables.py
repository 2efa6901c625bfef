# SPDX-License-Identifier: Apache-2.0
# The tables of README.md and docs/benchmarks.md: each function makes the lines of one generated block from saved runs.
import re

import saved_runs

NAMES = {"all_reduce async": "all_reduce, asynchronous", "8 all_reduce async": "8 asynchronous all_reduce",
         "product and sum": "matrix product, then all_reduce", "training step": "training step (DDP)"}
TIMINGS = {"isolated": "", "loop": " in a row"}
SEQUENCES = {"same": "one broadcast of 800 B", "broadcast": "broadcast, 400 lengths from 800 B",
             "broadcast-roots": "broadcast, 400 lengths, other roots",
             "reduce-roots": "reduce, 400 lengths, other roots",
             "allreduce": "allreduce, 400 lengths", "broadcast-long": "broadcast, 14 lengths to 416 KB",
             "broadcast-long-roots": "broadcast, 14 lengths, other roots",
             "reduce-long-roots": "reduce, 14 lengths, other roots",
             "allreduce-long": "allreduce, 14 lengths to 416 KB",
             "random": "ten kinds, 1 B to 1 MiB", "panels": "broadcast and reduce, 8 B to 8 KiB",
             "sums": "allreduce, 8 B to 64 KiB", "all-short": "seven kinds, 8 B to 64 KiB",
             "all-long": "seven kinds, 64 KiB to 4 MiB"}


def newest(suffix):
    """The name of the last saved run of this kind."""
    found = sorted(path.name for path in saved_runs.RESULTS.glob(f"????-??-??-{suffix}"))
    if not found:
        raise saved_runs.BadClaim(f"there is no saved run DATE-{suffix}")
    return found[-1]


def size(count):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit if count % unit == 0 else round(count / unit)} {name}"
    return f"{count} B" if count else ""


def us(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def times(ratio):
    printed = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
    return f"**{printed}**" if ratio < 1 else printed


def table(head, rows):
    """Without spaces, so that a table is not counted as words."""
    return ["|" + "|".join(cells) + "|" for cells in [head, ["---"] * len(head), *rows]]


def source(name):
    """The host, the commit and the file of a run, as a sentence."""
    host, commit = saved_runs.provenance(name)
    return f"{host}, commit {commit[:7]} ([saved run]({{results}}/{name}))"


def cell_name(row):
    ranks = f", {row['ranks']} ranks" if "ranks" in row else ""
    bytes_ = f" {size(row['bytes'])}" if row["bytes"] else ""
    return f"{row['collective']}{bytes_}{TIMINGS[row['timing']]}{ranks}"


def pick(rows, **wanted):
    found = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    if len(found) != 1:
        raise saved_runs.BadClaim(f"{len(found)} rows have {wanted}")
    return found[0]


# ---- README.md -------------------------------------------------------------------------------------------------------


def results():
    compare, hosts, torch = newest("compare.json"), newest("two-hosts.txt"), newest("compare-torch.txt")
    node, net = saved_runs.comparisons(compare), saved_runs.printed_comparisons(hosts)
    gloo = saved_runs.torch_rows(torch)

    def beside_mpi(rows, where, **cell):
        plain, mapped = pick(rows, memory="malloc", **cell), pick(rows, memory="allocated", **cell)
        return [cell_name(plain) + where, "MPI", us(plain["mpi_us"]), us(plain["time_us"]), times(plain["ratio"]),
                us(mapped["time_us"]), times(mapped["ratio"]), us(plain["limit_us"])]

    def worst(rows):
        row = min((row for row in rows if row["memory"] == "malloc"), key=lambda row: row["ratio"])
        return {name: row[name] for name in ("collective", "timing", "ranks", "bytes") if name in row}

    def beside_gloo(row):
        name = NAMES.get(row["operation"], row["operation"])
        return [f"PyTorch: {name}, {size(row['bytes'])}, {row['ranks']} ranks", "Gloo", us(row["gloo_us"]),
                us(row["time_us"]), times(row["ratio"]), "", "", ""]

    rows = [beside_mpi(node, "", collective="allreduce", timing="isolated", ranks=2, bytes=8),
            beside_mpi(node, "", collective="allreduce", timing="isolated", ranks=4, bytes=524288),
            beside_mpi(node, " (the largest loss)", **worst(node)),
            beside_mpi(net, ", 2 hosts (the largest loss)", **worst(net)),
            beside_gloo(pick(gloo, operation="all_reduce", ranks=2, bytes=65536)),
            beside_gloo(min(gloo, key=lambda row: row["ratio"]))]
    rows[-1][0] += " (the largest loss)"
    varied = [row for row in saved_runs.varied_rows(newest("varied.json")) if row["kind"] == "later"]

    def that_change(row, what=""):
        return [f"{sequence_name(row)}, {row['ranks']} ranks{what}", "MPI", us(row["mpi_us"]), us(row["time_us"]),
                times(row["ratio"]), "", "", ""]

    rows[2:2] = [that_change(pick(varied, ranks=2, sequence="allreduce")),
                 that_change(min(varied, key=lambda row: row["ratio"]), " (the largest loss of calls that change)")]
    return table(["call", "beside", "its time (us)", "torii (us)", "ratio", "mapped memory (us)", "ratio",
                  "limit (us)"], rows)


def sequence_name(row):
    name, unequal, most = row["sequence"].partition("v-")
    if not unequal and row["sequence"] not in SEQUENCES:
        return f"the calls of {name}"
    return SEQUENCES.get(row["sequence"]) or f"{name}v, blocks below {most.replace('K', ' Ki') or ''}B"


def changing():
    """Sequences of calls that change beside the best of the MPIs, in the first pass and later ones."""
    name = newest("varied.json")
    rows = saved_runs.varied_rows(name)
    mpis = sorted({row["mpi"] for row in saved_runs.json_rows(name)})
    ranks = sorted({row["ranks"] for row in rows})
    cells = []
    for sequence in dict.fromkeys(row["sequence"] for row in rows):
        line = [sequence_name({"sequence": sequence})]
        for count in ranks:
            for kind in ("first", "later"):
                for row in rows:
                    if (row["sequence"], row["ranks"], row["kind"]) == (sequence, count, kind):
                        line.append(f"{us(row['mpi_us'])}/{us(row['time_us'])}: {times(row['ratio'])}")
                        break
                else:
                    line.append("")  # the calls of a program, recorded with another number of ranks
        cells.append(line)
    head = ["us of a call: best MPI/torii: ratio"] + [f"{count} ranks, {kind}" for count in ranks
                                                      for kind in ("first", "later")]
    return [f"{source(name)}. Beside {', '.join(mpis)}.", ""] + table(head, cells)


def results_notes():
    compare, hosts, torch = newest("compare.json"), newest("two-hosts.txt"), newest("compare-torch.txt")
    node, net = saved_runs.comparisons(compare), saved_runs.printed_comparisons(hosts)
    calls = saved_runs.side_by_side_rows(newest("inside-open-mpi.txt"))
    return [f"All on {saved_runs.provenance(compare)[0]}; 4 and 8 ranks share them. Commits: "
            f"{saved_runs.provenance(compare)[1][:7]} (one host), {saved_runs.provenance(hosts)[1][:7]} (two), "
            f"{saved_runs.provenance(torch)[1][:7]} (PyTorch). {settings_sentence(compare)} "
            f"torii lost {sum(row['ratio'] < 1 for row in node)} of {len(node)} comparisons on one host and "
            f"{sum(row['ratio'] < 1 for row in net)} of {len(net)} between two, beside Open MPI's defaults; "
            f"coll/torii lost {sum(row['without_us'] < row['with_us'] for row in calls)} of {len(calls)} cells "
            "([all of them](docs/benchmarks.md#losing-cells))."]


# ---- docs/benchmarks.md ----------------------------------------------------------------------------------------------


def settings_sentence(name):
    """The settings of the other libraries, and where they were not measured."""
    rows = saved_runs.json_rows(name)
    cells = {}
    for row in rows:
        cells.setdefault((row["mpi"], row["ranks"]), {}).setdefault(row["setting"], set()).add(
            (row["collective"], row["timing"], row["bytes"]))
    most = {ranks: max(len(found) for (_, other), settings in cells.items() if other == ranks
                       for found in settings.values()) for _, ranks in cells}
    sentences = []
    for mpi in sorted({mpi for mpi, _ in cells}, reverse=True):
        mine = {ranks: settings for (other, ranks), settings in cells.items() if other == mpi}
        settings = [setting.removesuffix(", yield") for setting in mine[min(mine)]]
        shared = [ranks for ranks in mine if all(setting.endswith(", yield") for setting in mine[ranks])]
        names = [{"default": "its defaults"}.get(setting, setting) for setting in settings]
        sentence = f"{mpi} ran with " + (f"{len(names)} settings: {', '.join(names)}" if len(names) > 1 else names[0])
        if shared:
            sentence += f"; at {' and '.join(map(str, sorted(shared)))} ranks with mpi_yield_when_idle"
        few = {}
        for ranks, found in ((ranks, found) for ranks in sorted(mine) for found in mine[ranks].values()):
            if len(found) < most[ranks]:
                cells_ = [dict(zip(("collective", "timing", "bytes"), cell)) for cell in sorted(found)]
                listed_ = ", ".join(map(cell_name, cells_))
                few.setdefault(listed_, []).append(str(ranks))
        for listed_, ranks in few.items():
            sentence += f"; at {' and '.join(ranks)} ranks for {listed_} only"
        sentences.append(sentence + ".")
    return " ".join(sentences)


def settings():
    name = newest("compare.json")
    return [f"{source(name)}. {settings_sentence(name)} MPICH does not yield, so with more ranks than CPUs each of its "
            "messages waits for the scheduler."]


def allreduce():
    rows = saved_runs.comparisons(newest("compare.json"))
    lines = []
    for ranks in (2, 4, 8):
        for bytes_ in (8, 8192, 524288, 33554432):
            cell = {"collective": "allreduce", "timing": "isolated", "ranks": ranks, "bytes": bytes_}
            plain, mapped = pick(rows, memory="malloc", **cell), pick(rows, memory="allocated", **cell)
            lines.append([str(ranks), size(bytes_), us(plain["mpi_us"]),
                          f"{plain['mpi'].rpartition(' ')[0]}, {plain['setting'].removesuffix(', yield')}",
                          us(plain["time_us"]), times(plain["ratio"]), us(plain["limit_us"]), us(mapped["time_us"]),
                          times(mapped["ratio"]), us(mapped["limit_us"])])
    return table(["ranks", "size", "best MPI (us)", "its setting", "malloc (us)", "ratio", "limit (us)",
                  "allocated (us)", "ratio", "limit (us)"], lines)


def collectives():
    rows = [row for row in saved_runs.comparisons(newest("compare.json"))
            if row["timing"] == "isolated" and row["memory"] != "adopted"]
    head, lines = ["isolated, malloc / allocated"], []
    for ranks in (2, 4, 8):
        head += [f"{ranks} ranks, 8 KiB", f"{ranks} ranks, 512 KiB"]
    for collective in saved_runs.COLLECTIVES[1:-1]:
        line = [collective]
        for ranks in (2, 4, 8):
            for bytes_ in (8192, 524288):
                line.append(" / ".join(times(pick(rows, collective=collective, ranks=ranks, bytes=bytes_,
                                                  memory=memory)["ratio"]) for memory in ("malloc", "allocated")))
        lines.append(line)
    return table(head, [[cell.replace(" / ", "/") for cell in line] for line in lines])


def two_hosts():
    name = newest("two-hosts.txt")
    rows = [row for row in saved_runs.printed_comparisons(name) if row["memory"] == "malloc"]
    sizes = sorted({row["bytes"] for row in rows})
    lines = []
    for collective in saved_runs.COLLECTIVES:
        for timing in ("isolated", "loop"):
            mine = [row for row in rows if row["collective"] == collective and row["timing"] == timing]
            if mine:
                lines.append([collective, "isolated" if timing == "isolated" else "in a row"] +
                             [f"{times(row['ratio'])}/{row['limit_us'] / row['time_us']:.2f}" for row in mine])
    return [source(name) + ". Ratio to Open MPI / to plain TCP:", ""] + table(
        ["collective", "timing", *(size(bytes_) for bytes_ in sizes)], lines)


def torus():
    name = newest("lab-torus.txt")
    lines = []
    for match, below in saved_runs.sections(name, r"# torii \S+ commit \S+, (\d+) ranks"):
        network = re.search(r"topology (\S+),", below[0])[1]
        words = next(line for line in below if line.strip() and not line.startswith("#")).split()
        ranks, bytes_, time = int(match[1]), int(words[0]), float(words[5])
        moved = 2 * (ranks - 1) / ranks * bytes_ * 8 / time  # Mbit/s, as busbw counts
        lines.append([network, words[-2], f"{time / 1000:.0f}", f"{100 * moved / 50:.0f} %"])
    ratios = [row for row in saved_runs.printed_comparisons(name) if row["memory"] == "malloc"]
    printed = "; ".join(f"{cell_name(row)} {times(row['ratio'])}" for row in ratios)
    return [source(name) + ":", "", *table(["network", "algorithm", "time (ms)", "busbw over a link's rate"], lines),
            "", f"Ratio to Open MPI on 3 x 3: {printed}."]


def inside():
    name = newest("inside-open-mpi.txt")
    rows = saved_runs.side_by_side_rows(name)
    settings = [setting for setting in dict.fromkeys(row["setting"] for row in rows)]
    lines = []
    for operation in ("allreduce", "reduce", "bcast", "allgather", "alltoall"):
        for bytes_ in (4, 65536, 4194304):
            line = [operation, size(bytes_)]
            for ranks in (2, 4):
                for setting in settings:
                    found = [row for row in rows if row["ranks"] == ranks and row["setting"] == setting and
                             row["operation"] == operation and row["bytes"] == bytes_]
                    line.append(f"{us(found[0]['without_us'])}/{us(found[0]['with_us'])}" if found else "")
            lines.append(line)
    heads = [f"{ranks} ranks, {setting}" for ranks in (2, 4) for setting in settings]
    keep = [at for at in range(len(heads)) if any(line[2 + at] for line in lines)]
    return [source(name) + ". Times in us, without/with coll/torii, medians of three runs:", ""] + table(
        ["call", "size", *(heads[at] for at in keep)],
        [line[:2] + [line[2 + at] for at in keep] for line in lines])


def pytorch():
    name = newest("compare-torch.txt")
    rows = saved_runs.torch_rows(name)
    lines = []
    for row in rows:
        if row["ranks"] != 2 or row["bytes"] == 256:
            continue
        other = pick(rows, ranks=4, operation=row["operation"], bytes=row["bytes"])
        lines.append([NAMES.get(row["operation"], row["operation"]), size(row["bytes"])] +
                     [cell for one in (row, other) for cell in (us(one["gloo_us"]), us(one["time_us"]),
                                                                times(one["ratio"]))])
    return [source(name) + ". Gloo's best round beside torii's median, the lower ratio of two runs:", ""] + table(
        ["operation", "size", "2 ranks: Gloo (us)", "torii (us)", "ratio", "4 ranks: Gloo (us)", "torii (us)", "ratio"],
        lines)


def gloo():
    name = newest("compare-gloo.txt")
    rows = saved_runs.gloo_rows(name)
    lines = []
    for collective in saved_runs.COLLECTIVES:
        line = [collective]
        for ranks in (2, 4):
            ratios = [row["ratio"] for row in rows if row["collective"] == collective and row["ranks"] == ranks]
            ends = (min(ratios), max(ratios)) if ratios else ()
            ends = [f"{end:.0f}" if end >= 100 else f"{end:.1f}" for end in ends]
            line += [" to ".join(dict.fromkeys(ends))]
        if any(line[1:]):
            lines.append(line)
    return [source(name) + ". Ratio from the least to the largest over all sizes:", ""] + table(
        ["collective", "2 ranks", "4 ranks"], lines)


def messages():
    name = newest("sendrecv.txt")
    parts = saved_runs.sections(name, r"# (Open MPI|MPICH) \S+, setting")
    wanted = ("8", "1024", "65536", "4194304")
    lines = []
    for pattern in ("ping-pong", "exchange"):
        for mpi, below in ((match[1], lines_) for match, lines_ in parts):
            ratios = {words[1]: words[5:7] for words in (line.split() for line in below)
                      if len(words) == 7 and words[0] == pattern}
            lines.append([pattern, mpi] + ["/".join(times(float(ratio)) for ratio in ratios[bytes_])
                                           for bytes_ in wanted])
    return [source(name) + ". Ratio of MPI's time to torii's, malloc/allocated:", ""] + table(
        ["pattern", "beside", *(size(int(bytes_)) for bytes_ in wanted)], lines)


def costs():
    name = newest("costs.txt")
    lines = []
    for line in saved_runs.text(name).splitlines():
        cells = re.split(r" {2,}", line.strip())
        if cells[0] in ("2", "8", "64", "128") and cells[1].startswith(("job", "memory of a rank", "make a team")):
            lines.append([cells[1], cells[0], f"{us(float(cells[2]))} {cells[4]}",
                          f"{us(float(cells[3]))} {cells[4]}" if cells[3] != "-" else ""])
    return [source(name) + ":", ""] + table(
        ["cost", "ranks", "torii", "the least that any library would pay"],
        sorted(lines, key=lambda line: (line[0], int(line[1]))))


def programs():
    name = newest("programs.txt")
    found = []
    for line in saved_runs.text(name).splitlines():
        words = line.split()
        if len(words) > 4 and words[0][0].isalpha() and words[5:6] == ["to"]:
            found.append((float(words[3]), words[0]))
    inside_ = ", ".join(f"{program} {ratio:.2f}" for ratio, program in sorted(found))
    host, commit = saved_runs.provenance(name)
    return [f"Host {host}, 4 ranks, commit {commit[:7]} ([saved run]({{results}}/{name})). Time with coll/torii over "
            f"the time without, medians of 7 pairs; above 1 torii is slower: {inside_}."]


def python():
    name = newest("python-calls.txt")
    lines = []
    for line in saved_runs.text(name).splitlines():
        words = line.split()
        if len(words) == 7 and words[1] in ("8", "32768", "1048576"):
            lines.append([words[0], size(int(words[1])), us(float(words[2])), us(float(words[4])),
                          f"{float(words[6]):.2f}"])
    return [source(name) + ":", ""] + table(
        ["call", "size", "from Python (us)", "from C (us)", "Python over C"], lines)


# ---- Losing cells ----------------------------------------------------------------------------------------------------


def listed(rows, name_of):
    """Cells with a ratio below 1, the lowest ratio of each, lowest first."""
    lowest = {}
    for row in rows:
        if row["ratio"] < 1:
            cell = name_of(row)
            lowest[cell] = min(row["ratio"], lowest.get(cell, 1))
    return "; ".join(f"{cell} {ratio:.2f}" for cell, ratio in sorted(lowest.items(), key=lambda one: one[1]))


def losing():
    compare, hosts = newest("compare.json"), newest("two-hosts.txt")
    torch, calls = newest("compare-torch.txt"), newest("inside-open-mpi.txt")
    node, net = saved_runs.comparisons(compare), saved_runs.printed_comparisons(hosts)
    lab = saved_runs.printed_comparisons(newest("lab-torus.txt"))
    inside_ = [{**row, "ratio": row["without_us"] / row["with_us"]} for row in saved_runs.side_by_side_rows(calls)]
    gloo_ = saved_runs.torch_rows(torch)

    def count(rows):
        return f"{sum(row['ratio'] < 1 for row in rows)} of {len(rows)}"

    return [f"- **One host, beside the best MPI**: {count(node)} comparisons. {listed(node, cell_name)}.",
            f"- **Two hosts, beside Open MPI**: {count(net)}. {listed(net, cell_name)}.",
            f"- **Torus of 3 x 3, beside Open MPI**: {count(lab)}. {listed(lab, cell_name)}.",
            f"- **Inside Open MPI**: {count(inside_)} cells. " + listed(
                inside_, lambda row: f"{row['operation']} {size(row['bytes'])}, {row['ranks']} ranks, "
                f"{row['setting']}").replace(" , ", ", ") + ".",
            f"- **PyTorch, beside Gloo**: {count(gloo_)} cells. " + listed(
                gloo_, lambda row: f"{NAMES.get(row['operation'], row['operation'])} {size(row['bytes'])}, "
                f"{row['ranks']} ranks") + ".",
            "- **Sends and receives**, **whole programs**: the tables above."]


BLOCKS = {block.__name__.replace("_", "-"): block
          for block in (results, results_notes, settings, allreduce, collectives, changing, two_hosts, torus, inside,
                        programs, pytorch, gloo, python, messages, costs, losing)}
