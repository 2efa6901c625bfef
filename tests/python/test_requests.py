# SPDX-License-Identifier: Apache-2.0
# Started and persistent operations, lists of them, and asyncio.
"""Requests of the Python package."""
import asyncio
import gc
import sys
import time
import warnings

import numpy
import pytest
import ranks
import torii


def rank_started():
    team = torii.world()
    with pytest.raises(ValueError, match="not persistent"):
        team.start_barrier().start()
    request = team.start_allreduce(numpy.full(4, team.rank + 1.0))
    assert request.team is team
    total = team.ranks * (team.ranks + 1) / 2
    assert request.wait().tolist() == [total] * 4 and request.done
    assert request.wait() is request.wait() and request.test()
    assert team.start_barrier().wait() is None
    out = numpy.zeros(4)
    with team.start_broadcast(out, root=1) as request:
        pass
    assert request.done and request.wait() is out
    # Any order of waits, and one of each collective.
    block = numpy.ones(2 * team.ranks, "int32")
    requests = [team.start_reduce(block, "max"), team.start_all_gather(block), team.start_reduce_scatter(block),
                team.start_alltoall(block), team.start_gather(block), team.start_scan(block), team.start_exscan(block),
                team.start_scatter(block if team.rank == 0 else None, numpy.zeros(2, "int32"))]
    results = torii.wait_all(reversed(requests))
    assert torii.test_all(requests)
    assert results[0].tolist() == [1, 1] and results[3] is requests[4].wait()


def rank_persistent():
    team = torii.world()
    array, out = numpy.zeros(8), numpy.zeros(8)
    request = team.prepare_allreduce(array, out=out)
    assert request.done and request.wait() is out  # not running counts as ended
    for step in range(10):
        array[:] = step + team.rank
        assert request.start() is request
        with pytest.raises(ValueError, match="wait for it first"):
            request.free()
        assert request.wait() is out
        assert out[0] == sum(step + rank for rank in range(team.ranks))
    assert asyncio.run(wait_for(request.start())) is out
    freed = team.prepare_allreduce(array, out=numpy.zeros(8))
    freed.free()
    freed.free()
    with pytest.raises(ValueError, match="has been freed"):
        freed.start()
    team.close()
    with pytest.raises(ValueError, match="the team has been closed"):
        request.start()
    request.free()
    with pytest.raises(ValueError, match="the team has been closed"):
        team.barrier()
    with pytest.raises(ValueError, match="the team has been closed"):
        team.ranks


def rank_closes_while_operations_run():
    team = torii.world()
    part = team.split(0)
    if team.rank == 0:
        running, deleted = part.start_allreduce(numpy.ones(4)), part.start_allreduce(bytearray(4))
        part.close()
        with pytest.raises(torii.Aborted, match="destroyed the team before its operations had ended"):
            running.wait()
        del deleted
    else:
        with pytest.raises(torii.Aborted, match="aborted by rank 0"):
            part.allreduce(numpy.ones(4))
    team.barrier()


async def wait_for(request):
    return await request


def rank_timeouts():
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
    begin = time.monotonic()
    request = team.start_allreduce(numpy.ones(4))
    if team.rank == 0:
        assert not request.test() and not request.done
        with pytest.raises(TimeoutError, match="has not ended after 0.1 s; it goes on"):
            request.wait(0.1)
        assert time.monotonic() - begin >= 0.1
        with pytest.raises(TimeoutError):
            torii.wait_all([request], timeout=0.05)
        with pytest.raises(TimeoutError, match="none of 1 operations"):
            torii.wait_any([request], timeout=0.05)
        assert torii.test_any([request]) is None and not torii.test_all([request])
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError, match="timeout is"):
                request.wait(wrong)
        with pytest.raises(TypeError):
            request.wait("1")
        ranks.tell_to_go(others)
    assert request.wait(30).tolist() == [team.ranks] * 4
    with pytest.raises(ValueError, match="requests is empty"):
        torii.wait_any([])


def rank_wait_any():
    team = torii.world()
    other = team.split(0)
    late = other.start_barrier() if team.rank == 0 else None
    early = team.start_allreduce(numpy.ones(4))
    if team.rank == 0:
        assert torii.wait_any([late, early]) == 1
    early.wait()
    team.barrier()
    if team.rank != 0:
        late = other.start_barrier()
    assert torii.wait_any([late]) == 0


def rank_locked_buffers():
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
    data = bytearray(16)
    counts = sys.getrefcount(data)
    request = team.start_allreduce(data, "max", out=data)
    if team.rank == 0:
        with pytest.raises(BufferError):
            data.append(1)
        assert sys.getrefcount(data) > counts
        ranks.tell_to_go(others)
    request.wait()
    del request
    data.append(1)
    assert sys.getrefcount(data) == counts
    # A refused call and a blocking one leave nothing behind either.
    team.allreduce(memoryview(data)[:16], "max")
    with pytest.raises(ValueError):
        team.allreduce(data, out=bytearray(3))
    data.append(1)
    assert sys.getrefcount(data) == counts


def rank_abandoned():
    """A request that dies while its operation runs keeps the buffers locked until the operation has ended."""
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
    data = bytearray(16)
    request = team.start_allreduce(data, "max", out=data)
    if team.rank == 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del request
            gc.collect()
        assert [one.category for one in caught] == [ResourceWarning]
        with pytest.raises(BufferError):
            data.append(1)
        ranks.tell_to_go(others)
    else:
        request.wait()
    team.barrier()
    team.barrier()  # begins by looking at what was abandoned
    data.append(1)
    del team


def rank_asyncio():
    team = torii.world()
    second = team.split(0)
    others = ranks.others_of(team)

    async def tick(ticks):
        while True:
            ticks.append(time.monotonic())
            if team.rank == 0 and len(ticks) == 10:  # so it runs while the operations wait
                ranks.tell_to_go(others)
            await asyncio.sleep(0.01)

    async def program():
        ticks = []
        ticker = asyncio.create_task(tick(ticks))
        if team.rank == 1:
            ranks.await_go()
        request = team.start_allreduce(numpy.full(4, float(team.rank)))
        result, gathered = await asyncio.gather(wait_for(request), wait_for(second.start_all_gather(bytearray(1))))
        assert result.tolist() == [1.0] * 4 and gathered == bytearray(2)
        if team.rank == 0:
            assert len(ticks) >= 10
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wait_for(late := team.start_barrier()), 0.05)
            ranks.tell_to_go(others)
            await late
        else:
            ranks.await_go()
            await team.start_barrier()
        ticker.cancel()

    asyncio.run(program())


def rank_failed_request():
    team = torii.world()
    other = team.split(0)
    failing = team.start_allreduce(numpy.ones(2)) if team.rank == 0 else None
    other.barrier()
    if team.rank == 1:
        team.abort("enough")
    other.barrier()
    good = other.start_barrier()
    if team.rank == 0:
        with pytest.raises(torii.Aborted, match="enough") as caught:
            torii.wait_all([failing, good])
        assert caught.value.rank == 1 and good.done
        for again in (failing.wait, failing.test, lambda: asyncio.run(wait_for(failing))):
            with pytest.raises(torii.Aborted, match="enough"):
                again()
        assert torii.wait_any([failing, good]) == 0
    good.wait()


BODIES = (rank_started, rank_persistent, rank_timeouts, rank_wait_any, rank_locked_buffers, rank_abandoned,
          rank_asyncio, rank_failed_request, rank_closes_while_operations_run)


@pytest.mark.parametrize("body", BODIES)
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


def test_requests_come_from_teams_only():
    with pytest.raises(TypeError):
        torii.Request()


if __name__ == "__main__":
    ranks.main(globals())
