# SPDX-License-Identifier: Apache-2.0
# Every public function of the package, with arguments that no caller should give: refused with a text, or right; never
# a crash. tests/conformance/test_hostile.cpp does the same to the C interface.
"""Hostile arguments to the Python package."""
import array
import contextlib
import ctypes
import functools
import time

import numpy
import pytest
import ranks
import torii


class Raises:
    """Whatever is asked of it, it raises."""

    def fail(self, *_):
        raise ZeroDivisionError("asked")

    __index__ = __float__ = __complex__ = __len__ = __iter__ = __getitem__ = __call__ = __getattr__ = fail
    __bool__ = __eq__ = __hash__ = __str__ = fail

    def __repr__(self):
        return "Raises()"


class Longer:
    """It says one length, and has another."""

    def __len__(self):
        return 1

    def __iter__(self):
        return iter([bytes(8)] * 1000)


def released():
    view = memoryview(bytearray(8))
    view.release()
    return view


def read_only():
    values = numpy.ones(4)
    values.flags.writeable = False
    return values


def misaligned():
    return numpy.frombuffer(bytearray(33), "f8", 4, offset=1)


HOSTILE = [
    None, True, -1, -2, 0, 7, 2**31 - 1, 2**31, -2**31 - 1, 2**63 - 1, 2**63, -2**63 - 1, 2**64, 2**80, 1.5,
    float("nan"), float("inf"), -1e300, 1j, "", "x", "%s%n", "\udc80", "\0", "torus:0x0", b"", b"abc", (), [], [1, 2],
    [None], [2**62, 2**62, 2**63], [-1], {}, {"a": 1}, set(), object, Raises(), Longer(), range(3), iter([1]),
    numpy.empty(3, object), numpy.zeros(4, [("a", "O"), ("b", "f8")]), numpy.zeros(4, [("a", "f8"), ("b", "f8")]),
    numpy.zeros(4, [("a", "f4"), ("b", "i4")]), numpy.arange(8.0)[::2], numpy.ones((4, 4), order="F"),
    numpy.ones(4, ">f8"), numpy.zeros(4, "M8[s]"), numpy.zeros(4, "m8[D]"), numpy.ones(4, "longdouble"),
    numpy.ones(4, "clongdouble"), numpy.array(["a", "b"]), numpy.array([b"a"]), numpy.zeros(4, "V8"),
    numpy.zeros(4, "V0"), numpy.empty(0), numpy.empty((0, 4)), numpy.empty((4, 0)), numpy.float64(1), numpy.int8(-1),
    numpy.array(1.0), numpy.ones(4, "i8"), numpy.ones(4, "f2"), numpy.ones(4, "?"), numpy.ones((1,) * 9),
    numpy.ma.masked_array(numpy.ones(4), True), numpy.ones(4), numpy.ones(3), array.array("d", [1]),
    array.array("u", "ab"), bytearray(32), (ctypes.c_void_p * 4)(), (ctypes.c_double * 4)(), released(), read_only(),
    misaligned()
]
# What a fault in the package would raise.
FAULTS = (SystemError, torii.InternalError, NameError, RecursionError, AssertionError)


@functools.cache
def team_of():
    """A team whose calls would not wait for long."""
    return torii.Context({"ARENA": "512M", "TIMEOUT": 30}).team()


def on_a_part(team, method, **arguments):
    """A call that leaves something behind, such as a message that nobody takes."""
    with contextlib.closing(team.split(0)) as part:
        request = getattr(part, method)(**arguments)
        if method == "start_recv":
            request.cancel()
        elif method == "start_send":
            request.wait()


def f64(count=4, value=1.0):
    return numpy.full(count, value)


def equal(team):
    """Counts of `team`, all 4."""
    return [4] * team.ranks


def collectives(team):
    """Good arguments of the collectives by name, on any number of ranks."""
    all_of_them = 4 * team.ranks
    common = {"dtype": None}
    reducing = {"op": "sum", "out": None, "factor": None, **common}
    lists = [f64() for _ in range(team.ranks)]
    outs = [f64() for _ in range(team.ranks)]
    return {
        "barrier": {},
        "broadcast": {"array": f64(), "root": 0, **common},
        "reduce": {"array": f64(), "root": 0, **reducing},
        "allreduce": {"array": f64(), **reducing},
        "scan": {"array": f64(), **reducing},
        "exscan": {"array": f64(), **reducing},
        "all_gather": {"array": f64(), "out": None, "counts": equal(team), "displacements": None, **common},
        "reduce_scatter": {"array": f64(all_of_them), **reducing, "counts": equal(team)},
        "alltoall": {"array": f64(all_of_them), "out": None, "counts": equal(team), "displacements": None,
                     "out_counts": equal(team), "out_displacements": None, **common},
        "scatter": {"array": f64(all_of_them), "out": f64(), "root": 0, "counts": equal(team), "displacements": None,
                    **common},
        "gather": {"array": f64(), "root": 0, "out": None, "counts": equal(team), "displacements": None, **common},
        "all_gather_list": {"array": f64(), "outs": outs, **common},
        "alltoall_list": {"arrays": lists, "outs": outs, **common},
        "scatter_list": {"arrays": lists, "out": f64(), "root": 0, **common},
        "gather_list": {"array": f64(), "outs": outs, "root": 0, **common},
    }


def other_calls(team):
    """Other methods of a team that are collective, with good arguments."""
    rows = torii.split(4, team.ranks, team.rank)[1]
    places = numpy.arange(4, dtype="u8") + 4 * team.rank
    return {
        "transpose": {"array": f64(rows * 2), "shape": (4, 2), "axes": (1, 0), "out": None},
        "permute": {"array": f64(), "destinations": places, "out": f64()},
        "split": {"color": 0, "key": 0, "channels": 0, "topology": None, "segment_bytes": 0, "timeout_seconds": 30.0},
        "leaves": {"leaves": 2 * team.ranks, "first": None, "count": None},
    }


def sums(team):
    leaves = team.leaves(2 * team.ranks)
    rows = numpy.ones((leaves.count, 2 * team.ranks))
    common = {"array": rows, "op": "sum", "out": None, "dtype": None}
    return leaves, {"allreduce": common, "reduce": {**common, "root": 0}, "reduce_scatter": common}


def pairs(team):
    """Sends and receives, on one rank. A receive would wait, so two of its arguments are wrong."""
    sending = {"array": f64(), "to": 0, "tag": 3, "dtype": None}
    receiving = {"out": f64(), "source": 0, "tag": 3, "dtype": None}
    waiting = {**receiving, "source": -2, "tag": -2}
    table = {"send": sending, "start_send": sending, "start_recv": receiving, "recv": waiting}
    return {name: (functools.partial(on_a_part, team, name), arguments) for name, arguments in table.items()}


def team_methods(team):
    """(function, good arguments) by name: every public method of a team."""
    table = pairs(team)
    for name, arguments in {**collectives(team), **other_calls(team)}.items():
        table[name] = (getattr(team, name), arguments)
    for form in ("start", "prepare"):
        for name, arguments in collectives(team).items():
            table[f"{form}_{name}"] = (getattr(team, f"{form}_{name}"), arguments)
    table["choose"] = (team.choose, {"collective": "allreduce", "count": 4, "dtype": "f32", "op": "sum", "root": 0})
    table["context_rank"] = (lambda member: team.context_rank(member), {"member": 0})
    # The team is well: always refused.
    table["survivors"] = (team.survivors, {"channels": 0, "without": [], "allow_minority": False})
    table["abort"] = (lambda reason: abort(team, reason), {"reason": "why"})
    for name in ("health", "group", "close"):
        table[name] = (lambda extra, name=name: getattr(team, name)(extra), {"extra": 1})
    return table


def abort(team, reason):
    with contextlib.closing(team.split(0)) as part:
        part.abort(reason)
        with pytest.raises(torii.Aborted):
            part.barrier()


def context_methods(context):
    return {
        "allocate": (context.allocate, {"shape": (2, 2), "dtype": "f8"}),
        "allocate_bytes": (context.allocate_bytes, {"count": 8}),
        "adopt": (lambda array: context.adopt(array).release(), {"array": f64(4096)}),
        "node": (lambda rank: context.node(rank), {"rank": 0}),
        "host": (lambda rank: context.host(rank), {"rank": 0}),
        "team": (context.team, {"channels": 0, "topology": None, "algorithm": None, "determinism": None, "wire": None,
                                "segment_bytes": 0, "tune_table": None, "rank_map": None, "members": None,
                                "exchange": None, "timeout_seconds": 0.0}),
        "close": (lambda extra: context.close(extra), {"extra": 1}),
    }


def request_methods(team):
    def with_request(method, **arguments):
        request = team.start_allreduce(f64())
        try:
            return getattr(request, method)(**arguments)
        finally:
            request.wait()

    table = {"wait": (lambda timeout: with_request("wait", timeout=timeout), {"timeout": None})}
    for name in ("test", "start", "cancel", "free"):
        table[name] = (lambda extra, name=name: with_request(name, extra=extra), {"extra": 1})
    return table


def functions(team):
    """The functions of the module. A request that has ended may be in any list."""
    request = team.start_barrier()
    request.wait()
    timed = {"requests": [request], "timeout": 1.0}
    return {
        "allocate": (torii.allocate, {"shape": 4, "dtype": "f8", "context": team.context}),
        "split": (lambda items, ranks, rank: torii.split(items, ranks, rank), {"items": 9, "ranks": 2, "rank": 1}),
        "wait_all": (torii.wait_all, timed),
        "wait_any": (torii.wait_any, timed),
        "test_all": (torii.test_all, {"requests": [request]}),
        "test_any": (torii.test_any, {"requests": [request]}),
        "Context": (torii.Context, {"settings": "ARENA=256M", "rank": 0, "ranks": 0, "exchange": None,
                                    "memory_of": None}),
        "Team": (torii.Team, {"context": team.context, "channels": 0}),
        "Leaves": (torii.Leaves, {"team": team, "all": 2, "first": 0, "count": 2}),
        **{name: (lambda extra, name=name: getattr(torii, name)(extra), {"extra": 1})
           for name in ("world", "algorithms", "collectives", "ops", "types", "Request", "Region", "Received")},
    }


def refused(error, what):
    assert not isinstance(error, FAULTS), f"{what}: {error!r}"
    assert str(error) or isinstance(error, MemoryError), f"{what}: {error!r} has no text"


def attempt(name, function, arguments):
    """One call, which may be refused, or do what it should."""
    try:
        result = function(**arguments)
    except Exception as error:
        refused(error, f"{name}({arguments!r})")
        return
    if isinstance(result, torii.Request):
        if "prepare" in name:
            result.free()
        else:
            result.wait()
    elif isinstance(result, (torii.Team, torii.Context)):
        result.close()


def try_table(team, table):
    for name, (function, good) in table.items():
        for argument in good:
            for value in HOSTILE:
                attempt(name, function, {**good, argument: value})
        assert team.allreduce(f64()).sum() == 4, f"after {name}"


def test_team():
    team = team_of()
    try_table(team, team_methods(team))


def test_groups():
    """In a group calls are refused where they are made, and the group with them."""
    team = team_of()

    def in_group(function, **arguments):
        with team.group():
            function(**arguments)

    leaves, calls = sums(team)
    table = {name: (functools.partial(in_group, getattr(team, name)), arguments)
             for name, arguments in collectives(team).items()}
    table.update({f"leaves.{name}": (functools.partial(in_group, getattr(leaves, name)), arguments)
                  for name, arguments in calls.items()})
    try_table(team, table)


def test_leaves():
    team = team_of()
    leaves, calls = sums(team)
    try_table(team, {name: (getattr(leaves, name), arguments) for name, arguments in calls.items()})
    leaves.count = 1  # what Python says of the leaves is not what counts
    with pytest.raises(ValueError, match="must have one for each of this rank's 2 leaves"):
        leaves.allreduce(numpy.ones((1, 2)))


def test_context_and_module():
    team = team_of()
    try_table(team, context_methods(team.context))
    try_table(team, request_methods(team))
    try_table(team, functions(team))


def test_every_public_function_is_in_a_table():
    team = team_of()
    listed = {torii.Team: team_methods(team), torii.Context: context_methods(team.context),
              torii.Leaves: sums(team)[1], torii.Request: request_methods(team),
              torii.Region: {"release": None}, torii.Received: {}}
    for kind, table in listed.items():
        methods = {name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))}
        assert methods == set(table), kind
    values = (torii.Error, torii.Op, torii.Status, torii.Health, torii.Choice)
    public = {name for name in torii.__all__ if callable(getattr(torii, name))}
    public -= {name for name in public if isinstance(getattr(torii, name), type) and
               issubclass(getattr(torii, name), values)}
    assert public == set(functions(team))


def test_exchange_of_another_length():
    """The function's answer iterates longer than its len()."""
    with pytest.raises(ValueError, match="exchange returned 1000 values; there are 1 ranks"):
        torii.Context("ARENA=256M", rank=0, ranks=1, exchange=lambda mine: Longer())
    team = team_of()
    with pytest.raises(ValueError, match="exchange returned 1000 values; there are 1 ranks"):
        team.context.team(members=[0], exchange=lambda mine: Longer())


def spoilt(good):
    """Each argument of a call by something that no call takes."""
    for argument in good:
        yield {**good, argument: Raises()}


def refuse_on_one():
    """What rank 0 gives is refused, before the library sees it; rank 1 makes the call, and does not wait for long. A
    call in which it needs nothing from rank 0 may end well: the next one does not."""
    whole = torii.Context({"ARENA": "512M", "TIMEOUT": 50}).team()
    extra = {"split": [{"color": "a", "key": 0}, {"color": 2**40}, {"color": 0, "bogus": 1}],
             "transpose": [{"array": [1, 2], "shape": (4, 2)}, {"array": f64(), "shape": (4, 2), "axes": (0, 5)},
                           {"array": f64(), "shape": 4}, {"array": f64(), "shape": (4, 2), "axes": (1,)}],
             "leaves": [{"leaves": "x"}, {"leaves": -1}, {"leaves": 4, "first": 1.5}]}

    def check(make, good, bad):
        with contextlib.closing(whole.split(0)) as team:
            call = make(team)
            begin = time.monotonic()
            with pytest.raises(torii.Mismatch if team.rank == 1 else Exception) as caught:
                call(**(bad if team.rank == 0 else good))
                team.barrier()
            assert time.monotonic() - begin < 10, (good, bad)
            refused(caught.value, bad)
            assert team.rank == 0 or caught.value.rank == 0

    for name, good in {**collectives(whole), **other_calls(whole)}.items():
        for bad in [*spoilt(good), *extra.get(name, [])]:
            check(lambda team, name=name: getattr(team, name), good, bad)
    for name, good in sums(whole)[1].items():
        for bad in [*spoilt(good), {"array": [1, 2]}, {**good, "op": "mean"}]:
            check(lambda team, name=name: getattr(sums(team)[0], name), good, bad)


def test_refused_operands_count_as_calls():
    ranks.job(__file__, "refuse_on_one")


if __name__ == "__main__":
    ranks.main(globals())
