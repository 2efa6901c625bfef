# SPDX-License-Identifier: Apache-2.0
# Contexts, and the one that a process has if it asks for no other.
"""Joining a job."""
import atexit
import os
import sys

from . import _torii
from .memory import shared_array
from .team import Team

_world = None


class Context(_torii.Context):
    """This process in its job. Collective over the job; a process mostly has one.

    settings: a dict such as {"ENGINES": 2, "TIMEOUT": 5}, or text of lines "NAME=value". They override the environment
        variables TORII_...; docs/embedding.md lists them.
    rank, ranks, exchange: how to join without a launcher that torii knows. exchange(mine: bytes) gathers the bytes of
        all ranks and returns them as a list, in the order of ranks: comm.allgather of mpi4py is such a function. With
        rank and ranks alone, they meet as the setting RENDEZVOUS or the variable MASTER_ADDR says.
    memory_of: an earlier Context of this process, for a job that grows or replaces a rank: its arrays and regions
        are then also this context's.
    """

    def __new__(cls, settings=None, *, rank=0, ranks=0, exchange=None, memory_of=None):
        if isinstance(settings, dict):
            settings = "\n".join(f"{name}={_text(value)}" for name, value in settings.items())
        return super().__new__(cls, settings, rank, ranks, exchange, memory_of)

    def team(self, **options):
        """Team(self, **options): the team of all ranks."""
        return Team(self, **options)

    def allocate(self, shape, dtype="float64"):
        """A zeroed NumPy array that peers on the node reach in place: the fastest operand there is. The memory is
        given back when the array and its views are gone."""
        return shared_array(self, shape, dtype)

    def allocate_bytes(self, count):
        """The same without NumPy: an object with the buffer protocol, for memoryview()."""
        return self._allocate(count)

    def adopt(self, array):
        """Makes memory of an array shared, at its address and with its contents, until the returned Region is released
        (also at the end of a with block). docs/embedding.md has the rules."""
        return self._adopt(array)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.close()


def _text(value):
    return str(int(value)) if isinstance(value, bool) else str(value)


def world():
    """The team of all ranks of the job. The first call joins the job and is collective; later calls return the same
    team."""
    global _world
    if _world is None:
        _world = Context().team()
    return _world


def allocate(shape, dtype="float64", context=None):
    """Context.allocate() of the given context, or of that of world()."""
    return (world().context if context is None else context).allocate(shape, dtype)


def _leave_job():
    """Runs at exit. Peers are to see that this rank is gone, so nothing is closed: a member that ends is lost for later
    calls, while a member that closes its team is missed up to the deadline. A PMIx server, however, calls a process
    failed that has not left its job, so contexts are destroyed there, unless an exception ends the program."""
    if "PMIX_RANK" in os.environ and not hasattr(sys, "last_type"):
        return
    _torii._leave()


atexit.register(_leave_job)
