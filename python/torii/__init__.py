# SPDX-License-Identifier: Apache-2.0
# The package torii.
"""torii: collectives between the ranks of a job, over NumPy arrays and other buffers.

    import numpy
    import torii

    team = torii.world()                                # all ranks of the job
    total = team.allreduce(numpy.arange(4.0))           # a new array; out= gives memory, out=array is in place
    request = team.start_allreduce(total, op="max")     # and request.wait(), or await request
    team.send(total, to=1, tag=7)                       # and team.recv(array, source=0) there
    with team.group():                                  # calls that are made together, at the end of the block
        team.allreduce(total, out=total)

Start the ranks by `python3 -m torii.run -n 4 script.py`, or by torii-run, torchrun, mpirun or srun.

Context     this process in its job: settings, memory, ranks and nodes
Team        an ordered set of ranks, with the collectives as methods
Leaves      vectors whose sums have the same bits at any number of ranks
Request     a started or persistent operation
Received    what a receive has got: sender, tag and length
Error       what calls raise; its classes tell the statuses apart

docs/python.md is the guide.
"""
from . import _torii

_torii._refuse_subinterpreter()  # before anything of this interpreter gets into the module, which all share

from ._torii import Received, Region, algorithms, collectives, ops, split, types
from .context import Context, allocate, world
from .errors import (Aborted, Error, InternalError, InvalidArgument, Mismatch, NoResource, NotRegistered, PeerLost,
                     Poisoned, Status, Timeout, TransportError, Unsupported, make_error)
from .leaves import Leaves
from .memory import new_result
from .request import Request, test_all, test_any, wait_all, wait_any
from .team import ANY_RANK, ANY_TAG, Choice, Health, Op, Team

SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, AVG, PREMUL_SUM = Op

#: The version of the library.
__version__ = _torii.library_version

_torii._install(make_error, new_result, Request)
del make_error, new_result

__all__ = [
    "ANY_RANK", "ANY_TAG", "AVG", "Aborted", "BAND", "BOR", "BXOR", "Choice", "Context", "Error", "Health",
    "InternalError", "InvalidArgument", "LAND", "LOR", "LXOR", "Leaves", "MAX", "MAXLOC", "MIN", "MINLOC", "Mismatch",
    "NoResource", "NotRegistered", "Op", "PREMUL_SUM", "PROD", "PeerLost", "Poisoned", "Received", "Region",
    "Request", "SUM", "Status", "Team", "Timeout", "TransportError", "Unsupported", "algorithms", "allocate",
    "collectives", "ops", "split", "test_all", "test_any", "types", "wait_all", "wait_any", "world"
]
