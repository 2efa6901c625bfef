# SPDX-License-Identifier: Apache-2.0
# Exceptions of the package: one class for each status of the C interface.
"""Exceptions of torii."""
import enum
import re


class Status(enum.IntEnum):
    """The status codes of the C interface; docs/embedding.md explains them. The numbers never change."""

    OK = 0
    INVALID_ARGUMENT = 1
    NOT_REGISTERED = 2
    MISMATCH = 3
    UNSUPPORTED = 4
    NO_RESOURCE = 5
    TIMEOUT = 6
    PEER_LOST = 7
    ABORTED = 8
    POISONED = 9
    TRANSPORT = 10
    INTERNAL = 11


class Error(Exception):
    """A call of torii has failed.

    status: the Status.
    reason: the text of the library, which names call, phase, ranks and hosts.
    rank: the rank that is meant: the lost, missing, refusing or aborting one. None if the reason names none.
    """

    status = Status.INTERNAL

    def __init__(self, reason, rank=None):
        super().__init__(reason)
        self.reason = reason
        self.rank = rank

    def __reduce__(self):
        return type(self), (self.reason, self.rank)


class InvalidArgument(Error, ValueError):
    """A value is wrong; the reason names it and what would be right."""

    status = Status.INVALID_ARGUMENT


class NotRegistered(Error, ValueError):
    """An address or a region that the context did not give."""

    status = Status.NOT_REGISTERED


class Mismatch(Error):
    """Ranks differ in a call, a setting or a version."""

    status = Status.MISMATCH


class Unsupported(Error):
    """Right, but not possible with this algorithm, transport, machine or launcher."""

    status = Status.UNSUPPORTED


class NoResource(Error):
    """Memory, address space or descriptors are used up."""

    status = Status.NO_RESOURCE


class Timeout(Error, TimeoutError):
    """A call made no progress within the deadline, and the team has failed. Request.wait(timeout) does not raise it."""

    status = Status.TIMEOUT


class PeerLost(Error, ConnectionError):
    """The process of a rank has ended; `rank` says which."""

    status = Status.PEER_LOST


class Aborted(Error):
    """A rank called Team.abort(), or was interrupted in a call."""

    status = Status.ABORTED


class Poisoned(Error):
    """An earlier call on the team has failed. Team.survivors() makes a new team."""

    status = Status.POISONED


class TransportError(Error):
    """The transport, or an exchange function, failed."""

    status = Status.TRANSPORT


class InternalError(Error):
    """A fault of torii."""

    status = Status.INTERNAL


_classes = {
    one.status: one
    for one in (InvalidArgument, NotRegistered, Mismatch, Unsupported, NoResource, Timeout, PeerLost, Aborted,
                Poisoned, TransportError, InternalError)
}


# Where the reason of a status names the rank that is meant. Two ranks whose calls differ have no such rank.
_named = {
    Status.TIMEOUT: r"(?:not come to the call: |waiting for |^(?=rank \d+ has not joined))rank (\d+)",
    Status.MISMATCH: r"rank (\d+) .*?refused",
}


def make_error(status, reason, lost):
    """The exception for a status. `lost` has the members of the team that are known to be lost."""
    named = re.search(_named.get(status, r"\brank (\d+)\b"), reason)
    rank = int(named.group(1)) if named else None
    if status == Status.PEER_LOST and lost and rank not in lost:
        rank = lost[0]
    return _classes.get(status, InternalError)(reason, rank)
