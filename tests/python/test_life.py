# SPDX-License-Identifier: Apache-2.0
# How objects end: closing, memory that outlives its makers, forked children, and the end of the interpreter.
"""Lifetimes of the Python package."""
import gc
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import weakref

import numpy
import pytest
import ranks
import torii


def test_allocated_arrays():
    with torii.Context() as context:
        values = context.allocate((3, 4), "int16")
        assert values.shape == (3, 4) and values.dtype == "int16" and not values.any()
        assert values.ctypes.data % 64 == 0 and values.flags.writeable
        assert context.allocate(5).dtype == "float64" and context.allocate((0, 2)).shape == (0, 2)
        assert context.allocate((), "f4").shape == ()
        row = values[1]
        del values
        gc.collect()
        row[:] = 7
        with pytest.raises(ValueError, match="1 arrays or regions of the context are alive"):
            context.close()
        plain = memoryview(context.allocate_bytes(100))
        assert plain.nbytes == 100 and not plain.readonly
        with context.team() as team:
            team.allreduce(row, out=row)
        del row, plain, team
        gc.collect()
        with pytest.raises(ValueError, match="bytes is -1"):
            context.allocate_bytes(-1)
        with pytest.raises(torii.NoResource):
            context.allocate_bytes(1 << 60)
    assert context.closed
    context.close()
    with pytest.raises(ValueError, match="the context has been closed"):
        context.allocate(1)
    with pytest.raises(ValueError, match="the context has been closed"):
        context.team()
    with pytest.raises(ValueError, match="the context has been closed"):
        context.rank


def test_memory_is_given_back():
    """Forty arrays of 16 MiB, one after the other, fit into an arena of 256 MiB; together they do not."""
    with torii.Context({"ARENA": "256M"}) as context:
        for _ in range(40):
            context.allocate(1 << 21)
        kept = []
        with pytest.raises(torii.NoResource):
            for _ in range(40):
                kept.append(context.allocate(1 << 21))
        del kept[:]


def test_adopted_memory():
    with torii.Context() as context:
        values = numpy.arange(1 << 16, dtype="float32")
        with context.adopt(values) as region, context.team() as team:
            assert team.allreduce(values, "max", out=values)[100] == 100
        region.release()
        assert values[-1] == values.size - 1
        region = context.adopt(bytearray(1 << 16))
        with pytest.raises(ValueError, match="arrays or regions"):
            context.close()
        del region, team
        with pytest.raises(BufferError, match="buffer is read-only"):
            context.adopt(bytes(100))
        with pytest.raises(TypeError, match="buffer is <class 'int'>"):
            context.adopt(3)


def test_adopted_bytearray_stays_in_place():
    with torii.Context() as context:
        data = bytearray(1 << 16)
        with context.adopt(data):
            with pytest.raises(BufferError):
                data.append(1)
        data.append(1)


def test_order_of_closing():
    context = torii.Context()
    team = context.team()
    with pytest.raises(torii.InvalidArgument, match="1 teams of the context are alive"):
        context.close()
    gone = weakref.ref(context)
    del context
    assert team.context.ranks == 1 and gone() is not None
    team.close()
    team.close()
    assert team.closed
    del team
    gc.collect()
    assert gone() is None


def rank_shares_memory():
    team = torii.world()
    values = torii.allocate(1 << 16, "float32")
    values[:] = team.rank + 1
    team.allreduce(values, out=values)
    assert (values == team.ranks * (team.ranks + 1) / 2).all()
    with team.context.adopt(numpy.ones(1 << 16)):
        pass


def child(team, values, request, queue):
    """Uses and destroys what belongs to the parent."""
    refused = []
    for call in (team.barrier, team.start_barrier, lambda: team.split(0), lambda: team.context.allocate(10),
                 lambda: team.context.team(), request.start):
        try:
            call()
        except ValueError as error:
            refused.append(str(error))
    team.close()
    del values, request
    team.context.close()
    gc.collect()
    queue.put(len(refused))


def rank_forks():
    team = torii.Context().team()
    values = team.context.allocate(1000)
    running = team.start_allreduce(values)
    request = team.prepare_barrier()
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    process = fork.Process(target=child, args=(team, values, request, queue))
    process.start()
    refused = queue.get()
    process.join()
    assert process.exitcode == 0 and refused == 6, (process.exitcode, refused)
    running.wait()
    for _ in range(3):
        request.start().wait()
    assert team.allreduce(numpy.ones(1)) == team.ranks


def rank_forks_an_exit():
    """A child that leaves by the interpreter's end, with everything alive, does no harm either."""
    team = torii.world()
    values = torii.allocate(1000)
    running = team.start_allreduce(values)
    process = os.fork()
    if process == 0:
        raise SystemExit(0)
    assert os.waitpid(process, 0)[1] == 0
    running.wait()
    team.barrier()


def rank_exits(is_waiting=False):
    """Everything is alive at the end: module variables, a cycle, a running operation on rank 0."""
    global kept
    team = torii.world()
    cycle = [team]
    cycle.append(cycle)
    values = torii.allocate(1000)
    request = team.prepare_allreduce(values, out=values)
    request.start().wait()
    team.barrier()
    kept = [team, cycle, values, request, team.split(0)]
    if team.rank == 0 and not is_waiting:
        kept.append(team.start_allreduce(numpy.ones(4)))
    os.write(1, b"left\n")


def rank_exits_well():
    rank_exits(is_waiting=True)


def rank_ends_in_a_function():
    """Objects die when a function returns; the running operation takes its team with it."""
    def work():
        team = torii.Context().team()
        others = ranks.others_of(team)
        if team.rank == 0:
            team.start_allreduce(numpy.ones(1 << 20))
            return others
        ranks.await_go()  # an earlier call might complete the operation
        with pytest.raises(torii.Aborted, match="closed the team while an operation ran"):
            team.allreduce(numpy.ones(1 << 20))
        return []

    ranks.tell_to_go(work())
    assert torii.world().allreduce(numpy.ones(1)) == 2


def rank_raises():
    """An uncaught exception of one rank ends the calls of the others at once."""
    team = torii.world()
    if team.rank == 1:
        raise KeyError("a fault of the program")
    begin = time.monotonic()
    with pytest.raises(torii.PeerLost, match="rank 1") as caught:
        team.allreduce(numpy.ones(4))
    assert caught.value.rank == 1 and time.monotonic() - begin < 15  # of a deadline of 30
    os.write(1, b"heard\n")


BODIES = (rank_shares_memory, rank_forks, rank_forks_an_exit, rank_ends_in_a_function)


@pytest.mark.parametrize("body", BODIES)
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


def test_exit_with_live_objects():
    assert ranks.job(__file__, "rank_exits", 3).count("left") == 3


DAEMON = """
import threading, time, torii

class Lingers:
    def __del__(self):
        sleep(0.3)  # the interpreter ends meanwhile, and the daemon thread asks for it

sleep = time.sleep
torii.lingers = Lingers()
team = torii.Context().team()
out = bytearray(1)
waits = {"recv": lambda: team.recv(out), "wait": lambda: team.start_recv(out).wait(0.2)}["%s"]
threading.Thread(target=waits, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("call", ("recv", "wait"))
def test_exit_with_a_daemon_thread_in_a_call(call):
    """The thread is in the call when the interpreter ends, or returns from it then."""
    code, out, errors = ranks.start("-c", DAEMON % call)
    assert (code, out, errors) == (0, "", "")


IN_SUBINTERPRETERS = """
import sys
import _xxsubinterpreters as interpreters


def refused():
    other = interpreters.create()
    for module in ("torii", "torii.leaves", "torii._torii"):
        try:
            interpreters.run_string(other, f"import {module}")
        except interpreters.RunFailedError as error:
            assert "ImportError" in str(error) and "in the main interpreter" in str(error), error
        else:
            raise SystemExit("torii was imported")
    interpreters.destroy(other)


if sys.argv[1] == "first":
    refused()
import torii

team = torii.world()
for _ in range(3):
    refused()
    assert team.allreduce(bytearray(b"ab"), "max") == b"ab"
with torii.Context() as context, context.team() as team:
    team.barrier()
print("well", end="")
"""


@pytest.mark.parametrize("when", ["first", "later"])
def test_subinterpreters_are_refused(when):
    """The module has one state for the process, which a subinterpreter would take over, and take along when it ends."""
    pytest.importorskip("_xxsubinterpreters")
    code, out, errors = ranks.start("-c", IN_SUBINTERPRETERS, when)
    assert (code, out) == (0, "well"), errors


MPIRUN = shutil.which("mpirun.openmpi")
PMIX = pathlib.Path(torii.__file__).parents[2] / "lib" / "torii" / "libtorii_pmix.so"


@pytest.mark.skipif(MPIRUN is None or not PMIX.exists(), reason="mpirun, or torii's module for PMIx, is missing")
def test_exit_below_mpirun():
    """mpirun calls a process failed that has not left its job."""
    done = subprocess.run([MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, __file__,
                           "rank_exits_well"], capture_output=True, text=True, timeout=ranks.TIMEOUT_S, check=False)
    assert done.returncode == 0 and done.stdout.count("left") == 2, done.stderr


def test_uncaught_exception():
    code, out, errors = ranks.start("-m", "torii.run", "-n", "2", __file__, "rank_raises")
    assert code == 1 and "heard" in out and "a fault of the program" in errors
    assert f"signal {signal.SIGSEGV}" not in errors


if __name__ == "__main__":
    ranks.main(globals())
