# SPDX-License-Identifier: Apache-2.0
# The programs that perf/programs times: where Debian puts them, their inputs, and how one sees that they succeeded.
import dataclasses
import functools
import gzip
import itertools
import pathlib
import subprocess
import typing

SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests"
PETSC = "/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages"


@dataclasses.dataclass
class Program:
    """A program with an input: of a fixed size, or of one that grows with the work."""

    name: str
    kind: str  # of communication
    package: str
    files: list  # the program first; names without a slash are in the build's folder
    arguments: list = dataclasses.field(default_factory=list)
    proof: str = ""  # a regular expression that the output, or the file `written`, contains if the program succeeded
    written: str = ""
    inputs: dict = dataclasses.field(default_factory=dict)  # file: text, or a function that gives it
    input: str = ""  # the file that standard input is
    before: list = dataclasses.field(default_factory=list)  # a command that makes an input
    environment: dict = dataclasses.field(default_factory=dict)
    has_rows: bool = False  # the output has lines of a name and microseconds
    # Arguments and inputs for so much work on so many ranks. With work 1 they take a few seconds on a machine of 2026.
    sized: typing.Optional[typing.Callable] = None

    def path(self, binaries):
        return self.files[0] if "/" in self.files[0] else str(binaries.resolve() / self.files[0])

    def command(self, binaries, work, ranks):
        return [self.path(binaries)] + (self.sized(work, ranks)[0] if self.sized else self.arguments)

    def missing(self, binaries):
        """Why it cannot run, or nothing."""
        for file in [self.path(binaries)] + self.files[1:]:
            if not pathlib.Path(file).exists():
                return f"no {file}" + (f"; install {self.package}" if "/" in self.files[0] else "; run ./dev build")
        return ""

    def prepare(self, folder, work, ranks):
        for name, text in (self.sized(work, ranks)[1] if self.sized else self.inputs).items():
            (folder / name).write_text(text if isinstance(text, str) else text(), encoding="utf-8")
        if self.before:
            subprocess.run(self.before, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def report(self, folder):
        return (folder / self.written).read_text(errors="replace") if self.written else ""


@functools.lru_cache(None)
def text_of(path):
    return lambda: (gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")).read()


def repeats(work, of_one):
    """How often something is done of which work 1 does `of_one`."""
    return max(1, round(work * of_one))


def grid_graph(side):
    """A cube of side x side x side cells, in the format of Scotch."""
    def neighbours(at):
        for axis in range(3):
            for step in (-1, 1):
                other = list(at)
                other[axis] += step
                if 0 <= other[axis] < side:
                    yield (other[0] * side + other[1]) * side + other[2]
    rows = [list(neighbours((x, y, z))) for x in range(side) for y in range(side) for z in range(side)]
    head = f"0\n{len(rows)} {sum(map(len, rows))}\n0 000\n"
    return head + "".join(f"{len(row)} {' '.join(map(str, row))}\n" for row in rows)


def hpcc(work, ranks):
    """The time of most parts grows with the memory of the matrix."""
    def text():
        lines = text_of("/usr/share/doc/hpcc/examples/_hpccinf.txt")().splitlines()
        rows, columns = grids_of(ranks)[-1]
        words = {"Ps": f"{rows} Ps", "Qs": f"{columns} Qs", "Ns": f"{repeats(work ** 0.5, 600)} Ns"}
        return "\n".join(words.get(line.split()[-1], line) if line.split() else line for line in lines) + "\n"
    return [], {"hpccinf.txt": text()}


def grids_of(ranks):
    """All grids of so many processes as pairs of rows and columns, the most square one last."""
    pairs = [(rows, ranks // rows) for rows in range(1, ranks + 1) if ranks % rows == 0]
    return sorted(pairs, key=lambda pair: (-abs(pair[0] - pair[1]), -pair[0]))


# ScaLAPACK's tests read lists of at most so many numbers, and try all combinations of them.
LIST_MOST = 20


def lists_of(count, sizes, grids):
    """Lists that make ScaLAPACK's tests do `count` rounds of all sizes on all grids, or the next number they can do."""
    of_sizes = min(count, LIST_MOST // len(sizes))
    of_grids = min(-(-count // of_sizes), LIST_MOST // len(grids))
    return sizes * of_sizes, grids * of_grids


def numbers(values):
    return " ".join(map(str, values))


def scalapack_lu(work, ranks):
    sizes, grids = lists_of(repeats(work, 16), [100, 150, 200, 250], grids_of(ranks))
    return [], {"LU.dat": f"""'LU factorizations and solutions'
'MPI'
'LU.out'
6 device out
{len(sizes)} number of sizes
{numbers(sizes)} values of M
{numbers(sizes)} values of N
2 number of NB's
8 32 values of NB
2 number of NRHS's
1 9 values of NRHS
1 number of NBRHS's
4 values of NBRHS
{len(grids)} number of grids
{numbers(rows for rows, _ in grids)} values of P
{numbers(columns for _, columns in grids)} values of Q
1.0 threshold
F no estimates of the condition number
"""}


def scalapack_qr(work, ranks):
    sizes, grids = lists_of(repeats(work, 4), [(30, 60), (100, 60), (100, 100), (150, 100)], grids_of(ranks))
    return [], {"QR.dat": f"""'orthogonal factorizations'
'MPI'
'QR.out'
6 device out
6 number of factorizations
'QR' 'QL' 'LQ' 'RQ' 'QP' 'TZ' factorizations
{len(sizes)} number of sizes
{numbers(rows for rows, _ in sizes)} values of M
{numbers(columns for _, columns in sizes)} values of N
2 number of blocks
4 8 values of MB
4 8 values of NB
{len(grids)} number of grids
{numbers(rows for rows, _ in grids)} values of P
{numbers(columns for _, columns in grids)} values of Q
5.0 threshold
"""}


def scalapack_svd(work, ranks):
    rows, columns = grids_of(ranks)[-1]
    test = """' '
'TEST: {0} x {1}'
20.0 threshold
1 number of matrices
{0} rows
{1} columns
1 number of grids
{2} values of P
{3} values of Q
8 values of NB
"""
    sizes = itertools.islice(itertools.cycle([(100, 25), (80, 32), (24, 8), (120, 120)]), repeats(work, 3) * 4)
    tests = "".join(test.format(m, n, rows, columns) for m, n in sizes)
    return [], {"SVD.dat": f"'singular values'\n6 device out\n{ranks} processes\n{tests}' '\n'End of tests'\n-1\n"}


def examl(work, _):
    trees = text_of(EXAML + ".tree")() * repeats(work, 2)
    return (["-f", "E", "-t", "49.tree", "-m", "GAMMA", "-s", "49.binary", "-n", "T"],
            {"49.tree": trees, "49": text_of(EXAML + ".gz")})


def lammps(work, _):
    return ["-in", "in.atoms"], {"in.atoms": f"{ATOMS}run {repeats(work, 3000)}\n"}


def fourier(work, _):
    return ["fourier.py"], {"fourier.py": FOURIER.replace("REPEATS", str(repeats(work, 300)))}


def own_program(name, kind, word, size, of_one):
    """One of perf's own programs in C: its size stays, and its rounds grow."""
    return Program(name, kind, "", [f"mpi_{name.replace('-', '_')}"], proof=f"{word}: .*, right",
                   sized=lambda work, ranks: ([str(size), str(repeats(work, of_one))], {}))


def blacs_input():
    """The package's input without its last test, which ends the job by MPI_Abort."""
    lines = text_of(f"{SCALAPACK}/BLACS/bt.dat")().splitlines()
    return "\n".join("'F'  Run AUX?" if line.endswith("Run AUX?") else line for line in lines) + "\n"


ATOMS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 1
"""

IONS = """units lj
atom_style charge
lattice sc 0.3
region box block 0 8 0 8 0 8
create_box 2 box
create_atoms 1 box
set type 1 type/fraction 2 0.5 4711
mass * 1.0
set type 1 charge 1
set type 2 charge -1
velocity all create 1.0 87287 loop geom
pair_style lj/cut/coul/long 3.0
pair_coeff * * 1.0 1.0 3.0
kspace_style pppm 1e-3
kspace_modify collective yes
fix 1 all nvt temp 1 1 1
thermo 10
run 1000
"""

SOLVERS = """import sys, petsc4py
petsc4py.init(sys.argv)
from petsc4py import PETSc
n = 120
matrix = PETSc.Mat().createAIJ([n * n, n * n], nnz=5)
for row in range(*matrix.getOwnershipRange()):
    x, y = divmod(row, n)
    matrix[row, row] = 4
    for a, b in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
        if 0 <= a < n and 0 <= b < n:
            matrix[row, a * n + b] = -1
matrix.assemble()
x, b = matrix.createVecs()
for _ in range(5):
    for kind in ("cg", "bcgs", "gmres"):
        x.set(0)
        b.set(1)
        solver = PETSc.KSP().create()
        solver.setOperators(matrix)
        solver.setType(kind)
        solver.getPC().setType("jacobi")
        solver.setTolerances(rtol=1e-8, max_it=1000)
        solver.solve(b, x)
        assert solver.getIterationNumber() > 100
PETSc.Sys.Print("solved")
"""

FOURIER = """import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
rank = MPI.COMM_WORLD.rank
for shape in ((16, 16, 16), (32, 32, 32), (64, 64, 64)):
    fft = PFFT(MPI.COMM_WORLD, shape, grid=(2, -1), dtype=float)
    field = newDistArray(fft, False)
    field[:] = numpy.random.default_rng(rank).random(field.shape)
    kept = field.copy()
    for _ in range(REPEATS):
        field = fft.backward(fft.forward(field))
    assert numpy.allclose(field, kept)
if rank == 0:
    print("transformed")
"""

# User operations and alltoallv from a language in which both are common: sums in twice the precision, and a sort.
SORT = """import numpy
from mpi4py import MPI
comm = MPI.COMM_WORLD
def twice(left, right, datatype):
    a, b = numpy.frombuffer(left, "f8"), numpy.frombuffer(right, "f8")
    total = a[0::2] + b[0::2]
    part = total - a[0::2]
    b[1::2] += a[1::2] + ((a[0::2] - (total - part)) + (b[0::2] - part))
    b[0::2] = total
op = MPI.Op.Create(twice, commute=True)
values = numpy.random.default_rng(comm.rank).random(20000)
for _ in range(150):
    pair, result = numpy.zeros(2), numpy.zeros(2)
    pair[0] = values.sum()
    comm.Allreduce(pair, result, op)
    edges = numpy.linspace(0, 1, comm.size + 1)
    values.sort()
    places = numpy.searchsorted(values, edges).astype("i")
    counts = numpy.diff(places)
    theirs = numpy.empty_like(counts)
    comm.Alltoall(counts, theirs)
    got = numpy.empty(theirs.sum())
    comm.Alltoallv([values, counts], [got, theirs])
    total = comm.allreduce(len(got))
    assert total == 20000 * comm.size
op.Free()
if comm.rank == 0:
    print("sorted")
"""

SMALL = "small communicators"
TYPES = "derived types"
USER = "user operations"
VECTORS = "alltoallv"
LATENCY = "latency-bound"
POINTS = "mostly messages"


def scalapack(name, program, proof, sized):
    return Program(name, SMALL, "scalapack-mpi-test", [f"{SCALAPACK}/{program}"], proof=proof, sized=sized)


NONE_FAILED = r"\b0 tests completed and failed"
PYTHON = "/usr/bin/python3"
MPI4PY = "/usr/lib/python3/dist-packages/mpi4py"
EXAML = "/usr/share/doc/examl/testData/49"
GRAPH = {"cube.grf": lambda: grid_graph(36)}

PROGRAMS = [
    Program("communicators", SMALL, "", ["mpi_communicators"], proof="finalize", has_rows=True),
    Program("start", "start and end only", "mumps-test", ["/usr/lib/mumps/dsimpletest"],
            proof="JOB = +-2", input="in", inputs={"in": text_of("/usr/lib/mumps/input_simpletest_real")}),
    scalapack("scalapack-lu", "xdlu", NONE_FAILED, scalapack_lu),
    scalapack("scalapack-qr", "xdqr", NONE_FAILED, scalapack_qr),
    scalapack("scalapack-svd", "xdsvd", r"(?s)\A(?!.*Failed).*Passed.*End of tests", scalapack_svd),
    Program("scalapack-eigen", SMALL, "scalapack-mpi-test", [f"{SCALAPACK}/xdsep", f"{SCALAPACK}/SEP.dat"],
            proof="Finished|End of tests", inputs={"SEP.dat": text_of(f"{SCALAPACK}/SEP.dat")}),
    Program("blacs", TYPES + ", " + USER, "scalapack-mpi-test", [f"{SCALAPACK}/BLACS/xFbtest"],
            proof="DONE BLACS_GRIDEXIT|There were no failures|PASSED", inputs={
                "bt.dat": blacs_input, **{name: text_of(f"{SCALAPACK}/BLACS/{name}")
                                          for name in ("sdrv.dat", "bsbr.dat", "comb.dat")}}),
    Program("mpi4py-fft", TYPES + ", alltoallw", "python3-mpi4py-fft",
            [PYTHON, "/usr/lib/python3/dist-packages/mpi4py_fft"], proof="transformed", sized=fourier),
    Program("mpi4py-sort", USER + ", " + VECTORS, "python3-mpi4py", [PYTHON, MPI4PY], ["sort.py"], proof="sorted",
            inputs={"sort.py": SORT}),
    Program("scotch-part", VECTORS + ", " + USER, "ptscotch", ["/usr/bin/dgpart"],
            ["16", "cube.grf", "cube.map", "-vt"], proof="Mapping", inputs=GRAPH),
    Program("scotch-order", VECTORS + ", " + USER, "ptscotch", ["/usr/bin/dgord"],
            ["cube.grf", "cube.ord", "-vt"], proof="Order", inputs=GRAPH),
    Program("examl", LATENCY, "examl", ["/usr/lib/examl/bin/examl-avx2", "/usr/bin/parse-examl", EXAML + ".tree"],
            proof="written to file", before=["/usr/bin/parse-examl", "-s", "49", "-m", "DNA", "-n", "49"],
            sized=examl),
    Program("petsc-solvers", LATENCY, "python3-petsc4py", [PYTHON, PETSC], ["solvers.py"], proof="solved",
            inputs={"solvers.py": SOLVERS}, environment={"PYTHONPATH": PETSC}),
    Program("lammps-atoms", POINTS, "lammps", ["/usr/bin/lmp"], proof="Total wall time", sized=lammps),
    Program("lammps-ions", POINTS + ", FFT", "lammps", ["/usr/bin/lmp"], ["-in", "in.ions"],
            proof="Total wall time", inputs={"in.ions": IONS}),
    Program("hpcc", "all kinds", "hpcc", ["/usr/bin/hpcc"], proof="Success=1", written="hpccoutf.txt", sized=hpcc),
    own_program("heat", POINTS + ", an allreduce in each step", "heat", 256, 40000),
    own_program("key-sort", VECTORS, "key sort", 65536, 800),
    own_program("conjugate-gradient", "allgatherv and allreduce", "conjugate gradient", 14001, 400),
]
