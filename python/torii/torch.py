# SPDX-License-Identifier: Apache-2.0
# The backend "torii" of torch.distributed. The work is done by the extension _torch (plugins/pytorch).
"""torii for PyTorch: import it, and torch.distributed knows the backend "torii".

    import torch.distributed as dist
    import torii.torch

    dist.init_process_group("torii")                     # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as for Gloo
    dist.all_reduce(tensor)

Options           what a group may be told: pg_options=torii.torch.Options(determinism="canonical")
monitored_barrier torch.distributed.monitored_barrier, which itself refuses every backend but Gloo
abort             ends all operations of a group, on all ranks
lost, health      which ranks are gone, and whether the group works
absent            the ranks that the last timeout names
survivors         a group of the living ranks, after an operation has failed
Error             what operations raise; its classes are RuntimeErrors and those of the package torii

docs/pytorch.md is the guide.
"""
import atexit
import dataclasses
import datetime
import inspect
import re
import weakref

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as _c10d

from . import errors as _errors
from .context import _text

try:
    from . import _torch
except ImportError as error:
    raise ImportError(f"torii was built without PyTorch, or for another version than {torch.__version__}: {error}; "
                      "docs/pytorch.md says how to build it") from error

__all__ = [
    "Aborted", "Error", "InvalidArgument", "Mismatch", "Options", "PeerLost", "Poisoned", "Timeout", "abort", "absent",
    "health", "lost", "monitored_barrier", "survivors"
]


class Error(_errors.Error, RuntimeError):
    """An operation of a group has failed. status, reason and rank: see torii.Error."""

    def __init__(self, reason, rank=None):
        # The beginning of the text names this rank and its group; torii's reason, which follows, the one that is meant.
        begin = re.match(r"torii: .*? on rank \d+ of \d+: ", reason)
        if rank is None and begin:
            rank = _errors.make_error(self.status, reason[begin.end():], ()).rank
        super().__init__(reason, rank)


_classes = {}


def _add_class(base):
    made = type(base.__name__, (base, Error), {"__doc__": base.__doc__, "__module__": __name__})
    _classes[base.status] = made
    return made


Aborted = _add_class(_errors.Aborted)
InvalidArgument = _add_class(_errors.InvalidArgument)
Mismatch = _add_class(_errors.Mismatch)
PeerLost = _add_class(_errors.PeerLost)
Poisoned = _add_class(_errors.Poisoned)
Timeout = _add_class(_errors.Timeout)
for _base in (_errors.InternalError, _errors.NoResource, _errors.NotRegistered, _errors.TransportError,
              _errors.Unsupported):
    _add_class(_base)


def _class_of_status(status):
    return _classes[_errors.Status(status)]


@dataclasses.dataclass
class Options:
    """What a group may be told, besides its timeout; equal on all its ranks.

    determinism: "run" (the default) or "canonical": the bits of a result depend on inputs, number and order of ranks
        only (docs/design.md).
    algorithm: a name of torii.algorithms(); empty: torii chooses.
    channels: how many operations are in flight side by side, 1 to 8; 0: the setting CHANNELS.
    settings: a dict of torii's settings (docs/embedding.md), such as {"WIRE": "f32"}.
    """

    determinism: str = ""
    algorithm: str = ""
    channels: int = 0
    settings: dict = dataclasses.field(default_factory=dict)


_groups = weakref.WeakSet()
# For groups of survivors: the global ranks of the members of the group that they come from.
_origins = weakref.WeakKeyDictionary()


def _create(backend_options, group_options):
    """What torch.distributed calls for each group with the backend "torii"."""
    options = Options() if group_options is None else group_options
    if not isinstance(options, Options):
        raise TypeError(f"pg_options is {options!r}; the backend torii takes torii.torch.Options")
    group = _torch.make_group(store=backend_options.store, rank=backend_options.group_rank,
                              ranks=backend_options.group_size, timeout=backend_options.timeout,
                              determinism=options.determinism, algorithm=options.algorithm, channels=options.channels,
                              settings="\n".join(f"{name}={_text(value)}" for name, value in options.settings.items()))
    _groups.add(group)
    return group


def _group_of(group):
    found = _c10d._get_default_group() if group is None else group
    found = found._get_backend(torch.device("cpu")) if hasattr(found, "_get_backend") else found
    if not isinstance(found, _torch.Group):
        raise ValueError(f"the backend of {group!r} is not torii")
    return found


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier in which rank 0 raises an error that names the first rank that has not come within `timeout`, or all of
    them with `wait_all_ranks`; the others raise an error too. The group works on afterwards. A rank that is not in the
    group returns at once."""
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return
    _group_of(group)._monitored_barrier(datetime.timedelta(milliseconds=-1) if timeout is None else timeout,
                                        wait_all_ranks)


def abort(group=None, reason="abort() was called"):
    """Ends every operation of the group on all its ranks with Aborted. From any thread."""
    _group_of(group)._abort(reason)


def lost(group=None):
    """The ranks of the group whose processes are known to have ended, ascending."""
    return _group_of(group)._lost()


def absent(group=None):
    """The ranks of the group that the last Timeout names: they did not come, or did not move. Equal on all ranks."""
    return _group_of(group)._absent()


def health(group=None):
    """Why the group does not work, as text; empty if it works. Waits for nobody."""
    return _group_of(group)._ill()


def survivors(group=None, without=(), allow_minority=False):
    """A group of the living ranks of one in which an operation has failed, in the old order. Collective over them.

    `without` has ranks of the group to leave out although they may live, equal on all survivors: absent(group) after a
    Timeout. Between nodes the survivors must be the majority, or set allow_minority. All get the group, or the same
    error, after which it can be called again.

    It is a group for the argument `group` of all operations and of DistributedDataParallel. Global ranks remain what
    they were: the source of a broadcast is named as before. The old group can be destroyed when it is not needed.
    """
    old = _c10d._get_default_group() if group is None else group
    if not hasattr(_c10d, "_pg_group_ranks"):
        raise NotImplementedError("survivors() enters the new group into the tables of PyTorch 1.13; in 2.x, make a "
                                  "new group of the ranks that torii.torch.lost() does not name")
    made = _group_of(old)._survivors(list(without), allow_minority)
    origin = _origins.get(old)
    if origin is None:
        origin = {place: rank for rank, place in _c10d._pg_group_ranks[old].items()}
    _origins[made] = origin
    _groups.add(made)
    _c10d._pg_map[made] = _c10d._pg_map[old]
    _c10d._pg_names[made] = f"{_c10d._pg_names[old]}/survivors"
    _c10d._pg_group_ranks[made] = {origin[member]: place for place, member in enumerate(made._members())}
    return made


@atexit.register
def _rest():
    """Threads must not come back to an interpreter that has ended."""
    for group in list(_groups):
        group._rest()
    _torch.wait_for_busy_threads()


_torch.install(_class_of_status, _c10d._get_default_group.__code__.co_filename)
# PyTorch 2.x asks for which devices the backend is.
_devices = {"devices": ["cpu"]} if "devices" in inspect.signature(dist.Backend.register_backend).parameters else {}
dist.Backend.register_backend("torii", _create, extended_api=True, **_devices)
