# SPDX-License-Identifier: Apache-2.0
# Teams: the collectives as methods, in three forms.
"""Teams and their collectives."""
import enum
import types
import typing

from . import _torii
from .errors import Status
from .leaves import Leaves

#: For recv(): from any rank, with any tag.
ANY_RANK = -1
ANY_TAG = -1

_N = None  # what a call does not have
(_BARRIER, _BROADCAST, _REDUCE, _ALLREDUCE, _ALL_GATHER, _REDUCE_SCATTER, _ALLTOALL, _SCATTER, _GATHER, _SCAN,
 _EXSCAN) = range(11)


class Op(enum.IntEnum):
    """Operations, which calls also take by name: "sum", "prod", ..."""

    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    BAND = 4
    BOR = 5
    BXOR = 6
    LAND = 7
    LOR = 8
    LXOR = 9
    MINLOC = 10
    MAXLOC = 11
    AVG = 13
    PREMUL_SUM = 14


class Health(typing.NamedTuple):
    """Whether a team works, as this rank knows it."""

    status: Status
    reason: str

    def __bool__(self):
        return self.status == Status.OK


class Choice(typing.NamedTuple):
    """How a call would run."""

    algorithm: str
    transport: str
    isa: str
    segment_bytes: int
    engines: int
    window: int


class Team(_torii.Team):
    """An ordered set of ranks, and the collectives between them.

    Team(context, **options) is collective over the job and makes the team of all ranks. Options: topology, algorithm,
    determinism, wire, segment_bytes, tune_table, rank_map, channels, timeout_seconds (the deadline of its waits);
    docs/embedding.md explains them. With members=[...] and exchange=function only the listed ranks of the context make
    the team: exchange(mine: bytes) gathers among them and returns a list of bytes.

    All ranks of a team make its calls in the same order, with equal operation, type, count and root. A team has one
    caller at a time; calls release the GIL, and a call of a second thread meanwhile is a RuntimeError.

    Arguments of the collectives:
      array   a NumPy array, or another object with the buffer protocol, contiguous in the order of C.
      out     writable memory for the result, also the array itself (in place). None: a new array of the kind of
              `array` is made and returned. Blocks of ranks are joined and divided along the first dimension.
      op      "sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc",
              "avg" (the sum divided by the number of ranks; integers are truncated towards zero), "premul_sum", or an
              Op.
      factor  for "premul_sum": the number that multiplies this rank's array before the sum. Ranks may differ in it.
      dtype   the type of the elements, if the buffer cannot say it: "bfloat16" over an array of uint16, or any type
              over bytes, also "float8_e4m3fn" and "float8_e5m2".
      root    the rank that has the data, or gets it.
      counts  blocks of unequal lengths: how many elements each rank has, on all ranks. `displacements` says where
              blocks begin, in elements; None: one after the other. New results have one dimension then.

    all_gather_list() and the like take lists of arrays, one for each rank. Nothing is packed. Lengths follow from the
    arrays; None is an empty block. All ranks make such a call, or the one without _list with counts=.

    Each collective has two more forms with the same arguments: start_allreduce(...) returns a Request at once, and
    prepare_allreduce(...) a persistent Request that start() runs any number of times.
    """

    # ---- making teams

    def split(self, color, key=0, **options):
        """Ranks of equal color (>= 0) form a team, ordered by (key, rank). Collective; None for a negative color."""
        return self._split(color, key, options)

    def survivors(self, without=(), **options):
        """The team of the living members, in the old order, after a call has failed. Collective over the living.

        without  ranks of this team to leave out although they may live, equal on all survivors: `team.absent` after a
                 Timeout. Between nodes the survivors must be the majority, or pass allow_minority=True.

        All get the team, or the same error, after which it can be called again.
        """
        return self._survivors({"without": without, **options})

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.close()

    # ---- questions

    def health(self):
        """Whether the team works, as this rank knows it, without waiting: a Health, which is true if all is well."""
        status, reason = self._health()
        return Health(Status(status), reason)

    def choose(self, collective, count, dtype="f32", op="sum", root=0):
        """How a call of `count` elements would run: a Choice. `collective` is a name such as "allreduce"."""
        names = _torii.collectives()
        if collective not in names:
            raise ValueError(f"collective is {collective!r}; use one of {', '.join(names)}")
        return Choice(*self._choose(names.index(collective), count, dtype, op, root))

    # ---- data dealt over the ranks

    def transpose(self, array, shape, axes=None, out=None):
        """Permutes the dimensions of an array of `shape` that is dealt over the ranks by its first dimension.

        This rank's `array` has the rows that torii.split(shape[0], ranks, rank) gives it. Dimension d of the result is
        dimension axes[d] of the array; None reverses all, as numpy.transpose does. Returns this rank's rows of the
        result. Elements have 1 to 16 bytes, and `out` the type of `array`; arrays have 1 to 8 dimensions.
        """
        return self._transpose(array, out, shape, axes)

    def permute(self, array, destinations, out):
        """Moves items to other ranks and places: item i of `array` (along the first dimension) becomes item
        destinations[i] of the result. Places are numbered over the `out` of all ranks, rank 0's first. `destinations`
        has uint64, and those of all ranks together name each place once. `out` has elements of the type of `array`."""
        return self._permute(array, destinations, out)

    # ---- sums over leaves

    def leaves(self, leaves, first=None, count=None):
        """This rank's Leaves, for sums with the same bits at any number of ranks: `count` of `leaves` in all, from leaf
        `first` on; None: dealt in order as torii.split does. Collective; the same InvalidArgument on all ranks if
        intervals do not follow each other in the order of ranks."""
        return Leaves(self, leaves, first, count)

    # ---- collectives

    def barrier(self):
        """Returns when all ranks have come to it."""
        return self._run(_BARRIER)

    def broadcast(self, array, root=0, *, dtype=None):
        """Copies the root's array into the arrays of the other ranks. Returns `array`."""
        return self._run(_BROADCAST, _N, array, _N, root, dtype)

    def reduce(self, array, op="sum", root=0, out=None, *, dtype=None, factor=None):
        """Combines the arrays of all ranks. Returns the result at the root, None elsewhere."""
        return self._run(_REDUCE, array, out, op, root, dtype, factor)

    def allreduce(self, array, op="sum", out=None, *, dtype=None, factor=None):
        """Combines the arrays of all ranks; every rank gets the same bits."""
        return self._run(_ALLREDUCE, array, out, op, _N, dtype, factor)

    def all_gather(self, array, out=None, *, dtype=None, counts=None, displacements=None):
        """Joins the arrays of all ranks along the first dimension, in the order of ranks. In place: `array` is this
        rank's own block of `out`."""
        return self._run(_ALL_GATHER, array, out, _N, _N, dtype, _N, counts, displacements)

    def reduce_scatter(self, array, op="sum", out=None, *, dtype=None, counts=None, factor=None):
        """Combines the arrays of all ranks; block i of the result goes to rank i. In place: `out` is this rank's own
        block of `array`."""
        return self._run(_REDUCE_SCATTER, array, out, op, _N, dtype, factor, counts)

    def alltoall(self, array, out=None, *, dtype=None, counts=None, displacements=None, out_counts=None,
                 out_displacements=None):
        """Block i of `array` goes to rank i, block i of the result comes from there. With `counts` (what goes) also
        `out_counts` (what comes) is needed."""
        return self._run(_ALLTOALL, array, out, _N, _N, dtype, _N, counts, displacements, out_counts,
                         out_displacements)

    def scatter(self, array, out=None, root=0, *, dtype=None, counts=None, displacements=None):
        """Block i of the root's array goes to rank i. `array` is None elsewhere, and `out` is needed there."""
        return self._run(_SCATTER, array, out, _N, root, dtype, _N, counts, displacements)

    def gather(self, array, root=0, out=None, *, dtype=None, counts=None, displacements=None):
        """Joins the arrays of all ranks along the first dimension at the root. Returns None elsewhere."""
        return self._run(_GATHER, array, out, _N, root, dtype, _N, counts, displacements)

    def scan(self, array, op="sum", out=None, *, dtype=None, factor=None):
        """Combines the arrays of ranks 0 to this one, in this order."""
        return self._run(_SCAN, array, out, op, _N, dtype, factor)

    def exscan(self, array, op="sum", out=None, *, dtype=None, factor=None):
        """Combines the arrays of the ranks before this one. Rank 0 has none: its `out` stays as it is, and without
        `out` it gets None."""
        return self._run(_EXSCAN, array, out, op, _N, dtype, factor)

    # ---- collectives on lists of arrays

    def all_gather_list(self, array, outs, *, dtype=None):
        """outs[i] gets the array of rank i. Returns `outs`. In place: outs[rank] is `array`."""
        return self._run(_ALL_GATHER, array, outs, _N, _N, dtype, _N, _N, _N, _N, _N, True)

    def alltoall_list(self, arrays, outs, *, dtype=None):
        """arrays[i] goes to rank i, outs[i] comes from there. Returns `outs`. In place: outs[i] is arrays[i]; a copy of
        the input is made."""
        return self._run(_ALLTOALL, arrays, outs, _N, _N, dtype, _N, _N, _N, _N, _N, True)

    def scatter_list(self, arrays, out, root=0, *, dtype=None):
        """The root's arrays[i] goes to `out` of rank i. `arrays` is looked at by the root only. Returns `out`."""
        return self._run(_SCATTER, arrays, out, _N, root, dtype, _N, _N, _N, _N, _N, True)

    def gather_list(self, array, outs=None, root=0, *, dtype=None):
        """The root's outs[i] gets the array of rank i. `outs` is looked at by the root only, which returns it; None
        elsewhere."""
        return self._run(_GATHER, array, outs, _N, root, dtype, _N, _N, _N, _N, _N, True)

    # ---- between two ranks

    def send(self, array, to, tag=0, *, dtype=None):
        """Sends an array to rank `to`, with a tag of 0 or more. A short one (docs/embedding.md) returns before it has
        been received, a longer one does not: two ranks that send to each other need a group, or start_send()."""
        return self._send(array, to, tag, dtype)

    def recv(self, out, source=ANY_RANK, tag=ANY_TAG, *, dtype=None):
        """Receives into `out`, from rank `source` or from any, with this tag or with any. `out` is the most that is
        taken. Returns a Received, which tells rank, tag and count of what has come."""
        return self._recv(out, source, tag, dtype)

    def start_send(self, array, to, tag=0, *, dtype=None):
        """Starts send() and returns a Request at once."""
        return self._start_send(array, to, tag, dtype)

    def start_recv(self, out, source=ANY_RANK, tag=ANY_TAG, *, dtype=None):
        """Starts recv() and returns a Request at once, whose wait() gives the Received. cancel() takes it back."""
        return self._start_recv(out, source, tag, dtype)

    # ---- groups

    def group(self):
        """A with block whose calls on this team are made at its end, together: no order of them is a deadlock.

            with team.group():
                for array in arrays:
                    team.allreduce(array, out=array)    # short neighbours run as one call
                team.send(mine, right)
                got = team.recv(theirs, left)           # filled at the end of the block

        It has the blocking collectives, also those of Leaves, send() and recv() of the thread that entered it. What
        they return is filled when the block has ended; their buffers are locked until then. No call may use the result
        of another one, and all ranks put the same collectives in their groups. start_..., prepare_..., transpose(),
        permute() and leaves() do not join: they are made at once. Groups do not nest.

        The end of the block raises the first failure, first of the collectives, then of sends and receives. If a
        collective has been refused, none is made. If the block raises, no call of the group is made; with a collective
        among them, the other ranks get Mismatch.
        """
        return self._group()


def _form(function, name, how):
    """The same method under another name, which calls `how` (_start or _prepare) where the method calls _run."""
    code = function.__code__
    names = tuple(how if one == "_run" else one for one in code.co_names)
    form = types.FunctionType(code.replace(co_name=name, co_names=names), function.__globals__, name,
                              function.__defaults__)
    form.__kwdefaults__ = function.__kwdefaults__
    form.__qualname__ = f"Team.{name}"
    return form


_LISTS = ("all_gather_list", "alltoall_list", "scatter_list", "gather_list")

for _name in (*_torii.collectives(), *_LISTS):
    _method = getattr(Team, _name)
    for _how, _what in (("_start", "Starts"), ("_prepare", "Prepares")):
        _new = _form(_method, f"{_how[1:]}_{_name}", _how)
        _new.__doc__ = f"{_what} {_name}(), with the same arguments, and returns a Request."
        setattr(Team, _new.__name__, _new)
