# SPDX-License-Identifier: Apache-2.0
# Operations and element types that NumPy does not have, or has under another name.
"""Averages, factors, bools and short floats of the Python package."""
import bisect
import functools
import math

import numpy
import pytest
import ranks
import torii

# Bits of exponent and mantissa, the bias, and the bits of the largest finite number.
SHORT = {"f16": (5, 10, 15, 0x7BFF), "bf16": (8, 7, 127, 0x7F7F), "float8_e4m3fn": (4, 3, 7, 0x7E),
         "float8_e5m2": (5, 2, 15, 0x7B)}


def decode(bits, form):
    """The number that finite bits stand for; what follows the largest one stands for the next step."""
    exponent_bits, mantissa_bits, bias, _ = SHORT[form]
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if exponent == 0:
        return math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)


def item_of(form):
    return "uint16" if sum(SHORT[form][:2]) == 15 else "uint8"


@functools.cache
def table(form):
    return [decode(bits, form) for bits in range(SHORT[form][3] + 2)]


def nearest(value, form):
    """The bits of the nearest number, of two the even one."""
    values = table(form)
    above = bisect.bisect_left(values, abs(value))
    best = min((max(0, above - 1), min(above, len(values) - 1)),
               key=lambda bits: (abs(values[bits] - abs(value)), bits % 2))
    sign = 1 << sum(SHORT[form][:2])
    return best | (sign if math.copysign(1, value) < 0 else 0)


def rank_short_floats():
    team = torii.world()
    for form in SHORT:
        ones, twos = nearest(1.0, form), nearest(2.0, form)
        array = numpy.array([ones, twos, twos], item_of(form)) if team.rank == 0 else numpy.full(3, twos, item_of(form))
        result = team.allreduce(array, dtype=form)
        assert [decode(int(bits), form) for bits in result] == [3.0, 4.0, 4.0] and result.dtype == array.dtype
        result = team.allreduce(array.tobytes(), "max", dtype=form)
        assert bytes(result) == numpy.full(3, twos, item_of(form)).tobytes()
        result = team.allreduce(array, "avg", dtype=form)
        assert [decode(int(bits), form) for bits in result] == [1.5, 2.0, 2.0]


def rank_averages():
    team = torii.world()
    result = team.allreduce(numpy.array([1.0, -3.0, 2.0]) * (team.rank + 1), torii.AVG)
    assert result.tolist() == [1.5, -4.5, 3.0]
    assert team.allreduce(numpy.array([-3, 5], "int32") * team.rank, "avg").tolist() == [-1, 2]
    whole = team.reduce_scatter(numpy.full(4, complex(2, team.rank)), "avg")
    assert whole.tolist() == [complex(2, 0.5)] * 2
    assert team.start_reduce(numpy.full(2, team.rank, "float32"), "avg", root=1).wait() is None or team.rank == 1
    with pytest.raises(torii.InvalidArgument, match="avg"):
        team.scan(numpy.ones(2), "avg")


def rank_factors():
    team = torii.world()
    mine = team.rank + 2  # ranks may differ in it
    array = numpy.array([1.0, 2.0])
    assert team.allreduce(array, "premul_sum", factor=mine).tolist() == [5.0, 10.0]
    assert array.tolist() == [1.0, 2.0]
    assert team.allreduce(array, torii.PREMUL_SUM, array, factor=numpy.float32(0.5)) is array
    assert array.tolist() == [1.0, 2.0]
    assert team.allreduce(array.astype("complex64"), "premul_sum", factor=1j).tolist() == [2j, 4j]
    assert team.scan(numpy.array([3], "uint8"), "premul_sum", factor=mine).tolist() == [[6], [15]][team.rank]
    before = team.exscan(numpy.array([-3], "int64"), "premul_sum", factor=-mine)
    assert before is None if team.rank == 0 else before.tolist() == [6]
    assert team.reduce_scatter(numpy.ones(2), "premul_sum", factor=mine).tolist() == [5.0]
    result = team.reduce(numpy.ones(2), "premul_sum", factor=mine)
    assert result is None if team.rank == 1 else result.tolist() == [5.0, 5.0]
    step = team.prepare_allreduce(array, "premul_sum", factor=mine)
    for _ in range(2):
        assert step.start().wait().tolist() == [5.0, 10.0]
    step.free()


def rank_bools():
    """Results are those of NumPy: the sum of truth values is `or`, the product is `and`."""
    team = torii.world()
    arrays = [numpy.array([True, True, False, False]), numpy.array([True, False, True, False])]
    mine = arrays[team.rank]
    for op, function in {"sum": numpy.add, "prod": numpy.multiply, "max": numpy.maximum, "min": numpy.minimum,
                         "lxor": numpy.logical_xor, "band": numpy.bitwise_and}.items():
        result = team.allreduce(mine, op)
        assert result.dtype == bool and result.tolist() == function(*arrays).tolist(), op
    # Bytes that are truth values: every byte but 0 is true, and a result is 0 or 1.
    assert team.allreduce(bytearray([0, 7, 0]), "lor", dtype="bool") == bytearray([0, 1, 0])
    with pytest.raises(torii.InvalidArgument, match="avg"):
        team.allreduce(mine, "avg")


BODIES = (rank_short_floats, rank_averages, rank_factors, rank_bools)


@pytest.mark.parametrize("body", BODIES)
def test_two_ranks(body):
    ranks.job(__file__, body.__name__)


@pytest.mark.parametrize("form", SHORT)
def test_factors_are_rounded_to_nearest_even(form):
    """On one rank the product of 1 and the factor is the factor, as an element."""
    random = numpy.random.default_rng(7)
    largest = decode(SHORT[form][3], form)
    least = table(form)[1]
    factors = [0.0, -0.0, 1.0, -3.0, least / 2, 1.5 * least, 0.51 * least, largest, -largest, 1.01 * largest]
    factors += [(one + other) / 2 for one, other in zip(table(form)[:-2:37], table(form)[1:-1:37])]  # ties
    factors += [float(one) for one in random.normal(0, 1, 40)] + [float(one) for one in random.normal(0, least, 40)]
    one = numpy.array([nearest(1.0, form)], item_of(form))
    for factor in factors:
        result = torii.world().allreduce(one, "premul_sum", dtype=form, factor=factor)
        assert hex(result[0]) == hex(nearest(factor, form)), factor
    for factor in (math.inf, math.nan):
        bits = int(torii.world().allreduce(one, "premul_sum", dtype=form, factor=factor)[0])
        assert bits & 0x7FFF > SHORT[form][3]


def test_wrong_factors():
    team = torii.world()
    with pytest.raises(ValueError, match="op is 'premul_sum', which needs factor="):
        team.allreduce(numpy.ones(4), "premul_sum")
    with pytest.raises(ValueError, match="factor is 2, but op is 'sum'; only 'premul_sum' takes a factor"):
        team.allreduce(numpy.ones(4), factor=2)
    for dtype, factor, limits in (("u8", 256, "0 to 255"), ("u8", -1, "0 to 255"), ("i8", -129, "-128 to 127"),
                                  ("i64", 1 << 63, "-9223372036854775808 to"),
                                  ("u64", 1 << 64, "to 1844674407370955161")):
        with pytest.raises(ValueError, match=f"factor is {factor}; for elements of type {dtype} it must be .*{limits}"):
            team.allreduce(bytearray(8), "premul_sum", dtype=dtype, factor=factor)
    with pytest.raises(TypeError, match="factor is 1.5; for elements of type i64 it must be an integer"):
        team.allreduce(numpy.ones(4, int), "premul_sum", factor=1.5)
    with pytest.raises(TypeError, match="factor is '2'; for elements of type f64 it must be a real number"):
        team.allreduce(numpy.ones(4), "premul_sum", factor="2")
    with pytest.raises(TypeError, match="factor is 1j; for elements of type f32 it must be a real number"):
        team.allreduce(numpy.ones(4, "f4"), "premul_sum", factor=1j)
    with pytest.raises(TypeError, match="factor is '1j'; for elements of type cf64 it must be a complex number"):
        team.allreduce(numpy.ones(4, complex), "premul_sum", factor="1j")
    for dtype, number in (("f8", "f64"), ("f4", "f32"), (complex, "cf64")):
        with pytest.raises(ValueError, match=f"factor is 10{'0' * 399}, which is more than elements of type {number}"):
            team.allreduce(numpy.ones(4, dtype), "premul_sum", factor=10 ** 400)
    with pytest.raises(torii.InvalidArgument, match="premul_sum"):
        team.allreduce(numpy.ones(4, bool), "premul_sum", factor=1)
    assert team.choose("allreduce", 100, "f8e5m2", "premul_sum").algorithm


def test_factors_beyond_the_range():
    """What a short float cannot hold becomes infinity, or NaN where the type has no infinity."""
    team = torii.world()
    with numpy.errstate(over="ignore"):
        for form, expected in (("f16", 0x7C00), ("bf16", 0x7F80), ("float8_e4m3fn", 0x7F), ("float8_e5m2", 0x7C)):
            one = numpy.array([nearest(1.0, form)], item_of(form))
            assert team.allreduce(one, "premul_sum", dtype=form, factor=1e300)[0] == expected, form
    assert team.allreduce(numpy.ones(1, "f4"), "premul_sum", factor=-1e300)[0] == -math.inf


def test_formats_that_cannot_be_moved():
    """dtype= does not make them right."""
    team = torii.world()
    pointers = [(numpy.array([None, 1], object), "u64"), (numpy.zeros(2, [("a", "u8"), ("b", object)]), "cf64"),
                (memoryview(bytearray(8)).cast("P"), "u64")]
    for array, dtype in pointers:
        for call in (team.allreduce, team.all_gather, team.broadcast):
            for given in (dtype, None):
                with pytest.raises(ValueError, match="array has elements of format .*, which are references to Python"):
                    call(array, dtype=given)
        with pytest.raises(ValueError, match="references to Python objects"):
            team.send(array, 0, dtype=dtype)
        with pytest.raises(ValueError, match="references to Python objects"):
            team.transpose(array, (2, 1), out=numpy.zeros_like(array) if isinstance(array, numpy.ndarray) else array)
    with pytest.raises(ValueError, match="references to Python objects"):
        team.permute(numpy.array([None], object), numpy.zeros(1, "u8"), numpy.array([None], object))
    with pytest.raises(ValueError, match="out has elements of format 'O', which are references"):
        team.recv(numpy.array([None], object), dtype="u64")
    swapped = [(numpy.array([1.0, 2.0], ">f8"), "f64"), (numpy.zeros(2, [("value", ">f4"), ("index", ">i4")]), None),
               (numpy.array([1], ">c8"), "complex64"), (numpy.zeros(2, ">f8"), numpy.dtype(">f8"))]
    for array, dtype in swapped:
        for given in (dtype, None):
            with pytest.raises(ValueError, match="array has elements of format .*in the order of other machines"):
                team.allreduce(array, dtype=given)
    # Single bytes have no order, and names of fields are no letters.
    assert team.allreduce(numpy.array([3], ">u1"), dtype="u8").tolist() == [3]
    named = numpy.array([(1.0, 2)], [("O>P", "f4"), ("P", "i4")])
    assert team.allreduce(named, "maxloc").tolist() == [(1.0, 2)]
    assert team.allreduce(named, "max", dtype="u64").tolist() == [(1.0, 2)]


def test_names_of_numpy():
    team = torii.world()
    names = {"bool": (numpy.bool_, "bool_", "?", "|b1"), "float32": ("single", "f4", "<f4", "=f4", numpy.single),
             "float64": ("double", "f8", "<f8", float, numpy.double), "int64": (numpy.longlong, "longlong", "<i8", int),
             "int32": (numpy.intc, "<i4"), "uint64": (numpy.ulonglong, "uintp", "<u8"), "complex64": ("c8", "csingle"),
             "float16": ("half", "f2"), "int8": (numpy.byte, "i8"), "uint8": ("u8", "ubyte", numpy.uint8(1))}
    for expected, given in names.items():
        for dtype in given:
            array = numpy.ones(4, expected)
            assert team.allreduce(array.tobytes(), "prod", dtype=dtype) == array.tobytes(), dtype
            assert team.allreduce(array, "prod", dtype=dtype).tolist() == array.tolist(), dtype
    for wrong in (True, numpy.True_, ">f4", "<x4", 10 ** 30, -1, "<"):
        with pytest.raises(ValueError, match="dtype is "):
            team.allreduce(bytearray(8), dtype=wrong)


def test_numbers_of_operations():
    team = torii.world()
    for op in (numpy.int64(3), numpy.uint8(3), torii.MAX, 3, "max"):
        assert team.allreduce(numpy.ones(1), op) == 1
        assert team.choose("allreduce", 100, "f32", op).algorithm
    for wrong in (True, numpy.True_, None, 10 ** 30, -(10 ** 30), -1, 3.0, numpy.arange(2)):
        for call in (team.allreduce, team.scan, team.reduce, team.reduce_scatter):
            with pytest.raises(ValueError, match="op is .*; use one of sum"):
                call(numpy.ones(1), wrong)


def test_names():
    assert {"bool", "f8e4m3", "f8e5m2"} <= set(torii.types()) and torii.ops()[-2:] == ["avg", "premul_sum"]
    team = torii.world()
    # float8_e4m3 of ml_dtypes has infinities, so it is another format.
    with pytest.raises(ValueError, match="dtype is 'float8_e4m3'; use one of .*f8e4m3"):
        team.allreduce(bytearray(4), dtype="float8_e4m3")
    with pytest.raises(ValueError, match="op is 12"):
        team.allreduce(numpy.ones(4), 12)
    with pytest.raises(ValueError, match="op is 15; use one of sum, .*, premul_sum"):
        team.allreduce(numpy.ones(4), 15)


if __name__ == "__main__":
    ranks.main(globals())
