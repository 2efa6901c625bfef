# SPDX-License-Identifier: Apache-2.0
# What the package takes as operands, and what it says of what it does not take.
"""Buffers of the Python package."""
import array

import numpy
import pytest
import ranks
import torii


@pytest.fixture(name="team")
def fixture_team():
    return torii.world()


@pytest.mark.parametrize("letter", "bBhHiIlLqQfd")
def test_array_module(team, letter):
    values = array.array(letter, [1, 2, 3])
    result = team.allreduce(values)
    assert isinstance(result, array.array) and result == values and result.typecode == letter


def test_plain_bytes(team):
    assert team.allreduce(b"abc", "max") == bytearray(b"abc")
    out = bytearray(3)
    assert team.allreduce(memoryview(b"abc"), out=out) is out and out == b"abc"
    view = memoryview(bytearray(8)).cast("B").cast("i", (2,))
    result = team.allreduce(view)
    assert result.format == "i" and result.shape == (2,)


def test_scalars_and_empty_arrays(team):
    assert team.allreduce(numpy.float32(3)) == 3
    assert team.all_gather(numpy.int16(3)).shape == (1,)
    assert team.allreduce(numpy.empty((0, 4))).shape == (0, 4)
    assert team.allreduce(bytearray()) == bytearray()


@pytest.mark.parametrize("dtype", ["f32", "float32", numpy.float32, numpy.dtype("float32"), 10])
def test_dtype_by_name(team, dtype):
    data = numpy.array([1, 2], "float32")
    assert team.allreduce(bytearray(data.tobytes()), dtype=dtype) == data.tobytes()


@pytest.mark.parametrize("values", [numpy.arange(8)[::2], numpy.ones((3, 3), order="F"), numpy.ones((4, 4))[:, 1:]])
def test_not_contiguous(team, values):
    with pytest.raises(ValueError, match="array is not contiguous.*numpy.ascontiguousarray"):
        team.allreduce(values)
    # A copy would get the result, and nobody would see it.
    with pytest.raises(ValueError, match="out is not contiguous.*it is written, so pass a contiguous array and copy"):
        team.allreduce(numpy.ones(values.shape, values.dtype), out=values)


def test_read_only_results(team):
    for out in (bytes(4), memoryview(b"abcd")):
        with pytest.raises(BufferError, match="out is read-only.*must be writable"):
            team.allreduce(bytearray(4), out=out)
    with pytest.raises(BufferError, match="out is read-only"):
        team.allreduce(data := bytes(4), out=data)
    frozen = numpy.ones(4)
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match="array is read-only"):
        team.broadcast(frozen)
    assert team.allreduce(frozen).sum() == 4  # an input may be


def test_wrong_lengths(team):
    with pytest.raises(ValueError, match="out has 3 elements; it must have 4"):
        team.allreduce(numpy.ones(4), out=numpy.ones(3))
    with pytest.raises(ValueError, match="counts has 2 values; it must have one for each of 1 ranks"):
        team.all_gather(numpy.ones(4), counts=[2, 2])
    with pytest.raises(ValueError, match=r"array has 4 elements; counts\[0\] is 3"):
        team.all_gather(numpy.ones(4), counts=[3])
    with pytest.raises(ValueError, match=r"counts\[0\] is -1; it must not be negative"):
        team.all_gather(numpy.ones(4), counts=[-1])
    with pytest.raises(ValueError, match="array has 4 elements; counts and displacements reach to 7"):
        team.scatter(numpy.ones(4), counts=[4], displacements=[3])
    with pytest.raises(ValueError, match="counts needs out_counts"):
        team.alltoall(numpy.ones(4), counts=[4])
    with pytest.raises(ValueError, match="need counts"):
        team.alltoall(numpy.ones(4), displacements=[0])
    with pytest.raises(TypeError, match=r"counts\[0\] is 4.0; it must be an integer"):
        team.all_gather(numpy.ones(4), counts=[4.0])
    with pytest.raises(ValueError, match=r"counts\[0\] is 1208925819614629174706176; it must be 0 to 922337"):
        team.all_gather(numpy.ones(4), counts=[1 << 80])


def test_wrong_types(team):
    with pytest.raises(TypeError, match="array is <class 'list'>; it must be a NumPy array"):
        team.allreduce([1, 2])
    with pytest.raises(ValueError, match="out has elements of type f32; array has f64"):
        team.allreduce(numpy.ones(4), out=numpy.ones(4, "f4"))
    with pytest.raises(ValueError, match="format '>d'"):
        team.allreduce(numpy.ones(4, ">f8"))
    with pytest.raises(ValueError, match="name their type by dtype=, one of i8, u8"):
        team.allreduce(numpy.zeros(4, [("a", "f8"), ("b", "f8")]))
    with pytest.raises(ValueError, match="dtype is 'float5'; use one of i8"):
        team.allreduce(numpy.ones(4), dtype="float5")
    with pytest.raises(ValueError, match="dtype is 99"):
        team.allreduce(numpy.ones(4), dtype=99)
    with pytest.raises(ValueError, match="32 bytes in items of 8.*needs items of 2 bytes, or of 1"):
        team.allreduce(numpy.ones(4), dtype="bfloat16")
    with pytest.raises(ValueError, match="3 bytes in items of 1"):
        team.allreduce(bytearray(3), dtype="f32")
    for dtype in ("M8[s]", "m8[D]"):
        with pytest.raises(BufferError, match=r"array has no buffer of plain elements .*pass array.view\('int64'\)$"):
            team.allreduce(numpy.zeros(4, dtype))
        assert team.allreduce(numpy.ones(4, dtype).view("int64")).sum() == 4


def test_types_of_others(team):
    """NumPy's example of a type of a package."""
    rational = pytest.importorskip("numpy.core._rational_tests").rational
    with pytest.raises(BufferError, match=r"array has no buffer of plain .*; pass array.view\('uint64'\) and dtype=$"):
        team.allreduce(numpy.zeros(4, rational))


def test_wrong_numbers(team):
    with pytest.raises(ValueError, match="op is 'mean'; use one of sum, prod"):
        team.allreduce(numpy.ones(4), "mean")
    with pytest.raises(ValueError, match="op is 12"):
        team.allreduce(numpy.ones(4), 12)
    with pytest.raises(ValueError, match="root is 1; the team has ranks 0 to 0"):
        team.broadcast(numpy.ones(4), root=1)
    with pytest.raises(ValueError, match=f"root is {1 << 80}; the team has ranks"):
        team.broadcast(numpy.ones(4), root=1 << 80)
    with pytest.raises(TypeError, match="root is 'first'; it must be an integer"):
        team.broadcast(numpy.ones(4), root="first")
    with pytest.raises(ValueError, match="scatter: array is None; rank 0 needs one"):
        team.scatter(None, numpy.ones(4))
    with pytest.raises(torii.InvalidArgument, match="minloc") as caught:
        team.allreduce(numpy.ones(4), "minloc")
    assert caught.value.status == torii.Status.INVALID_ARGUMENT and isinstance(caught.value, ValueError)


def test_dealt_arrays(team):
    with pytest.raises(ValueError, match="axes is"):
        team.transpose(numpy.ones((2, 3)), (2, 3), (0, 0))
    with pytest.raises(ValueError, match="array has 48 bytes; this rank's part .* has 56"):
        team.transpose(numpy.ones((2, 3)), (7, 1))
    with pytest.raises(ValueError, match="axes has 1 values; the array has 2"):
        team.transpose(numpy.ones((2, 3)), (2, 3), (0,), numpy.ones((2, 3)))
    with pytest.raises(ValueError, match="destinations has elements of type i64; they must be u64"):
        team.permute(numpy.ones(2), numpy.arange(2), numpy.ones(2))
    with pytest.raises(ValueError, match="array has 2 items of 8 bytes"):
        team.permute(numpy.ones(2), numpy.arange(3, dtype="u8"), numpy.ones(2))
    with pytest.raises(ValueError, match="items is -1"):
        torii.split(-1, 2, 0)
    with pytest.raises(torii.InvalidArgument):
        torii.split(10, 2, 2)
    assert [torii.split(10, 3, rank) for rank in range(3)] == [(0, 4), (4, 3), (7, 3)]


@pytest.mark.parametrize("dtype", [object, "i8", ">f8", "u8", "c8", "V8", [("a", "f4"), ("b", "i4")]])
def test_dealt_arrays_have_one_type(team, dtype):
    """Bits of another type would be wrong numbers, or references to no object."""
    out = numpy.zeros((3, 2), dtype)
    text = "references to Python objects" if dtype is object else "out has elements of format .*; array has 'd', and"
    for call in (lambda: team.transpose(numpy.arange(6.0), (2, 3), out=out),
                 lambda: team.permute(numpy.ones((3, 2)), numpy.arange(3, dtype="u8"), out)):
        with pytest.raises(ValueError, match=text):
            call()
    assert (out == numpy.zeros((3, 2), dtype)).all()


@pytest.mark.parametrize("dtype", ["f8", ">f8", "?", "S3", "V5", "c16", [("a", "f4"), ("b", "i1")], "i8", "longdouble"])
def test_dealt_arrays_of_any_type(team, dtype):
    """Items are moved as they are. C's long and long long are one type here."""
    array = numpy.frombuffer(bytes(range(6 * numpy.dtype(dtype).itemsize)), dtype).reshape(2, 3)
    for out in (None, numpy.zeros((3, 2), numpy.longlong if dtype == "i8" else dtype)):
        result = team.transpose(array, (2, 3), out=out)
        assert result.tobytes() == array.T.tobytes() and (out is None or result is out)
    out = numpy.zeros((2, 3), dtype)
    assert team.permute(array, numpy.array([1, 0], "u8"), out).tobytes() == array[::-1].tobytes()


def test_dealt_arrays_of_many_dimensions(team):
    array = numpy.arange(24.0).reshape(2, 3, 4)
    for axes in (None, (2, 0, 1), [0, 2, 1], numpy.array([1, 0, 2])):
        numpy.testing.assert_array_equal(team.transpose(array, array.shape, axes), array.transpose(axes))
    for shape in ((2**40, 2**40), (2**62, 4), (2**63 - 1, 2**63 - 1)):
        with pytest.raises(ValueError, match=r"shape is \(\d+, \d+\); this rank's part has more bytes than there"):
            team.transpose(array, shape)
    with pytest.raises(ValueError, match="destinations has 0 values; items must have one size, and a destination each"):
        team.permute(numpy.empty((2**61, 0), "u1"), numpy.empty(0, "u8"), numpy.empty((0, 0), "u1"))
    with pytest.raises(ValueError, match="more elements than there can be"):
        team.all_gather(bytearray(32), dtype="f8", counts=[4], displacements=[2**61])


def rank_uneven():
    """Lengths that depend on the number of ranks."""
    team = torii.world()
    with pytest.raises(ValueError, match="array has 7 elements; it must have a multiple of the 2 ranks"):
        team.alltoall(numpy.ones(7), numpy.ones(7))
    with pytest.raises(ValueError, match="the first dimension of array is 3; it must be a multiple of the 2 ranks"):
        team.reduce_scatter(numpy.ones((3, 2)))
    # The root needs nobody, so it hears of the refusal in its next call.
    expected = torii.Mismatch if team.rank == 0 else ValueError
    with pytest.raises(expected, match="scatter: out is None; rank 1 must give memory") as caught:
        team.scatter(numpy.ones(4) if team.rank == 0 else None)
        team.barrier()
    if team.rank == 0:
        assert caught.value.rank == 1


def test_uneven():
    ranks.job(__file__, "rank_uneven")


if __name__ == "__main__":
    ranks.main(globals())
