# SPDX-License-Identifier: Apache-2.0
# Several threads of a process that call on teams of their own at once, and what is refused.
"""Threads in the Python package."""
import threading

import numpy
import pytest
import ranks
import torii

THREADS = 4
STEPS = 40


def run_all(bodies):
    """Runs each body in a thread of its own, and raises the first failure."""
    failures = []

    def guarded(body):
        try:
            body()
        except BaseException as error:  # an assertion too
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def until_busy(team):
    """Returns when another thread is in a call on the team; a question that uses it does nothing else."""
    while True:
        try:
            team.choose("barrier", 0)
        except RuntimeError as error:
            assert "another thread is in a call on this team" in str(error)
            return


def steps(team, number):
    """Calls of every kind, whose results depend on the step and the thread."""
    right, left = (team.rank + 1) % team.ranks, (team.rank - 1) % team.ranks
    for step in range(STEPS):
        value = 1000 * number + step
        count = 1 + 977 * step * (number + 1)
        total = team.allreduce(numpy.full(count, value + team.rank, "int64"))
        assert (total == team.ranks * value + sum(range(team.ranks))).all()
        theirs = numpy.zeros(count, "int64")
        with team.group():
            team.send(numpy.full(count, value + team.rank, "int64"), right, number)
            got = team.recv(theirs, left)
            joined = team.all_gather(numpy.array([value + team.rank]))
        assert (got.rank, got.tag, got.count) == (left, number, count) and (theirs == value + left).all()
        assert joined.tolist() == [value + rank for rank in range(team.ranks)]
        requests = [team.start_allreduce(numpy.full(3, value)), team.start_recv(out := bytearray(2), left),
                    team.start_send(bytes([step, number]), right)]
        assert torii.wait_all(requests)[0].tolist() == [team.ranks * value] * 3 and out == bytes([step, number])


def rank_threads_on_teams_of_their_own():
    team = torii.world()
    teams = [team.split(0) for _ in range(THREADS)]
    run_all([lambda own=own, number=number: steps(own, number) for number, own in enumerate(teams)])
    team.barrier()


def rank_waiting_threads_let_others_run():
    """While a thread waits for rank 1 in a call, the main thread of rank 0 makes calls on another team."""
    team = torii.world()
    own = team.split(0)
    others = ranks.others_of(team)

    def plain(out):
        return lambda: own.recv(out, 1)

    def grouped(out):
        def body():
            with own.group():
                own.barrier()
                own.recv(out, 1)
        return body

    def requested(out):
        return own.start_recv(out, 1).wait  # what starts releases the GIL too

    def compute():
        until_busy(own)
        for refused in (own.barrier, own.group().__enter__, own.close, lambda: own.split(0), lambda: own.send(b"", 1)):
            with pytest.raises(RuntimeError, match="another thread is in a call on this team"):
                refused()
        assert team.allreduce(numpy.ones(1)) == team.ranks
        ranks.tell_to_go(others)

    for wait in (plain, grouped, requested):
        out = numpy.zeros(4)
        if team.rank == 0:
            run_all([wait(out), compute])
            assert out.tolist() == [1, 2, 3, 4]
        else:
            assert team.allreduce(numpy.ones(1)) == team.ranks
            ranks.await_go()
            with own.group():
                own.send(numpy.array([1.0, 2, 3, 4]), 0)
                if wait is grouped:
                    own.barrier()
    assert own.allreduce(numpy.ones(1)) == own.ranks


def rank_one_thread_makes_teams():
    team = torii.world()
    other = team.split(0)
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
        part = team.split(0)
    else:
        made = []

        def make():
            made.append(team.split(0))

        def refused():
            until_busy(team)
            for wrong in (lambda: other.split(0), team.context.team, lambda: other.survivors(), team.context.close):
                with pytest.raises(RuntimeError, match="another thread is making a team of this context"):
                    wrong()
            ranks.tell_to_go(others)

        run_all([make, refused])
        part = made[0]
    for one in (part, other, other.split(0)):
        assert one.allreduce(numpy.ones(1)) == team.ranks


def rank_abort_from_another_thread():
    team = torii.world()
    own = team.split(0)

    def wait():
        with pytest.raises(torii.Aborted, match="enough"):
            own.recv(bytearray(1))

    def abort():
        until_busy(own)
        own.abort("enough")

    if team.rank == 0:
        run_all([wait, abort])
    team.barrier()


def rank_group_ends_below_a_call():
    """A group that ends while another thread is in a call is not made; the other rank hears of it after that call."""
    team = torii.world()
    others = ranks.others_of(team)
    for is_left in (False, True):
        part = torii.Team(team.context, timeout_seconds=10)
        values = numpy.ones(2)
        if team.rank == 0:
            thread = threading.Thread(target=lambda part=part: part.recv(bytearray(1), 1, 5))
            with pytest.raises(KeyError if is_left else RuntimeError, match="left|another thread is in a call"):
                with part.group():
                    part.allreduce(values, out=values)
                    thread.start()
                    until_busy(part)
                    if is_left:
                        raise KeyError("left")
            ranks.tell_to_go(others)
            thread.join()
        else:
            ranks.await_go()
            part.send(b"x", 0, 5)
            reason = "left by KeyError: 'left'" if is_left else "ended while another thread was in a call"
            with pytest.raises(torii.Mismatch, match=reason):
                with part.group():
                    part.allreduce(values, out=values)
        team.barrier()


BODIES = (rank_group_ends_below_a_call, rank_threads_on_teams_of_their_own, rank_waiting_threads_let_others_run,
          rank_one_thread_makes_teams, rank_abort_from_another_thread)


@pytest.mark.parametrize("body", BODIES)
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


def test_more_ranks():
    ranks.job(__file__, "rank_threads_on_teams_of_their_own", 3)


def test_several_nodes():
    ranks.job_of_nodes(__file__, "rank_threads_on_teams_of_their_own")


def test_contexts_of_their_own():
    """Jobs of one rank each, in one process."""
    contexts = [torii.Context() for _ in range(THREADS)]
    teams = [context.team() for context in contexts]
    run_all([lambda own=own: steps(own, 1) for own in teams])
    for team in teams:
        team.close()
    for context in contexts:
        context.close()


if __name__ == "__main__":
    ranks.main(globals())
