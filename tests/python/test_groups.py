# SPDX-License-Identifier: Apache-2.0
# Groups of calls: what joins, when it is made, and what becomes of a group that is refused, left or interrupted.
"""Team.group() of the Python package."""
import gc
import signal
import sys
import threading

import numpy
import pytest
import ranks
import torii

LONG = 300_000  # elements; a send of so many returns when it has been received


def rank_collectives():
    team = torii.world()
    total = sum(range(1, team.ranks + 1))
    for _ in range(3):
        arrays = [numpy.full(100 + one, team.rank + 1.0) for one in range(20)]
        with team.group():
            for array in arrays:
                assert team.allreduce(array, out=array) is array
            joined = team.all_gather(numpy.full(2, team.rank))
            team.barrier()
            at_root = team.reduce(numpy.ones(3), root=1)
            assert array[0] == team.rank + 1.0  # the end of the block makes the calls
        assert all((array == total).all() for array in arrays)
        assert joined.tolist() == numpy.repeat(range(team.ranks), 2).tolist()
        assert at_root is None if team.rank != 1 else at_root.tolist() == [team.ranks] * 3
    with team.group():
        pass
    mine = numpy.full(2, 1.0)
    outs = [numpy.zeros(2) for _ in range(team.ranks)]
    with team.group():
        scaled = team.allreduce(mine, "premul_sum", factor=team.rank + 1)
        assert team.all_gather_list(mine, outs) is outs
    assert scaled.tolist() == [total] * 2 and all(out.tolist() == [1, 1] for out in outs)


def rank_bits():
    """At "canonical" the bits of a group are those of each call alone."""
    team = torii.Team(torii.world().context, determinism="canonical")
    random = numpy.random.default_rng(team.rank)
    arrays = [random.normal(size=1 + 37 * one).astype("float32") for one in range(12)]
    alone = [team.allreduce(array) for array in arrays]
    with team.group():
        together = [team.allreduce(array) for array in arrays]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(alone, together, strict=True))


def rank_ring():
    """All ranks send before they receive, and a collective is between."""
    team = torii.world()
    right, left = (team.rank + 1) % team.ranks, (team.rank - 1) % team.ranks
    theirs, total = numpy.zeros(LONG), numpy.ones(1)
    with team.group():
        team.send(numpy.full(LONG, float(team.rank)), right, 4)
        team.allreduce(total, out=total)
        got = team.recv(theirs, left, 4)
        anybody = team.recv(bytearray(3), tag=5)
        team.send(bytes(3), left, 5)
        assert (got.rank, got.tag, got.count) == (None, None, None) and repr(got) == "Received(nothing yet)"
    assert (got.rank, got.tag, got.count) == (left, 4, LONG) and (theirs == left).all() and total == team.ranks
    assert (anybody.rank, anybody.tag, anybody.count) == (right, 5, 3)


def rank_started_in_a_group():
    """Requests do not join; an operation of a group keeps its buffers locked until the end."""
    team = torii.world()
    data = bytearray(4)
    count = sys.getrefcount(data)
    with team.group():
        team.allreduce(data, "max", out=data)
        assert team.start_allreduce(numpy.ones(1)).wait() == team.ranks
        with pytest.raises(BufferError):
            data.append(1)
    data.append(1)
    gc.collect()
    assert sys.getrefcount(data) == count


def rank_left_by_an_exception():
    """No call of the group is made, and the other rank hears at once that a collective is missing."""
    team = torii.world()
    values, sent = numpy.ones(2), numpy.full(1, 5.0)
    expected = KeyError if team.rank == 1 else torii.Mismatch
    with pytest.raises(expected, match="its group of calls was left by KeyError: 'mine'|^'mine'$") as caught:
        with team.group():
            team.allreduce(values, out=values)
            team.send(sent, 1 - team.rank)
            if team.rank == 1:
                raise KeyError("mine")
    if team.rank == 0:
        assert caught.value.rank == 1
    with pytest.raises((torii.Mismatch, torii.Poisoned), match="its group of calls was left by KeyError"):
        with team.group():  # the earlier group is closed
            team.barrier()
    part = team.survivors()
    with part.group():
        result = part.allreduce(values * 0 + 1)
    assert result.tolist() == [2, 2]


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def rank_left_by_a_mute_exception():
    """The group is closed, whatever the exception is."""
    team = torii.world()
    with pytest.raises(Mute if team.rank == 1 else torii.Mismatch) as caught:
        with team.group():
            team.allreduce(numpy.ones(2))
            if team.rank == 1:
                raise Mute()
    assert team.rank == 1 or "its group of calls was left by Mute" in caught.value.reason
    with pytest.raises((torii.Mismatch, torii.Poisoned)):
        team.barrier()
    part = team.survivors()
    assert part.allreduce(numpy.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError):
        with part.group():
            part.allreduce(numpy.ones(2))
            raise ValueError("\udcff of a file's name")  # has no UTF-8
    assert part.allreduce(numpy.ones(2)).tolist() == [2, 2]


def rank_left_by_all():
    """If all ranks leave their groups, the team goes on. A group of sends alone counts for nobody."""
    team = torii.world()
    data = bytearray(2)
    for joins in (lambda: team.allreduce(data, "max"), lambda: team.send(data, 1 - team.rank)):
        with pytest.raises(KeyboardInterrupt):
            with team.group():
                joins()
                raise KeyboardInterrupt
        data.append(1)
    with team.group():
        got = team.recv(bytearray(9), 1 - team.rank)
        team.send(b"x", 1 - team.rank)
    assert got.count == 1 and team.allreduce(numpy.ones(1)) == 2


def rank_refused():
    """A refused collective refuses the group, also if the block goes on; a refused send does not."""
    team = torii.world()
    values = numpy.ones(2)
    with pytest.raises(torii.InvalidArgument, match="op is 'mean'"):
        with team.group():
            team.allreduce(values, out=values)
            with pytest.raises(ValueError, match="op is 'mean'"):
                team.allreduce(numpy.ones(2), "mean")
    # What the library alone knows to be wrong is told at the end.
    with pytest.raises(torii.InvalidArgument, match="band"):
        with team.group():
            team.allreduce(values, out=values)
            team.allreduce(numpy.ones(2), "band")
    assert values.tolist() == [1, 1]
    with team.group():
        total = team.allreduce(values)
        with pytest.raises(ValueError, match="to is 2"):
            team.send(values, 2)
        with pytest.raises(BufferError):
            team.recv(b"ab")
    assert total.tolist() == [2, 2]
    # On one rank: the other one does not wait for it.
    with pytest.raises(ValueError if team.rank == 1 else torii.Mismatch, match="op is 'mean'"):
        with team.group():
            team.allreduce(values, "mean" if team.rank == 1 else "sum")


def rank_group_of_one():
    """It pairs with the plain call."""
    team = torii.world()
    if team.rank == 0:
        with team.group():
            total = team.allreduce(numpy.ones(3))
    else:
        total = team.allreduce(numpy.ones(3))
    assert total.tolist() == [2] * 3


def rank_lengths_differ():
    team = torii.world()
    with pytest.raises(torii.Mismatch, match="calls of a group in one"):
        with team.group():
            for count in (100, 200 + team.rank):
                team.allreduce(numpy.ones(count))


def rank_interrupted():
    """Ctrl-C at the end of a group aborts the team, as in other calls."""
    team = torii.world()
    others = ranks.others_of(team)
    part = team.split(0)
    if team.rank == 0:
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            with part.group():
                part.recv(bytearray(1), 1)
        ranks.tell_to_go(others)
    else:
        ranks.await_go()
        with pytest.raises((torii.Aborted, torii.Poisoned), match="interrupted by a signal handler"):
            with part.group():
                part.send(bytes(LONG), 0)
                part.barrier()
    part.close()
    with team.group():
        assert team.barrier() is None


def rank_of_its_thread():
    """A call of another thread does not join. Another thread has no group of the team meanwhile."""
    team = torii.world()
    seen = []

    def other():
        seen.append(team.allreduce(numpy.ones(1)).tolist())
        with pytest.raises(RuntimeError, match="another thread is in a group of this team"):
            with team.group():
                pass

    with team.group():
        late = team.allreduce(numpy.full(1, 5.0))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [[2.0]]
    assert late.tolist() == [10.0]


BODIES = (rank_started_in_a_group, rank_left_by_an_exception, rank_left_by_a_mute_exception, rank_left_by_all,
          rank_refused, rank_group_of_one, rank_lengths_differ, rank_interrupted, rank_of_its_thread)


@pytest.mark.parametrize("body", BODIES)
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("body", (rank_collectives, rank_bits, rank_ring))
def test_ranks(body, count):
    ranks.job(__file__, body.__name__, count)


@pytest.mark.parametrize("body", (rank_collectives, rank_bits, rank_ring, rank_left_by_an_exception))
def test_several_nodes(body):
    ranks.job_of_nodes(__file__, body.__name__)


def test_wrong_groups():
    team = torii.Context().team()
    with team.group():
        total = team.allreduce(numpy.ones(1))
        with pytest.raises(ValueError, match="groups do not nest"):
            with team.group():
                pass
        with pytest.raises(ValueError, match="a group of the team is open; close the team behind its end"):
            team.close()
    assert total == 1
    with pytest.raises(ValueError, match="the group is not open"):
        team.group().__exit__(None, None, None)
    team.close()
    with pytest.raises(ValueError, match="the team has been closed"):
        with team.group():
            pass


def test_a_signal_handler_leaves_no_group_open():
    team = torii.Context().team()

    def handler(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for interruption in range(1000):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 50e-6 + interruption % 97 * 1e-7)
                while True:
                    with team.group():  # a ValueError if one is still open
                        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with team.group():
        total = team.allreduce(numpy.ones(1))
    assert total == 1
    team.close()


def in_a_thread(body):
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def test_a_later_thread_has_no_part_in_a_group():
    """The operating system gives the numbers of threads that have ended to later ones."""
    team = torii.Context().team()
    group = team.group()
    in_a_thread(group.__enter__)
    outs = [numpy.zeros(1) for _ in range(8)]
    for out in outs:
        in_a_thread(lambda out=out: team.allreduce(numpy.full(1, 5.0), out=out))
    assert [out[0] for out in outs] == [5.0] * len(outs)
    group.__exit__(None, None, None)
    team.close()


def test_a_statement_that_is_given_up():
    team = torii.Context().team()
    group = team.group()
    group.__enter__()
    team.allreduce(numpy.ones(1))
    del group
    with team.group():
        total = team.allreduce(numpy.ones(1))
    assert total == 1
    team.close()


class Ends:
    """An operand that ends the group that it joins."""

    def __init__(self, group, is_wrong):
        self.group = group
        self.is_wrong = is_wrong

    def __index__(self):
        with pytest.raises(RuntimeError, match="another thread is in a call on this team, or this one is"):
            self.group.__exit__(None, None, None)
        if self.is_wrong:
            raise KeyError("wrong")
        return 1


def rank_ended_by_an_operand():
    team = torii.world()
    for is_wrong in (False, True):
        group = team.group()
        group.__enter__()
        team.allreduce(numpy.ones(1))
        with pytest.raises(KeyError if is_wrong else RuntimeError, match="wrong|has ended while this call joined it"):
            team.all_gather(numpy.ones(1), counts=[Ends(group, is_wrong)])
        assert team.allreduce(numpy.ones(1)) == 1


def test_ended_by_an_operand():
    ranks.job(__file__, "rank_ended_by_an_operand", 1)


if __name__ == "__main__":
    ranks.main(globals())
