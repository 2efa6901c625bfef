# SPDX-License-Identifier: Apache-2.0
# How requests end: failures, objects that die with their buffers, requests that are given up.
"""Ends of requests of the Python package."""
import asyncio
import sys
import threading
import warnings
import weakref

import numpy
import pytest
import ranks
import torii
from torii import _torii

ROUNDS = 1000  # a list that moves while it is looped over ends most runs of so many


def failing_request(team):
    request = team.start_recv(numpy.zeros(3))
    team.abort("enough")
    return request


def test_a_failure_is_seen_by_all():
    """No question finds a request that has ended without its failure."""
    request = failing_request(torii.Context().team())
    seen = []

    def make_error(*arguments):
        if not seen:
            seen.append(None)
            try:
                seen.append(request.wait())
            except (torii.Error, RuntimeError) as error:
                seen.append(error)
        return torii.errors.make_error(*arguments)

    _torii._install(make_error, torii.memory.new_result, torii.Request)
    try:
        with pytest.raises(torii.Aborted, match="enough"):
            request.wait()
    finally:
        _torii._install(torii.errors.make_error, torii.memory.new_result, torii.Request)
    assert isinstance(seen[1], torii.Aborted)


class Array(numpy.ndarray):
    """Can be looked at by a weak reference that outlives its owner."""


def test_a_failed_request_keeps_no_frames():
    def step():
        array = numpy.zeros(3).view(Array)
        request = failing_request(torii.Context().team())
        for _ in range(2):
            try:
                request.wait()
            except torii.Aborted:
                pass
        return weakref.ref(array)

    assert step()() is None  # without a garbage collection
    request = failing_request(torii.Context().team())
    errors = []
    for _ in range(3):
        with pytest.raises(torii.Aborted, match="enough") as caught:
            request.wait()
        errors.append(caught)
    with pytest.raises(torii.Aborted, match="enough") as caught:
        request.test()
    assert len({id(one.value) for one in errors}) == 3 and len({len(one.traceback) for one in errors}) == 1


class Frees(numpy.ndarray):
    """Frees a request when it dies."""

    def __del__(self):
        if requests:
            requests.pop().free()
            freed.append(True)


requests = []
freed = []


def rank_frees_below_an_end():
    """The request is asked again while its own buffers are given up."""
    team = torii.world()
    for make, end in ((team.prepare_allreduce, torii.Request.free), (team.start_allreduce, torii.Request.wait)):
        freed.clear()
        request = make(numpy.ones(4).view(Frees), out=numpy.zeros(4))
        requests.append(request)
        end(request)
        assert freed == [True]
    assert team.allreduce(numpy.ones(1)) == 1


def rank_closes_while_others_abandon():
    """A thread drops requests while another one closes their team."""
    warnings.simplefilter("ignore")
    sys.setswitchinterval(1e-6)
    world = torii.world()
    for _ in range(ROUNDS):
        team = world.context.team()
        running = [team.start_recv(numpy.zeros(3), 1 - team.rank, tag) for tag in range(60)]
        kept = running[:40]
        world.barrier()  # a team that is closed aborts what the other rank starts
        running.clear()
        thread = threading.Thread(target=kept.clear)
        thread.start()
        while not team.closed:
            try:
                team.close()
            except RuntimeError:
                pass
        thread.join()


def test_frees_below_an_end():
    ranks.job(__file__, "rank_frees_below_an_end", 1)


def test_closes_while_others_abandon():
    ranks.job(__file__, "rank_closes_while_others_abandon")


def rank_cancelled_receive():
    """A receive whose task is cancelled takes no message from those that follow; other operations go on."""
    team = torii.world()
    other = 1 - team.rank

    async def receive():
        out = numpy.zeros(1)
        await team.start_recv(out, other, 2)
        return out[0]

    async def body():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(receive(), 0.05)
        team.barrier()
        total = team.start_allreduce(numpy.ones(1)) if team.rank == 0 else None
        if team.rank == 0:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(total, 0.05)
        team.send(numpy.full(1, 7.0), other, 2)
        assert await asyncio.wait_for(receive(), 10) == 7
        total = total or team.start_allreduce(numpy.ones(1))
        assert await total == 2

    asyncio.run(body())


def test_cancelled_receive():
    ranks.job(__file__, "rank_cancelled_receive")


if __name__ == "__main__":
    ranks.main(globals())
