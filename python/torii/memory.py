# SPDX-License-Identifier: Apache-2.0
# New arrays: for results, and in memory that peers reach in place. NumPy is used if it is there.
"""Arrays for results, and arrays that peers on the node reach in place."""
import array as _array
import math


def new_result(like, shape):
    """A new array of the kind of `like`: NumPy's for NumPy, array.array for array.array, otherwise a bytearray, or a
    memoryview of one if the items are larger than a byte."""
    dtype = getattr(like, "dtype", None)
    if dtype is not None:
        import numpy

        return numpy.empty(shape, dtype)
    count = math.prod(shape)
    if isinstance(like, _array.array):
        return _array.array(like.typecode, bytes(count * like.itemsize))
    view = memoryview(like)
    memory = bytearray(count * view.itemsize)
    if view.itemsize == 1 and view.ndim == 1:
        return memory
    # Formats of more than one letter have no cast: such a result is flat bytes.
    if len(view.format.lstrip("@=<")) != 1 or count == 0:
        return memory
    return memoryview(memory).cast("B").cast(view.format.lstrip("=<"), shape)


def shared_array(context, shape, dtype):
    """A zeroed NumPy array in memory of the context."""
    import numpy

    dtype = numpy.dtype(dtype)
    memory = context._allocate(math.prod(_as_shape(shape)) * dtype.itemsize)
    return numpy.frombuffer(memory, dtype, count=math.prod(_as_shape(shape))).reshape(_as_shape(shape))


def _as_shape(shape):
    try:
        return tuple(shape)
    except TypeError:
        return (shape,)
