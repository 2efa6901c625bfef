# SPDX-License-Identifier: Apache-2.0
# Sums over leaves: one hash on any number of ranks, from arrays and from functions, and errors on all ranks.
"""Sums over leaves of the Python package."""
import hashlib

import numpy
import pytest
import ranks
import torii

LEAVES = 11
COUNT = 12


def vector(leaf, dtype="float32"):
    return (numpy.random.default_rng(leaf).standard_normal(COUNT) * 2.0 ** (leaf % 7)).astype(dtype)


def rows(leaves, dtype="float32"):
    return numpy.array([vector(leaf, dtype) for leaf in leaves], dtype).reshape(leaves.count, COUNT)


def expression(operands, add=numpy.add):
    """E over the operands, as docs/determinism.md defines it."""
    if len(operands) == 1:
        return operands[0]
    middle = 1 << (len(operands) - 1).bit_length() - 1
    return add(expression(operands[:middle], add), expression(operands[middle:], add))


def check(team, leaves):
    for dtype in ("float32", "float64", "int32"):
        expected = expression([vector(leaf, dtype) for leaf in range(LEAVES)])
        numpy.testing.assert_array_equal(leaves.allreduce(rows(leaves, dtype)), expected)
        out = numpy.zeros(COUNT, dtype)
        asked = []

        def give(leaf, dtype=dtype, asked=asked):
            asked.append(leaf)
            return vector(leaf, dtype)

        assert leaves.allreduce(give, out=out) is out
        numpy.testing.assert_array_equal(out, expected)
        assert asked == list(leaves)
        at_root = leaves.reduce(rows(leaves, dtype), root=team.ranks - 1)
        if team.rank == team.ranks - 1:
            numpy.testing.assert_array_equal(at_root, expected)
        else:
            assert at_root is None
        if COUNT % team.ranks == 0:
            own = leaves.reduce_scatter(rows(leaves, dtype))
            numpy.testing.assert_array_equal(own, numpy.split(expected, team.ranks)[team.rank])
    average = leaves.allreduce(rows(leaves), "avg")
    numpy.testing.assert_array_equal(
        average, expression([vector(leaf) for leaf in range(LEAVES)]) / numpy.float32(LEAVES))
    largest = leaves.allreduce(rows(leaves), "max")
    numpy.testing.assert_array_equal(largest, numpy.max([vector(leaf) for leaf in range(LEAVES)], axis=0))


def sums():
    team = torii.world()
    leaves = team.leaves(LEAVES)
    assert len(leaves) == leaves.count and leaves.all == LEAVES
    check(team, leaves)
    ends = [0, 1, 4, 9, LEAVES] if team.ranks == 4 else numpy.linspace(0, LEAVES, team.ranks + 1).astype(int)
    check(team, team.leaves(LEAVES, int(ends[team.rank]), int(ends[team.rank + 1] - ends[team.rank])))
    half = leaves.allreduce(rows(leaves, "float16"))
    print(hashlib.sha256(half.tobytes()).hexdigest() if team.rank == 0 else "", end="")


def test_sums_have_one_hash():
    assert len({ranks.job(__file__, "sums", count).strip() for count in (1, 2, 3, 4)}) == 1


def refusals():
    team = torii.world()
    with pytest.raises(torii.InvalidArgument, match="no rank before rank 1 has leaf 2"):
        team.leaves(6, 0 if team.rank == 0 else 3, 2 if team.rank == 0 else 3)
    with pytest.raises(torii.InvalidArgument, match="the number of leaves is 0"):
        team.leaves(0)
    leaves = team.leaves(5)
    with pytest.raises(ValueError, match="must have one for each of this rank's"):
        leaves.allreduce(numpy.zeros((7, 2)))
    with pytest.raises(ValueError, match="it must have a multiple of the 2 ranks"):
        leaves.reduce_scatter(numpy.zeros((leaves.count, 3)))
    with pytest.raises(ValueError, match="out is None"):
        leaves.allreduce(vector)
    with pytest.raises(ValueError, match="out has 8 bytes; a leaf of 16 bytes needs 16"):
        leaves.allreduce(numpy.zeros((leaves.count, 2)), out=numpy.zeros(1))
    with pytest.raises(ValueError, match="leaf . has 16 bytes; it must have 24"):
        leaves.allreduce(lambda leaf: numpy.zeros(2), out=numpy.zeros(3))
    with pytest.raises(ValueError, match="out has elements of type i64; array has f64"):
        leaves.allreduce(numpy.zeros((leaves.count, 2)), out=numpy.zeros(2, "int64"))
    with pytest.raises(ValueError, match="leaf has elements of type i32; out has f32"):
        leaves.allreduce(lambda leaf: numpy.zeros(2, "int32"), out=numpy.zeros(2, "float32"))
    numpy.testing.assert_array_equal(leaves.allreduce(numpy.ones((leaves.count, 2))), [5, 5])


def test_refusals_leave_the_team_as_it_was():
    ranks.job(__file__, "refusals")


def in_groups():
    team = torii.world()
    leaves = team.leaves(LEAVES)
    plain = leaves.allreduce(rows(leaves))
    with team.group():
        total = leaves.allreduce(rows(leaves), out=numpy.zeros(COUNT, "float32"))
        fresh = leaves.allreduce(rows(leaves), "max")
        count = team.allreduce(numpy.array([1]))
        at_root = leaves.reduce(rows(leaves), root=1)
        own = leaves.reduce_scatter(rows(leaves))
        assert not total.any() and (at_root is None) == (team.rank == 0)
        # The group keeps what it needs.
        last = team.leaves(LEAVES).allreduce(rows(leaves), out=numpy.zeros(COUNT, "float32"))
    for sum_of_all in (total, last, *([at_root] if team.rank == 1 else [])):
        numpy.testing.assert_array_equal(sum_of_all, plain)
    numpy.testing.assert_array_equal(own, numpy.split(plain, team.ranks)[team.rank])
    numpy.testing.assert_array_equal(fresh, leaves.allreduce(rows(leaves), "max"))
    assert count[0] == team.ranks
    # A refused one refuses the group, on all ranks alike.
    for refused, text in ((lambda: leaves.allreduce(vector, out=total), "make this call outside of the group"),
                          (lambda: leaves.allreduce([1, 2]), "array is <class 'list'>")):
        with pytest.raises((ValueError, TypeError), match=text), team.group():
            team.allreduce(numpy.ones(2))
            refused()
    numpy.testing.assert_array_equal(leaves.allreduce(rows(leaves)), plain)


def test_leaves_join_groups():
    ranks.job(__file__, "in_groups")


def fails_on_one():
    team = torii.world()
    leaves = team.leaves(4)

    def give(leaf):
        if leaf == 3:
            raise ZeroDivisionError("no such leaf")
        return numpy.ones(2)

    error = ZeroDivisionError if team.rank == 1 else torii.Mismatch
    with pytest.raises(error):
        leaves.allreduce(give, out=numpy.zeros(2))


def test_a_leaf_that_cannot_be_given_fails_the_team():
    ranks.job(__file__, "fails_on_one")


if __name__ == "__main__":
    ranks.main(globals())
