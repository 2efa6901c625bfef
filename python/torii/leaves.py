# SPDX-License-Identifier: Apache-2.0
# Sums over leaves: the same bits at any number of ranks.
"""This rank's leaves among those of all ranks."""
_REDUCE, _ALLREDUCE, _REDUCE_SCATTER = 2, 3, 5


class Leaves:
    """Vectors that are there whatever the number of ranks, such as the gradients of micro-batches; this rank has
    `count` of `all`, from leaf `first` on. Team.leaves() makes it, collectively.

    What its methods return depends on the leaves alone, bit for bit: not on the number of ranks, or on how many leaves
    each of them has. docs/determinism.md explains it.

    `array` has a row for each leaf of this rank: its first dimension is `count`, also if that is 0. It may be a
    function instead, which is called with the number of each leaf in turn and returns its vector; leaves are folded as
    they come, so that few of them exist at once. `out` is then needed, on all ranks. The function must not make calls.

    In a Team.group() the calls join, but those with a function.
    """

    def __init__(self, team, all, first=None, count=None):
        self.team = team
        self.all = all
        self._handle, self.first, self.count = team._make_leaves(all, first, count)

    def __len__(self):
        return self.count

    def __iter__(self):
        """The numbers of this rank's leaves."""
        return iter(range(self.first, self.first + self.count))

    def allreduce(self, array, op="sum", out=None, *, dtype=None):
        """Combines the leaves of all ranks; every rank gets the same bits. "avg" divides by the number of leaves."""
        return self._run(_ALLREDUCE, array, out, op, 0, dtype)

    def reduce(self, array, op="sum", root=0, out=None, *, dtype=None):
        """The same with the result at the root. Returns None elsewhere."""
        return self._run(_REDUCE, array, out, op, root, dtype)

    def reduce_scatter(self, array, op="sum", out=None, *, dtype=None):
        """The same with block i of the result at rank i; the second dimension of `array` is divided."""
        return self._run(_REDUCE_SCATTER, array, out, op, 0, dtype)

    def _run(self, collective, array, out, op, root, dtype):
        return self.team._run_leaves(self._handle, collective, array, out, op, root, dtype)
