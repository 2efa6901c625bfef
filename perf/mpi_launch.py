#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The MPIs that perf/varied and perf/compare run beside torii: those of Debian, and others named by --mpi.
"""Makes the programs of an MPI that is not Debian's, and says how its ranks are started.

mpi_launch.py add NAME=PREFIX BIN FOLDER      compiles the module, links the programs of BIN into FOLDER
mpi_launch.py command NAME[=PREFIX] RANKS     the words that start ranks, a line each"""
import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("busy_perf", "compare_mpi", "sendrecv_perf", "varied_perf")
DEBIAN = ("openmpi", "mpich")


EXIT_BAD_COMMAND_LINE, EXIT_NOT_POSSIBLE = 2, 3


class CannotUse(Exception):
    """An MPI that cannot be used, and why; `code` is the exit code of a script that was asked to."""

    def __init__(self, text, code=EXIT_NOT_POSSIBLE):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Mpi:
    name: str
    prefix: str = ""  # of an MPI that is not Debian's

    @functools.cached_property
    def launcher(self):
        names = [f"mpirun.{self.name}"]
        if self.prefix:
            names = [f"{self.prefix}/bin/mpirun", f"{self.prefix}/bin/mpiexec"]
        found = [path for path in map(shutil.which, names) if path]
        if not found:
            raise CannotUse(f"there is no {' and no '.join(names)}")
        return found[0]

    @functools.cached_property
    def kind(self):
        """openmpi, mpich or intel: what its mpirun says of itself."""
        said = subprocess.run([*self.environment("openmpi"), self.launcher, "--version"], capture_output=True,
                              text=True, check=False)
        text = said.stdout + said.stderr
        for word, kind in (("Open MPI", "openmpi"), ("OpenRTE", "openmpi"), ("Intel", "intel"), ("HYDRA", "mpich"),
                           ("mpich", "mpich")):
            if word in text:
                return kind
        raise CannotUse(f"'{self.launcher} --version' names neither Open MPI nor MPICH nor Intel MPI")

    def environment(self, kind):
        """What tells an MPI that was moved where it is now."""
        if not self.prefix:
            return []
        # Intel's mpirun is a script that runs the first mpiexec.hydra it finds.
        words = ["env", f"PATH={self.prefix}/bin:{os.environ.get('PATH', '')}", f"LD_LIBRARY_PATH={self.prefix}/lib",
                 f"I_MPI_ROOT={self.prefix}"]
        if kind == "openmpi" and os.path.exists(f"{self.prefix}/share/openmpi"):
            words += [f"{name}_PREFIX={self.prefix}" for name in ("OPAL", "PMIX", "PRTE")]
        if kind == "intel":
            words.append("I_MPI_FABRICS=shm")
        return words

    def command(self, ranks):
        """Starts `ranks` ranks on this machine; they wait by yielding where they outnumber the CPUs."""
        crowded = ranks > len(os.sched_getaffinity(0))
        words = self.environment(self.kind)
        if self.kind == "intel" and crowded:
            words += ["I_MPI_PIN=off", "I_MPI_THREAD_YIELD=2"]
        words += [self.launcher, "-n", str(ranks)]
        if self.kind == "openmpi" and os.getuid() == 0:
            words.append("--allow-run-as-root")
        if self.kind == "openmpi" and crowded:
            words += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        return words

    def why_not(self, ranks):
        """Why this many ranks would say nothing about it, or nothing."""
        if self.kind == "mpich" and ranks > len(os.sched_getaffinity(0)):
            return "its ranks spin without yielding, so each message waits for a time slice of the system"
        return ""


def parse(text):
    name, _, prefix = text.partition("=")
    if not re.fullmatch(r"[a-z0-9_-]+", name) or name in DEBIAN or not prefix:
        raise CannotUse(f"--mpi '{text}' is not NAME=PREFIX, with a name of small letters and digits other than "
                        f"{' and '.join(DEBIAN)}", EXIT_BAD_COMMAND_LINE)
    prefix = os.path.abspath(prefix)
    if not os.path.exists(f"{prefix}/include/mpi.h"):
        raise CannotUse(f"--mpi '{text}': there is no {prefix}/include/mpi.h", EXIT_BAD_COMMAND_LINE)
    return Mpi(name, prefix)


def add(mpi, binaries, folder):
    """Compiles the one file that sees the MPI's header, and links the programs beside it."""
    libraries = sorted(pathlib.Path(mpi.prefix, "lib").glob("libmpi.so*"), key=lambda path: len(path.name))
    if not libraries:
        raise CannotUse(f"there is no {mpi.prefix}/lib/libmpi.so")
    # In the sources this folder is `perf` itself; installed, it has a folder of that name.
    top = HERE.parent if HERE.name == "perf" else HERE
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{top}", f"-I{top}/include",
               f"-I{mpi.prefix}/include", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", str(top / "perf/mpi_module.cpp"),
               "-o", f"{folder}/torii_mpi_{mpi.name}.so", str(libraries[0]), f"-Wl,-rpath,{mpi.prefix}/lib"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise CannotUse(f"the module of {mpi.name} cannot be compiled: {' '.join(command)}:\n{made.stderr[:2000]}")
    for program in PROGRAMS:
        of_debian = [pathlib.Path(binaries, f"{program}.{name}").resolve() for name in DEBIAN]
        found = [path for path in of_debian if path.exists()]
        if not found:
            raise CannotUse(f"no {program} in '{binaries}': run ./dev build with Open MPI or MPICH installed")
        pathlib.Path(folder, f"{program}.{mpi.name}").symlink_to(found[0])


def main():
    try:
        if len(sys.argv) == 5 and sys.argv[1] == "add":
            add(parse(sys.argv[2]), sys.argv[3], sys.argv[4])
        elif len(sys.argv) == 4 and sys.argv[1] == "command":
            mpi = parse(sys.argv[2]) if "=" in sys.argv[2] else Mpi(sys.argv[2])
            print("\n".join(mpi.command(int(sys.argv[3]))))
        else:
            print(__doc__, file=sys.stderr)
            sys.exit(EXIT_BAD_COMMAND_LINE)
    except CannotUse as error:
        print(error, file=sys.stderr)
        sys.exit(error.code)


if __name__ == "__main__":
    main()
