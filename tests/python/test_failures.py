# SPDX-License-Identifier: Apache-2.0
# Failing ranks, interrupted calls, and calls that ranks disagree about.
"""Errors of the Python package."""
import contextlib
import os
import pickle
import signal
import threading
import time

import numpy
import pytest
import ranks
import torii


def rank_killed():
    team = torii.world()
    assert team.health() and team.lost == []
    team.barrier()
    if team.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(torii.PeerLost, match="rank 2 on host .* died") as caught:
        team.allreduce(numpy.ones(4))
    error = caught.value
    assert error.rank == 2 and error.status == torii.Status.PEER_LOST and isinstance(error, ConnectionError)
    assert error.reason == str(error) and team.lost == [2]
    assert not team.health() and team.health().status == torii.Status.PEER_LOST and "rank 2" in team.health().reason
    with pytest.raises(torii.Poisoned):
        team.barrier()
    left = team.survivors()
    assert left.ranks == team.ranks - 1 and left.context_rank(left.ranks - 1) == team.ranks - 1
    assert left.allreduce(numpy.ones(4)).tolist() == [left.ranks] * 4
    os.write(1, b"survived\n")


def test_killed_rank():
    code, out, errors = ranks.start("-m", "torii.run", "-n", "4", "--on-failure", "continue", __file__, "rank_killed")
    assert out.count("survived") == 3, errors
    assert code == 0


def rank_hangs():
    """Rank 1 comes when the others have left it out. Before, a call that makes no sense fails the others' too."""
    team = torii.world()
    team.barrier()
    if team.rank == 1:
        time.sleep(2.5)
        with pytest.raises(torii.Timeout):
            team.barrier()
        with pytest.raises(torii.PeerLost, match="left out this rank"):
            team.survivors()
        os.write(1, b"left out\n")
        return
    with pytest.raises(torii.Timeout) as caught:
        team.barrier()
    assert team.absent == [1] and caught.value.rank == 1
    for without in ((1, 3), (1, -1)):
        with pytest.raises(torii.InvalidArgument, match=f"rank 0: without names rank {without[1]}; the ranks"):
            team.survivors(without=without if team.rank == 0 else (1,))
    with pytest.raises(torii.Mismatch, match="differ between rank 0 and rank 2"):
        team.survivors(without=team.absent, segment_bytes=8192 * (1 + team.rank))
    for wrong in ({"without": "no"}, {"without": 1}, {"without": [0.5]}, {"allow_minority": numpy.ones(2)}):
        with pytest.raises((TypeError, ValueError)):
            team.survivors(**wrong)
    with pytest.raises(torii.InvalidArgument, match="only torii_team_survivors"):
        team.context.team(without=[1])
    left = team.survivors(without=team.absent, allow_minority=True)
    assert left.ranks == 2 and left.allreduce(numpy.ones(4)).tolist() == [2] * 4 and team.lost == [1]
    time.sleep(2.5)  # rank 1 asks
    os.write(1, b"survived\n")


def test_hanging_rank():
    code, out, errors = ranks.start("-m", "torii.run", "-n", "3", "--on-failure", "continue", __file__, "rank_hangs",
                                    TORII_TIMEOUT="1")
    assert out.count("survived") == 2 and out.count("left out") == 1 and code == 0, errors


def rank_dies_and_is_replaced():
    """The new process of rank 2 gets its step and the sums from the others, whose array stays shared."""
    context = torii.Context()
    step, own_steps, sums = 0, 0, context.allocate(1000)
    while step < 20:
        try:
            team = context.team()
            newest = team.allreduce(numpy.array([step]), "max")[0]
            root = team.allreduce(numpy.array([team.rank if step == newest else team.ranks]), "min")[0]
            team.broadcast(sums, root)
            step = newest
            while step < 20:
                if own_steps == 10 and team.rank == 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                sums += team.allreduce(numpy.full(1000, float(step * team.rank)))
                step, own_steps = step + 1, own_steps + 1
        except torii.Error:
            context = torii.Context(memory_of=context)
    os.write(1, f"rank {team.rank}: {sums[-1]}, {own_steps}\n".encode())


def test_replaced_rank():
    out = ranks.job(__file__, "rank_dies_and_is_replaced", 4, ["--on-failure", "replace"])
    whole = sum(range(20)) * (0 + 1 + 2 + 3)
    for rank in (0, 1, 3):
        assert f"rank {rank}: {float(whole)}, " in out, out
    assert f"rank 2: {float(whole)}, 1" in out, "the new process made about ten steps itself: " + out


def rank_times_out():
    team = torii.Context({"TIMEOUT": 0.5}).team()
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
    with pytest.raises(torii.Timeout, match="not come to the call: rank 1") as caught:
        team.allreduce(numpy.ones(4))
    assert caught.value.rank == 1 and isinstance(caught.value, TimeoutError)
    if team.rank == 0:
        ranks.tell_to_go(others)


def rank_joins_again():
    """A join in which rank 1 was missing fails on all ranks, on rank 1 when it comes; the next one succeeds."""
    others = ranks.others_of(torii.world())
    rank = torii.world().rank
    if rank == 1:
        ranks.await_go()
    with pytest.raises(torii.Timeout, match="rank 1 has not joined in time") as caught:
        torii.Context({"TIMEOUT": 30 if rank == 1 else 1})
    assert caught.value.rank == 1
    if rank == 0:
        ranks.tell_to_go(others[:1])
    assert torii.Context().team().allreduce(numpy.ones(1)) == torii.world().ranks


def rank_mismatches():
    team = torii.world()
    with pytest.raises(torii.Mismatch, match="4 x f64.*5 x f64") as caught:
        team.allreduce(numpy.ones(4 + team.rank))
    assert caught.value.rank is None


def rank_refuses():
    """A call that the package refuses on one rank ends on all ranks."""
    team = torii.world()
    values = numpy.ones(8)[:: 2 if team.rank == 1 else 1]
    with pytest.raises(ValueError if team.rank == 1 else torii.Mismatch, match="array is not contiguous") as caught:
        team.allreduce(values)
    if team.rank != 1:
        assert caught.value.rank == 1


def rank_all_refuse():
    """If all ranks refuse a call, the team goes on."""
    team = torii.world()
    for start in (team.allreduce, team.start_allreduce, team.prepare_allreduce):
        with pytest.raises(ValueError):
            start(numpy.ones(4), "mean")
    assert team.allreduce(numpy.ones(1)) == team.ranks


def rank_aborts():
    team = torii.world()
    if team.rank == 0:
        threading.Timer(0.2, team.abort, ("stop it",)).start()
    else:
        time.sleep(0.5)
    with pytest.raises(torii.Aborted, match="stop it") as caught:
        team.allreduce(numpy.ones(4))
    assert caught.value.rank == 0


def rank_interrupted():
    """Rank 0 gets SIGINT while it waits: KeyboardInterrupt there, and the others hear of it."""
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 0:
        main = threading.main_thread().ident
        threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            team.allreduce(numpy.ones(4))
        ranks.tell_to_go(others)
    else:
        ranks.await_go()
        with pytest.raises(torii.Aborted, match="interrupted by a signal handler") as caught:
            team.allreduce(numpy.ones(4))
        assert caught.value.rank == 0


def rank_interrupted_wait():
    team = torii.world()
    for timeout in (None, 20):
        part = team.split(0)
        if team.rank == 0:
            threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
            request = part.start_allreduce(numpy.ones(4))
            with pytest.raises(KeyboardInterrupt):
                request.wait(timeout)
            with pytest.raises(torii.Aborted):
                request.wait()
        team.barrier()


def rank_interrupted_split():
    """What a handler raises while a team is made goes to the caller, who gets no team."""
    team = torii.world()
    others = ranks.others_of(team)
    main = threading.main_thread().ident
    if team.rank == 0:
        threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            team.split(0)
        ranks.tell_to_go(others)
        threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            team.survivors()
    else:
        ranks.await_go()
        with pytest.raises(torii.Aborted, match="interrupted by a signal handler"):
            team.split(0)
        time.sleep(0.8)
        with contextlib.suppress(torii.Error):
            team.survivors()


def rank_handles_a_signal():
    """A handler that does not raise runs while the call waits, and the call goes on."""
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 0:
        signal.signal(signal.SIGALRM, lambda *_: ranks.tell_to_go(others))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
    else:
        ranks.await_go()  # so the call of rank 0 cannot end before its handler has run
    assert team.allreduce(numpy.ones(1)) == team.ranks


def rank_threads():
    """Other threads run while a call waits; a second call on the team is refused, without harm."""
    team = torii.world()
    if team.rank == 1:
        time.sleep(0.5)
    steps = []

    def work():
        for _ in range(20):
            steps.append(time.monotonic())
            time.sleep(0.01)
        if team.rank == 0:
            with pytest.raises(RuntimeError, match="one caller at a time"):
                team.barrier()
            steps.append("refused")

    thread = threading.Thread(target=work)
    thread.start()
    result = team.allreduce(numpy.ones(1))
    thread.join()
    assert result == team.ranks
    assert team.rank != 0 or steps[-1] == "refused"
    team.barrier()


BODIES = (rank_times_out, rank_joins_again, rank_mismatches, rank_refuses, rank_all_refuse, rank_aborts,
          rank_interrupted, rank_interrupted_wait, rank_interrupted_split, rank_handles_a_signal, rank_threads)


@pytest.mark.parametrize("body", BODIES)
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


def test_settings():
    with pytest.raises(torii.InvalidArgument, match="ENGINES"):
        torii.Context({"ENGINES": 99})
    with pytest.raises(torii.InvalidArgument, match="NOTHING"):
        torii.Context("NOTHING=1")


def test_team_options():
    with torii.Context() as context:
        for options in ({"shape": "node"}, {"channels": "many"}, {"members": [0], "exchange": 3}):
            with pytest.raises(TypeError):
                context.team(**options)
        for options in ({"topology": "torus:x"}, {"segment_bytes": -1}, {"members": []}, {"members": [-1]},
                        {"exchange": lambda mine: [mine]}, {"algorithm": "best"}):
            with pytest.raises(ValueError):
                context.team(**options)
        with context.team(topology="torus:1x1", algorithm="ring", channels=1) as team:
            assert team.choose("allreduce", 1000).algorithm == "ring"
            with pytest.raises(ValueError, match="collective is 'all'"):
                team.choose("all", 1)
            with pytest.raises(ValueError, match="count is -1"):
                team.choose("allreduce", -1)
            with pytest.raises(IndexError, match="member is 1; the team has 1 ranks"):
                team.context_rank(1)
            for ask in (context.host, context.node):
                with pytest.raises(IndexError, match="rank is 1; there are 1 ranks"):
                    ask(1)


def test_exchange_functions():
    with torii.Context(rank=0, ranks=1, exchange=lambda mine: [mine]) as context:
        with context.team(members=[0], exchange=lambda mine: [mine]) as team:
            assert team.allreduce(numpy.ones(1)) == 1

        def fail(_):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            context.team(members=[0], exchange=fail)
        with pytest.raises(ValueError, match="exchange returned 2 values; there are 1 ranks"):
            context.team(members=[0], exchange=lambda mine: [mine, mine])
        with pytest.raises(ValueError, match="exchange returned 1 bytes for rank 0"):
            context.team(members=[0], exchange=lambda mine: [b"x"])
        with pytest.raises(TypeError):
            context.team(members=[0], exchange=lambda mine: 3)
    with pytest.raises(ValueError, match="nothing says where the ranks meet"):
        torii.Context(ranks=2)
    with pytest.raises(ValueError, match="rank is 1, but ranks is not given"):
        torii.Context(rank=1)
    with pytest.raises(TypeError, match="memory_of is 3; it must be a Context"):
        torii.Context(memory_of=3)
    with pytest.raises(TypeError, match="exchange is 3; it must be a function"):
        torii.Context(exchange=3)


NO_MEMORY = """
import resource, torii
members = (0,) * 5_000_000
context = torii.Context()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))
try:
    torii.Team(context, members=members)
except MemoryError:
    print("MemoryError")
"""


def test_without_memory():
    """An exception of C++ does not pass the frames of the interpreter."""
    code, out, errors = ranks.start("-c", NO_MEMORY)
    assert (code, out) == (0, "MemoryError\n"), errors


def test_errors_are_values():
    error = pickle.loads(pickle.dumps(torii.PeerLost("rank 3 died", 3)))
    assert (error.status, error.rank, error.reason) == (torii.Status.PEER_LOST, 3, "rank 3 died")
    for status in list(torii.Status)[1:]:
        assert torii.errors.make_error(status, "rank 3 on host a", ()).status == status


if __name__ == "__main__":
    ranks.main(globals())
