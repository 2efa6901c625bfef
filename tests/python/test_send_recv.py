# SPDX-License-Identifier: Apache-2.0
# Sends and receives: tags, any source, started forms, what is refused and what fails.
"""Sends and receives of the Python package."""
import asyncio
import gc
import os
import pathlib
import signal
import warnings

import numpy
import pytest
import ranks
import torii

LONG = 300_000  # elements; a send of so many returns when it has been received


def rank_send_and_recv():
    team = torii.world()
    for count in (0, 1, 1000, LONG):
        if team.rank == 0:
            assert team.send(numpy.arange(count, dtype="int32"), 1, 7) is None
        elif team.rank == 1:
            out = numpy.full(count + 5, -1, "int32")
            received = team.recv(out, 0, 7)
            assert (received.rank, received.tag, received.count) == (0, 7, count)
            assert repr(received) == f"Received(rank=0, tag=7, count={count})"
            assert out[:count].tolist() == list(range(count)) and (out[count:] == -1).all()
    # Bytes that hold floats, and a bool.
    if team.rank == 0:
        team.send(numpy.ones(3, "float32").tobytes(), 1, dtype="f32")
        team.send(numpy.array([True, False]), 1)
    elif team.rank == 1:
        out = numpy.zeros(3, "float32")
        assert team.recv(out).count == 3 and out.tolist() == [1, 1, 1]
        assert team.recv(flags := numpy.zeros(2, bool)).count == 2 and flags.tolist() == [True, False]


def rank_tags_and_order():
    team = torii.world()
    if team.rank == 0:
        for value in range(4):
            team.send(bytes([value]), 1, tag=value % 2)
        return
    if team.rank != 1:
        return
    got = bytearray(1)
    seen = []
    for tag in (1, 0, torii.ANY_TAG, torii.ANY_TAG):
        received = team.recv(got, source=0, tag=tag)
        assert received.tag == got[0] % 2
        seen.append(got[0])
    assert seen == [1, 0, 2, 3]


def rank_any_source():
    team = torii.world()
    if team.rank > 0:
        team.send(numpy.full(2, team.rank), 0, tag=team.rank)
        return
    seen = set()
    for _ in range(1, team.ranks):
        out = numpy.zeros(2, int)
        received = team.recv(out)
        assert out.tolist() == [received.rank] * 2 and received.tag == received.rank
        seen.add(received.rank)
    assert seen == set(range(1, team.ranks))


def rank_started():
    """Every rank sends a long array to every rank, itself too. The requests are in lists with those of collectives."""
    team = torii.world()
    outs = [numpy.zeros(LONG, "float32") for _ in range(team.ranks)]
    receives = [team.start_recv(out, source, 3) for source, out in enumerate(outs)]
    sum_of_all = team.start_allreduce(numpy.ones(2))
    sends = [team.start_send(numpy.full(LONG, team.rank, "float32"), to, 3) for to in range(team.ranks)]
    results = torii.wait_all(sends + receives + [sum_of_all])
    assert results[:team.ranks] == [None] * team.ranks
    assert [one.rank for one in results[team.ranks:-1]] == list(range(team.ranks))
    assert all(one.count == LONG for one in results[team.ranks:-1]) and results[-1].tolist() == [team.ranks] * 2
    for source, out in enumerate(outs):
        assert (out == source).all()
    assert receives[0].wait() is results[team.ranks] and receives[0].test()
    with pytest.raises(ValueError, match="not persistent"):
        receives[0].start()


def rank_awaited():
    team = torii.world()

    async def exchange():
        out = bytearray(8)
        receive = team.start_recv(out, 1 - team.rank)
        assert await team.start_send(bytes([team.rank] * 8), 1 - team.rank) is None
        received = await receive
        assert received.rank == 1 - team.rank and out == bytes([received.rank] * 8)

    asyncio.run(exchange())


def rank_cancelled():
    team = torii.world()
    out = bytearray(4)
    request = team.start_recv(out, tag=5)
    with pytest.raises(BufferError):
        out.append(1)
    assert request.cancel() is True and request.done and request.wait() is None and not request.cancel()
    out.append(1)
    with pytest.raises(ValueError, match=r"only a request of start_recv\(\) can be cancelled"):
        team.start_barrier().cancel()
    send = team.start_send(b"abcd", team.rank)
    with pytest.raises(ValueError, match="only a request of start_recv"):
        send.cancel()
    request = team.start_recv(bytearray(4), team.rank)
    assert request.wait().count == 4 and request.cancel() is False
    send.wait()


def rank_abandoned():
    """A receive whose request dies stays; what comes is written into its buffer, which stays locked until then."""
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
        team.send(b"abcd", 0)
    elif team.rank == 0:
        out = bytearray(4)
        request = team.start_recv(out)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del request
            gc.collect()
        assert [one.category for one in caught] == [ResourceWarning]
        with pytest.raises(BufferError):
            out.append(1)
        ranks.tell_to_go(others)
    team.barrier()
    if team.rank == 0:
        while True:
            assert team.health()
            team.send(b"", 0)  # each call looks at what was abandoned
            team.recv(bytearray(1), 0, 0)
            try:
                out.append(1)
                break
            except BufferError:
                pass
        assert out == b"abcd\1"


def rank_closed():
    """A receive that nobody answers ends with its team."""
    team = torii.world()
    own = team.split(0)
    request = own.start_recv(out := bytearray(4), 1 - team.rank)
    team.barrier()
    own.close()
    with pytest.raises(torii.Aborted):
        request.wait()
    out.append(1)
    team.barrier()


def rank_too_long():
    team = torii.world()
    with pytest.raises(torii.Mismatch, match="sends 5 bytes of u8 with tag 0 to rank 1, whose receive has room for 4"):
        if team.rank == 0:
            team.send(bytes(5), 1)
            team.barrier()
        else:
            team.recv(bytearray(4), 0)


def rank_timeout():
    world = torii.world()
    others = ranks.others_of(world)
    team = world.split(0, timeout_seconds=0.5)
    with pytest.raises(torii.InvalidArgument, match="timeout_seconds is -1.0"):
        world.split(0, timeout_seconds=-1)
    if team.rank == 1:
        ranks.await_go()
        return
    with pytest.raises(torii.Timeout, match="tag 9, from rank 1 .*waiting for rank 1") as caught:
        team.recv(numpy.zeros(4), 1, 9)
    assert caught.value.rank == 1
    ranks.tell_to_go(others)


def rank_lost():
    team = torii.world()
    team.barrier()
    if team.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(torii.PeerLost) as caught:
        team.recv(numpy.zeros(4), 1)
    assert caught.value.rank == 1
    os.write(1, b"noticed\n")


def rank_refused():
    """A refused send or receive counts for nobody: the team goes on."""
    team = torii.world()
    if team.rank == 0:
        for wrong in (lambda: team.send(numpy.ones(1), 5), lambda: team.start_recv(b"", 0)):
            with pytest.raises((ValueError, BufferError)):
                wrong()
        team.send(numpy.full(1, 3.0), 1)
    else:
        assert team.recv(out := numpy.zeros(1)).rank == 0 and out == 3
    assert team.allreduce(numpy.ones(1)) == 2


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("body", (rank_send_and_recv, rank_tags_and_order, rank_any_source, rank_started))
def test_ranks(body, count):
    ranks.job(__file__, body.__name__, count)


@pytest.mark.parametrize("body", (rank_awaited, rank_cancelled, rank_closed, rank_abandoned, rank_too_long,
                                  rank_timeout, rank_refused))
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


@pytest.mark.parametrize("body", (rank_send_and_recv, rank_any_source, rank_started, rank_cancelled, rank_too_long))
def test_several_nodes(body):
    ranks.job_of_nodes(__file__, body.__name__)


def test_lost_rank():
    code, out, errors = ranks.start("-m", "torii.run", "-n", "2", "--on-failure", "continue", __file__, "rank_lost")
    assert (code, out) == (0, "noticed\n"), errors


def test_wrong_arguments():
    team = torii.world()
    for wrong in (1, -1):
        with pytest.raises(ValueError, match=f"to is {wrong}; it must be 0 to 0"):
            team.send(b"a", wrong)
    with pytest.raises(ValueError, match="source is -2; it must be -1 to 0, of which -1 stands for any"):
        team.recv(bytearray(1), -2)
    with pytest.raises(ValueError, match="tag is -1; it must be 0 to 2147483647$"):
        team.send(b"a", 0, -1)
    with pytest.raises(ValueError, match=f"tag is {1 << 70}; it must be -1 to 2147483647"):
        team.start_recv(bytearray(1), 0, 1 << 70)
    with pytest.raises(TypeError, match="to is '0'; it must be an integer"):
        team.send(b"a", "0")
    with pytest.raises(TypeError, match="tag is 1.5; it must be an integer"):
        team.recv(bytearray(1), tag=1.5)
    with pytest.raises(TypeError, match="array is <class 'list'>"):
        team.send([1], 0)
    with pytest.raises(BufferError, match="out is read-only"):
        team.recv(b"a")
    with pytest.raises(ValueError, match="dtype is 'float5'"):
        team.send(b"a", 0, dtype="float5")
    with pytest.raises(TypeError):
        torii.Received()
    team = torii.Context().team()
    team.close()
    with pytest.raises(ValueError, match="the team has been closed"):
        team.send(b"a", 0)


def rank_runs_the_guide():
    """The first example of docs/python.md, "Send and receive", as it stands."""
    guide = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    example = guide.split("\n## Send and receive\n```python\n")[1].split("```")[0]
    names = {"team": torii.world(), "numpy": numpy, "torii": torii}
    exec(example, names)
    if names["team"].rank == 1:
        assert (names["got"].rank, names["got"].tag, names["got"].count) == (0, 8, 2)
        assert names["out"].tolist() == [0, 1, 2]
    names["team"].barrier()


def test_the_guide():
    ranks.job(__file__, "rank_runs_the_guide")


if __name__ == "__main__":
    ranks.main(globals())
