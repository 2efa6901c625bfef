# SPDX-License-Identifier: Apache-2.0
# Every collective beside NumPy's own results, on a team of one rank in this process and on teams of several processes.
"""Collectives of the Python package."""
import functools

import numpy
import pytest
import ranks
import torii

COUNT = 300  # in rows of 5: a multiple of 1 to 5 ranks
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
         "complex64", "complex128")


def operand(rank, dtype, count=COUNT):
    """Small integers, so that sums and products are exact in every type."""
    return (numpy.random.default_rng(rank).integers(0, 3, count) + 1).astype(dtype)


def all_operands(team, dtype, count=COUNT):
    return [operand(rank, dtype, count) for rank in range(team.ranks)]


def expect(result, expected):
    numpy.testing.assert_array_equal(result, expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape


def check_reductions(team):
    functions = {"sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum}
    for dtype in TYPES:
        operands = all_operands(team, dtype)
        mine = operands[team.rank]
        for op, function in functions.items():
            if dtype.startswith("complex") and op in ("min", "max"):
                continue
            total = functools.reduce(function, operands)
            expect(team.allreduce(mine, op), total)
            expect(team.allreduce(mine, torii.Op[op.upper()]), total)
            at_root = team.reduce(mine, op, root=team.ranks - 1)
            if team.rank == team.ranks - 1:
                expect(at_root, total)
            else:
                assert at_root is None
            expect(team.scan(mine, op), functools.reduce(function, operands[: team.rank + 1]))
            before = team.exscan(mine, op)
            if team.rank == 0:
                assert before is None
            else:
                expect(before, functools.reduce(function, operands[: team.rank]))
            expect(team.reduce_scatter(mine, op), numpy.split(total, team.ranks)[team.rank])


def check_bits(team):
    functions = {"band": numpy.bitwise_and, "bor": numpy.bitwise_or, "bxor": numpy.bitwise_xor}
    for dtype in TYPES[:8]:
        operands = all_operands(team, dtype)
        for op, function in functions.items():
            expect(team.allreduce(operands[team.rank], op), functools.reduce(function, operands))
    operands = [operand(rank, "int64") > 1 for rank in range(team.ranks)]
    for op, function in {"land": numpy.logical_and, "lor": numpy.logical_or, "lxor": numpy.logical_xor}.items():
        expect(team.allreduce(operands[team.rank], op), functools.reduce(function, operands))


def check_pairs(team):
    for value in ("int16", "int32", "int64", "float32", "float64"):
        dtype = numpy.dtype([("value", value), ("index", "int32")], align=True)
        pairs = numpy.zeros((team.ranks, COUNT), dtype)
        for rank in range(team.ranks):
            pairs[rank]["value"] = operand(rank, value)
            pairs[rank]["index"] = rank
        for op, place in (("minloc", numpy.argmin), ("maxloc", numpy.argmax)):
            index = place(pairs["value"], axis=0)
            result = team.allreduce(pairs[team.rank], op)
            numpy.testing.assert_array_equal(result["index"], index)
            numpy.testing.assert_array_equal(result["value"], pairs["value"][index, numpy.arange(COUNT)])


def check_moves(team):
    for dtype in TYPES:
        operands = [one.reshape(-1, 5) for one in all_operands(team, dtype)]
        mine = operands[team.rank]
        expect(team.all_gather(mine), numpy.concatenate(operands))
        blocks = [numpy.split(one, team.ranks) for one in operands]
        expect(team.alltoall(mine), numpy.concatenate([one[team.rank] for one in blocks]))
        for root in range(team.ranks):
            here = team.rank == root
            joined = team.gather(mine, root)
            if here:
                expect(joined, numpy.concatenate(operands))
            else:
                assert joined is None
            out = numpy.empty_like(blocks[root][team.rank])
            assert team.scatter(mine if here else None, out, root) is out
            expect(out, blocks[root][team.rank])
            if here:
                assert team.scatter(mine, root=root).shape == out.shape
            elif team.ranks > 1:
                team.scatter(None, out, root)
            array = mine.copy()
            assert team.broadcast(array, root) is array
            expect(array, operands[root])
    team.barrier()


def check_in_place(team):
    operands = all_operands(team, "int32")
    total = sum(operands[1:], operands[0])
    array = operands[team.rank].copy()
    assert team.allreduce(array, out=array) is array
    expect(array, total)
    array = operands[team.rank].copy()
    own = numpy.split(array, team.ranks)[team.rank]
    expect(team.reduce_scatter(array, out=own), numpy.split(total, team.ranks)[team.rank])
    joined = numpy.zeros(team.ranks * COUNT, "int32")
    own = numpy.split(joined, team.ranks)[team.rank]
    own[:] = operands[team.rank]
    assert team.all_gather(own, joined) is joined
    expect(joined, numpy.concatenate(operands))
    array = operands[team.rank].copy()
    team.alltoall(array, array)
    expect(array, numpy.concatenate([numpy.split(one, team.ranks)[team.rank] for one in operands]))
    if team.ranks > 1:
        with pytest.raises(ValueError, match="overlap"):
            team.all_gather(joined[1 : COUNT + 1], joined)


def check_unequal(team):
    counts = [3 * rank + 1 for rank in range(team.ranks)]
    begins = [sum(counts[:rank]) for rank in range(team.ranks)]
    all_of_them = numpy.arange(sum(counts), dtype="float32")
    mine = all_of_them[begins[team.rank] :][: counts[team.rank]].copy()
    expect(team.all_gather(mine, counts=counts), all_of_them)
    joined = team.gather(mine, counts=numpy.array(counts))
    if team.rank == 0:
        expect(joined, all_of_them)
    out = numpy.empty_like(mine)
    expect(team.scatter(all_of_them if team.rank == 0 else None, out, counts=counts), mine)
    expect(team.reduce_scatter(all_of_them, counts=counts), mine * team.ranks)
    spread = [2 * begin for begin in begins]
    out = numpy.zeros(2 * len(all_of_them), "float32")
    team.all_gather(mine, out, counts=counts, displacements=spread)
    for rank in range(team.ranks):
        expect(out[spread[rank] :][: counts[rank]], all_of_them[begins[rank] :][: counts[rank]])
    # Places that fall: the first block ends last.
    falling = [sum(counts[rank + 1 :]) for rank in range(team.ranks)]
    result = team.all_gather(mine, counts=counts, displacements=falling)
    assert len(result) == sum(counts)
    for rank in range(team.ranks):
        expect(result[falling[rank] :][: counts[rank]], all_of_them[begins[rank] :][: counts[rank]])
    if team.ranks > 1:
        with pytest.raises(ValueError, match=f"out has {sum(counts) - 1} elements"):
            team.all_gather(mine, numpy.zeros(sum(counts) - 1, "float32"), counts=counts, displacements=falling)
        with pytest.raises(ValueError, match=f"array has {sum(counts) - 1} elements"):
            team.scatter(all_of_them[:-1].copy(), numpy.empty_like(mine), root=team.rank, counts=counts,
                         displacements=falling)
    # Rank i sends i + j elements of value i to rank j.
    sent = [team.rank + rank for rank in range(team.ranks)]
    result = team.alltoall(numpy.full(sum(sent), team.rank, "int16"), counts=sent, out_counts=sent)
    expect(result, numpy.repeat(numpy.arange(team.ranks, dtype="int16"), sent))


def check_half_types(team):
    """The buffer format cannot say bfloat16: its bits are the upper half of a float32."""
    operands = all_operands(team, "float32")
    bits = (operands[team.rank].view("uint32") >> 16).astype("uint16")
    result = team.allreduce(bits, dtype="bfloat16")
    total = sum(operands[1:], operands[0])
    expect((result.astype("uint32") << 16).view("float32"), total)
    result = team.allreduce(bytearray(operands[team.rank].astype("float16").tobytes()), dtype="float16")
    expect(numpy.frombuffer(result, "float16"), total.astype("float16"))


def check_dealt(team):
    whole = numpy.arange(7 * 5 * 3, dtype="int32").reshape(7, 5, 3)

    def part(array):
        first, count = torii.split(len(array), team.ranks, team.rank)
        return numpy.ascontiguousarray(array[first : first + count])

    expect(team.transpose(part(whole), whole.shape), part(whole.transpose()))
    expect(team.transpose(part(whole), whole.shape, (1, 0, 2)), part(whole.transpose(1, 0, 2)))
    items = numpy.arange(11 * 2, dtype="float64").reshape(11, 2)
    places = numpy.random.default_rng(5).permutation(11).astype("uint64")
    expected = numpy.empty_like(items)
    expected[places] = items
    expect(team.permute(part(items), part(places), numpy.empty_like(part(items))), part(expected))


CHECKS = (check_reductions, check_bits, check_pairs, check_moves, check_in_place, check_unequal, check_half_types,
          check_dealt)


def rank_checks():
    team = torii.world()
    for check in CHECKS:
        check(team)
    parts = team.split(team.rank % 2, key=-team.rank)
    assert parts.ranks == (team.ranks + 1 - team.rank % 2) // 2
    assert parts.context_rank(parts.rank) == team.rank
    assert parts.context_rank(0) > parts.context_rank(parts.ranks - 1) or parts.ranks == 1
    check_in_place(parts)
    assert team.split(-1 if team.rank == 0 else 0) is None or team.rank > 0


@pytest.mark.parametrize("check", CHECKS)
def test_one_rank(check):
    check(torii.world())


@pytest.mark.parametrize("count", [2, 4, 5])
def test_ranks(count):
    ranks.job(__file__, "rank_checks", count)


if __name__ == "__main__":
    ranks.main(globals())
