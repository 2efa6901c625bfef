# SPDX-License-Identifier: Apache-2.0
# One run of an MPI program for perf/programs: in a way, with a library before MPI that takes times.
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Plain Open MPI runs twice in a turn: its ratio to itself shows how much equal runs differ.
WAYS = {"plain": [], "again": [], "torii": ["coll_torii_enable", "1"],
        "delay-0": ["coll_torii_enable", "1", "coll_torii_delay", "0"]}
COMPARED = ("torii", "delay-0")
TIME, CALLS, RECORD = "program_time", "call_times", "record"
VARIABLES = {TIME: "TORII_PROGRAM_TIME", CALLS: "TORII_CALL_TIMES", RECORD: "TORII_RECORD"}
DEADLINE_S = 180


WORK_BEGIN, GROWTH_MOST = 0.05, 10


def fitting_work(seconds_of, is_most, seconds):
    """The work that takes at least `seconds`, and what it took. `seconds_of` runs so much work; `is_most` tells that
    more makes no difference. A run may be slow by chance, so the faster of two counts in the end."""
    work = WORK_BEGIN
    while True:
        took = seconds_of(work)
        if took >= seconds:
            took = min(took, seconds_of(work))
        if took >= seconds or is_most(work):
            return work, took
        work = round(work * min(1.2 * seconds / took, GROWTH_MOST), 4)


class CannotRun(Exception):
    """Nothing can be measured here, and why."""


class Place:
    """Where the programs and the component of a build are."""

    def __init__(self, folder):
        installed = (HERE / "mpi_communicators").exists()
        self.bin = pathlib.Path(folder) if folder else HERE if installed else HERE.parent / "build/release/bin"
        tops = [self.bin.parent, self.bin.parent.parent]
        found = [file.resolve().parent for top in tops for pattern in ("", "*/")
                 for file in (top / "lib").glob(pattern + "torii/openmpi/mca_coll_torii.so")]
        if shutil.which("mpirun.openmpi") is None:
            raise CannotRun("there is no mpirun.openmpi: install openmpi-bin")
        if not found:
            raise CannotRun(f"no component beside '{self.bin}': run ./dev build, or give --bin")
        self.component = found[0]

    def preloaded(self, what):
        return self.bin.resolve() / f"torii_{what}_openmpi.so"


@dataclasses.dataclass
class Job:
    """A program with so much work on so many ranks."""

    program: object
    ranks: int
    work: float = 1
    mca: list = dataclasses.field(default_factory=list)  # more parameters for coll/torii: pairs


@dataclasses.dataclass
class Run:
    """What one run has shown."""

    output: str
    numbers: list  # a line of numbers of each rank, from the library before MPI
    taken: int = 0
    left: dict = dataclasses.field(default_factory=dict)  # reason: calls
    teams: int = 0  # the most of a rank; so are the times
    team_s: float = 0
    context_s: float = 0

    def seconds(self):
        """From the end of MPI_Init to the beginning of MPI_Finalize, of the slowest rank."""
        return max(line[0] for line in self.numbers)


def command_of(job, way, place, folder, what):
    words = ["mpirun.openmpi", "--oversubscribe", "-n", str(job.ranks), "-x", f"LD_PRELOAD={place.preloaded(what)}",
             "-x", f"{VARIABLES[what]}={folder}/numbers"]
    parameters = list(WAYS[way])
    if way in COMPARED:
        parameters += ["coll_torii_verbose", "1"]
        parameters += [word for pair in job.mca for word in pair]
    for name, value in zip(parameters[::2], parameters[1::2]):
        words += ["--mca", name, value]
    return words + job.program.command(place.bin, job.work, job.ranks)


def sum_of(text):
    return sum(int(count) for count in re.findall(r"=(\d+)", text))


def counters(run):
    """Reads what the component prints at the end of each rank (plugins/openmpi/coll_torii_report.c)."""
    for text in re.findall(r"coll/torii: taken (.*)", run.output):
        run.taken += sum_of(text)
    for reason, text in re.findall(r"coll/torii: left, ([^:]+): (.*)", run.output):
        run.left[reason] = run.left.get(reason, 0) + sum_of(text)
    for found in re.findall(r"coll/torii: set-up: (\d+) teams in (\d+) us, the context in (\d+) us", run.output):
        teams, team_us, context_us = map(int, found)
        run.teams, run.team_s = max(run.teams, teams), max(run.team_s, team_us / 1e6)
        run.context_s = max(run.context_s, context_us / 1e6)


def run_once(job, way, place, what=TIME, keep=None):
    """Runs a job in a way. `keep`: what to do with the folder before it goes. RuntimeError with the end of the
    output if the program fails, does not prove its result, or has no times."""
    program = job.program
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       **program.environment)
    if way in COMPARED:
        environment["OMPI_MCA_mca_base_component_path"] = f"{place.component}:SYSTEM_DEFAULT"
    with tempfile.TemporaryDirectory() as name:
        numbers, folder = pathlib.Path(name), pathlib.Path(name) / "run"
        folder.mkdir()
        program.prepare(folder, job.work, job.ranks)
        with open(folder / program.input if program.input else os.devnull, "rb") as data:
            done = subprocess.run(command_of(job, way, place, numbers, what), cwd=folder, env=environment, stdin=data,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
        output = done.stdout.decode(errors="replace")
        shown = output + program.report(folder)
        if done.returncode != 0 or not re.search(program.proof, shown):
            raise RuntimeError(f"{way}: code {done.returncode}, or its output is not '{program.proof}':\n"
                               + output[-1500:])
        files = [numbers / f"numbers.{rank}" for rank in range(job.ranks)]
        if not all(file.exists() for file in files):
            raise RuntimeError(f"{way}: not every rank wrote its times; is {place.preloaded(what)} there?\n"
                               + output[-500:])
        if keep:
            keep(numbers / "numbers")
            return None
        run = Run(output, [[float(word) for word in file.read_text().split()] for file in files])
    counters(run)
    if way in COMPARED and "coll/torii: taken " not in output:
        raise RuntimeError(f"{way}: no counters, so Open MPI ran its own collectives:\n" + output[-500:])
    return run
