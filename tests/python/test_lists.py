# SPDX-License-Identifier: Apache-2.0
# Collectives on lists of arrays, alone and beside ranks that give counts.
"""Lists of arrays in the Python package."""
import numpy
import pytest
import ranks
import torii

TYPES = ("int8", "float32", "complex128")


def length(source, target):
    """How many elements `source` sends to `target`; some send nothing."""
    return (2 + 3 * source + 5 * target) % 7


def block(source, target, dtype):
    return numpy.full(length(source, target), 10 * source + target, dtype)


def empty_blocks(lengths, dtype):
    return [numpy.zeros(count, dtype) if count else None for count in lengths]


def same(blocks, expected):
    for one, other in zip(blocks, expected, strict=True):
        assert (one is None and len(other) == 0) or numpy.array_equal(one, other)


def check_alltoall(team, dtype):
    everyone, me = range(team.ranks), team.rank
    arrays = [block(me, rank, dtype) if length(me, rank) else None for rank in everyone]
    outs = empty_blocks([length(rank, me) for rank in everyone], dtype)
    assert team.alltoall_list(arrays, outs) is outs
    same(outs, [block(rank, me, dtype) for rank in everyone])
    request = team.prepare_alltoall_list(tuple(arrays), outs)
    for _ in range(2):
        for out in outs:
            if out is not None:
                out[:] = 0
        assert request.start().wait() is outs
        same(outs, [block(rank, me, dtype) for rank in everyone])
    request.free()


def check_alltoall_in_place(team, dtype):
    """In place blocks for and from a rank have one length. One input may go to several ranks."""
    arrays = [numpy.full(4 + team.rank + rank, 10 * team.rank + rank, dtype) for rank in range(team.ranks)]
    team.alltoall_list(arrays, arrays)
    same(arrays, [numpy.full(4 + team.rank + rank, 10 * rank + team.rank, dtype) for rank in range(team.ranks)])
    mine = numpy.full(3, team.rank, dtype)
    outs = empty_blocks([3] * team.ranks, dtype)
    team.alltoall_list([mine] * team.ranks, outs)
    same(outs, [numpy.full(3, rank, dtype) for rank in range(team.ranks)])


def check_gathers(team, dtype):
    mine = block(team.rank, 0, dtype)
    expected = [block(rank, 0, dtype) for rank in range(team.ranks)]
    outs = empty_blocks([length(rank, 0) for rank in range(team.ranks)], dtype)
    assert team.all_gather_list(mine, outs) is outs
    same(outs, expected)
    places = [mine if rank == team.rank else out for rank, out in enumerate(outs)]  # the own block is in place
    assert team.start_all_gather_list(mine, places).wait() is places
    same(places, expected)
    for root in range(team.ranks):
        outs = empty_blocks([length(rank, 0) for rank in range(team.ranks)], dtype)
        result = team.gather_list(mine, outs if team.rank == root else None, root)
        assert result is (outs if team.rank == root else None)
        if team.rank == root:
            same(outs, expected)


def check_scatter(team, dtype):
    for root in range(team.ranks):
        arrays = [block(root, rank, dtype) for rank in range(team.ranks)] if team.rank == root else None
        out = numpy.zeros(length(root, team.rank), dtype)
        assert team.scatter_list(arrays, out, root) is out
        assert numpy.array_equal(out, block(root, team.rank, dtype))


def check_beside_counts(team, dtype):
    """Even ranks give lists, odd ones counts."""
    counts = [length(rank, 0) + 1 for rank in range(team.ranks)]
    mine = numpy.full(counts[team.rank], team.rank, dtype)
    outs = empty_blocks(counts, dtype)
    if team.rank % 2:
        joined = team.all_gather(mine, counts=counts)
        outs = numpy.split(joined, numpy.cumsum(counts)[:-1])
    else:
        team.all_gather_list(mine, outs)
    same(outs, [numpy.full(count, rank, dtype) for rank, count in enumerate(counts)])


def check_bytes(team, _):
    """Buffers without NumPy, and a type that the format cannot say."""
    outs = [bytearray(2) for _ in range(team.ranks)]
    team.all_gather_list(bytes([team.rank, 7]), outs)
    assert outs == [bytearray([rank, 7]) for rank in range(team.ranks)]
    team.all_gather_list(bytes([team.rank, 7]), outs, dtype="bf16")
    team.alltoall_list([None] * team.ranks, [None] * team.ranks, dtype="f32")


CHECKS = (check_alltoall, check_alltoall_in_place, check_gathers, check_scatter, check_beside_counts, check_bytes)


def rank_checks():
    team = torii.world()
    for check in CHECKS:
        for dtype in TYPES:
            check(team, dtype)
    context = team.context
    outs = [context.allocate(1000, "float32") for _ in range(team.ranks)]
    team.all_gather_list(numpy.full(1000, team.rank, "float32"), outs)
    same(outs, [numpy.full(1000, rank, "float32") for rank in range(team.ranks)])


def rank_locked():
    team = torii.world()
    others = ranks.others_of(team)
    if team.rank == 1:
        ranks.await_go()
    outs = [bytearray(1), bytearray(1)]
    request = team.start_all_gather_list(b"a", outs)
    if team.rank == 0:
        with pytest.raises(BufferError):
            outs[1].append(1)
        ranks.tell_to_go(others)
    request.wait()
    outs[1].append(1)


def rank_refused():
    """A refused call counts: the other rank hears of it at once."""
    team = torii.world()
    outs = [numpy.zeros(2), numpy.zeros(2)]
    expected = ValueError if team.rank == 1 else torii.Mismatch
    with pytest.raises(expected, match=r"outs has 1 arrays; it must have one for each of 2 ranks"):
        team.all_gather_list(numpy.ones(2), outs[team.rank:])


def rank_lengths_differ():
    team = torii.world()
    outs = [numpy.zeros(2), numpy.zeros(3)]
    with pytest.raises((torii.Mismatch, ValueError), match="elements|rank 1"):
        team.all_gather_list(numpy.ones(2 + 2 * team.rank), outs)


@pytest.mark.parametrize("check", CHECKS)
def test_one_rank(check):
    check(torii.world(), "float64")


@pytest.mark.parametrize("count", [2, 5])
def test_ranks(count):
    ranks.job(__file__, "rank_checks", count)


def test_several_nodes():
    ranks.job_of_nodes(__file__, "rank_checks", 3)


@pytest.mark.parametrize("body", (rank_locked, rank_refused, rank_lengths_differ))
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


def test_wrong_lists():
    team = torii.world()
    mine, out = numpy.ones(2), numpy.zeros(2)
    with pytest.raises(TypeError, match="outs is <class 'numpy.ndarray'>; it must be a list of arrays"):
        team.all_gather_list(mine, out)
    with pytest.raises(ValueError, match="arrays has 2 arrays; it must have one for each of 1 ranks"):
        team.alltoall_list([mine, mine], [out])
    with pytest.raises(TypeError, match=r"outs\[0\] is <class 'str'>"):
        team.gather_list(mine, ["no"])
    with pytest.raises(BufferError, match=r"outs\[0\] is read-only"):
        team.all_gather_list(b"ab", [b"ab"])
    with pytest.raises(ValueError, match=r"outs\[0\] is not contiguous"):
        team.all_gather_list(mine, [numpy.ones(4)[::2]])
    with pytest.raises(ValueError, match=r"outs\[0\] has elements of type f32; array has f64.*one type"):
        team.all_gather_list(mine, [out.astype("f4")])
    with pytest.raises(ValueError, match=r"all_gather: outs\[0\] has 3 elements; array has 2"):
        team.all_gather_list(mine, [numpy.zeros(3)])
    with pytest.raises(ValueError, match=r"scatter: arrays\[0\] has 2 elements; out has 3"):
        team.scatter_list([mine], numpy.zeros(3))
    with pytest.raises(ValueError, match=r"alltoall: all blocks are None; name the type"):
        team.alltoall_list([None], [None])
    with pytest.raises(ValueError, match="root is 1; the team has ranks 0 to 0"):
        team.scatter_list([mine], out, root=1)
    whole = numpy.ones(8)
    with pytest.raises(ValueError, match=r"all_gather: array and outs\[0\] overlap; blocks must be apart"):
        team.all_gather_list(whole[:4], [whole[2:6]])


def rank_overlapping_results():
    team = torii.world()
    whole = numpy.ones(8)
    with pytest.raises(ValueError, match=r"outs\[1\] and outs\[0\] overlap"):
        team.all_gather_list(numpy.ones(4), [whole[2:6], whole[:4]])
    with pytest.raises(ValueError, match=r"arrays\[0\] and outs\[1\] overlap"):
        team.alltoall_list([whole[:4], whole[4:]], [numpy.ones(4), whole[:4]])


def test_overlapping_results():
    ranks.job(__file__, "rank_overlapping_results")


if __name__ == "__main__":
    ranks.main(globals())
