# SPDX-License-Identifier: Apache-2.0
# Every collective of mpi4py over many types, roots and groups; each rank works out what must come, and prints "ok".
"""Started by mpirun as python3 all_collectives.py, on 2 ranks or more. Raises where a result is wrong."""
import array

from mpi4py import MPI

world = MPI.COMM_WORLD
CODES = {"b": MPI.SIGNED_CHAR, "h": MPI.SHORT, "i": MPI.INT, "q": MPI.LONG_LONG, "f": MPI.FLOAT, "d": MPI.DOUBLE}


def numbers(code, values):
    return array.array(code, [float(v) if code in "fd" else int(v) for v in values])


def check(got, wanted, what):
    if list(got) != list(wanted):
        raise AssertionError(f"rank {world.rank}: {what}: {list(got)} instead of {list(wanted)}")


def mine(rank, count):
    return [(rank + 1) * (i % 3 + 1) for i in range(count)]


def added(ranks, count):
    return [sum(column) for column in zip(*(mine(rank, count) for rank in range(ranks)))]


def wait(request):
    if request is not None:
        request.Wait()


def buffers(comm, code, count, begin):
    """The upper-case methods of `comm` on buffers; `begin` is "" for blocking ones and "I" for the others."""
    rank, ranks, kind = comm.rank, comm.size, CODES[code]

    def call(name, *arguments, **options):
        wait(getattr(comm, begin + name if begin == "" else begin + name.lower())(*arguments, **options))

    own = numbers(code, mine(rank, count))
    every = [value for other in range(ranks) for value in mine(other, count)]
    call("Barrier")
    for root in range(ranks):
        got = numbers(code, own if rank == root else [0] * count)
        call("Bcast", [got, kind], root=root)
        check(got, mine(root, count), "bcast")
        got = numbers(code, [0] * count)
        call("Reduce", [own, kind], [got, kind] if rank == root else None, op=MPI.SUM, root=root)
        check(got, added(ranks, count) if rank == root else [0] * count, "reduce")
        got = numbers(code, [0] * count * ranks)
        call("Gather", [own, kind], [got, kind] if rank == root else None, root=root)
        check(got, every if rank == root else [0] * count * ranks, "gather")
        got = numbers(code, [0] * count)
        call("Scatter", [numbers(code, every), kind] if rank == root else None, [got, kind], root=root)
        check(got, own, "scatter")
    results = [(MPI.SUM, added(ranks, count)), (MPI.MAX, mine(ranks - 1, count)), (MPI.MIN, mine(0, count))]
    for operation, wanted in results:
        got = numbers(code, [0] * count)
        call("Allreduce", [own, kind], [got, kind], op=operation)
        check(got, wanted, "allreduce")
        got = numbers(code, own)
        call("Allreduce", MPI.IN_PLACE, [got, kind], op=operation)
        check(got, wanted, "allreduce in place")
    got = numbers(code, [0] * count * ranks)
    call("Allgather", [own, kind], [got, kind])
    check(got, every, "allgather")
    got = numbers(code, [0] * count * ranks)
    call("Alltoall", [numbers(code, every), kind], [got, kind])
    check(got, mine(rank, count) * ranks, "alltoall")
    got = numbers(code, [0] * count)
    call("Reduce_scatter_block", [numbers(code, own * ranks), kind], [got, kind], op=MPI.SUM)
    check(got, added(ranks, count), "reduce_scatter_block")
    call("Reduce_scatter", [numbers(code, own * ranks), kind], [got, kind], [count] * ranks, op=MPI.SUM)
    check(got, added(ranks, count), "reduce_scatter")
    call("Scan", [own, kind], [got, kind], op=MPI.SUM)
    check(got, added(rank + 1, count), "scan")
    got = numbers(code, [77] * count)
    call("Exscan", [own, kind], [got, kind], op=MPI.SUM)
    if rank > 0:
        check(got, added(rank, count), "exscan")
    uneven(comm, code, call)


def uneven(comm, code, call):
    rank, ranks, kind = comm.rank, comm.size, CODES[code]
    counts = [other + 1 for other in range(ranks)]
    places = [sum(counts[:other]) for other in range(ranks)]
    own = numbers(code, mine(rank, rank + 1))
    every = [value for other in range(ranks) for value in mine(other, other + 1)]
    got = numbers(code, [0] * len(every))
    call("Allgatherv", [own, kind], [got, (counts, places), kind])
    check(got, every, "allgatherv")
    got = numbers(code, [0] * len(every))
    call("Gatherv", [own, kind], [got, (counts, places), kind] if rank == 0 else None, root=0)
    check(got, every if rank == 0 else [0] * len(every), "gatherv")
    got = numbers(code, [0] * (rank + 1))
    call("Scatterv", [numbers(code, every), (counts, places), kind] if rank == 0 else None, [got, kind], root=0)
    check(got, own, "scatterv")
    wide = numbers(code, mine(rank, len(every)))
    got = numbers(code, [0] * (rank + 1))
    call("Reduce_scatter", [wide, kind], [got, kind], counts, op=MPI.SUM)
    check(got, added(ranks, len(every))[places[rank] : places[rank] + rank + 1], "reduce_scatter")


def objects(comm):
    """The lower-case methods, which send pickled objects of unequal length."""
    rank, ranks = comm.rank, comm.size
    own = {"rank": rank, "text": "x" * (rank * 100)}
    check(comm.allgather(own), [{"rank": r, "text": "x" * (r * 100)} for r in range(ranks)], "allgather of objects")
    for root in range(ranks):
        check([comm.bcast(own if rank == root else None, root=root)["rank"]], [root], "bcast of objects")
    # Lists are joined in the order of ranks: an operation of Python that does not commute.
    check(comm.allreduce([rank], op=MPI.SUM), range(ranks), "allreduce of lists")
    check(comm.alltoall([(rank, r) for r in range(ranks)]), [(r, rank) for r in range(ranks)], "alltoall of objects")


def user_operation(comm):
    """An operation of the user's that does not commute: digits are written one behind the other."""

    def join(left, right, _):
        a, b = memoryview(left).cast("q"), memoryview(right).cast("q")
        for i, value in enumerate(a):
            b[i] = value * 10 ** len(str(b[i])) + b[i]

    operation = MPI.Op.Create(join, commute=False)
    got = array.array("q", [0, 0])
    comm.Allreduce([array.array("q", [comm.rank + 1, 1]), MPI.LONG_LONG], [got, MPI.LONG_LONG], op=operation)
    wanted = [int("".join(str(r + 1) for r in range(comm.size))), int("1" * comm.size)]
    check(got, wanted, "a user's operation")
    for root in range(comm.size):
        for begin in (comm.Reduce, comm.Ireduce):
            got = array.array("q", [0, 0])
            mine = [array.array("q", [comm.rank + 1, 1]), MPI.LONG_LONG]
            wait(begin(mine, [got, MPI.LONG_LONG] if comm.rank == root else None, op=operation, root=root))
            check(got, wanted if comm.rank == root else [0, 0], "a user's operation, to one rank")
    operation.Free()


def main():
    groups = [world.Dup(), world.Split(0, -world.rank), world.Split(world.rank % 2, world.rank)]
    for comm in groups:
        for code in CODES:
            for count in (1, 5, 20):
                buffers(comm, code, count, "")
            buffers(comm, code, 7, "I")
        objects(comm)
        user_operation(comm)
        comm.Free()
    if world.rank == 0:
        print("ok")


main()
