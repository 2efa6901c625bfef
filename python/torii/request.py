# SPDX-License-Identifier: Apache-2.0
# Requests, also as awaitables, and lists of requests.
"""Started and persistent operations."""
import asyncio
import contextlib
import time

from . import _torii
from .errors import Error

_POLLS = 64  # tests without a sleep between them
_SLEEP_FIRST = 20e-6  # seconds
_SLEEP_MOST = 1e-3


def _pauses():
    """Seconds to sleep between tests: none at first, then longer and longer."""
    for _ in range(_POLLS):
        yield 0
    pause = _SLEEP_FIRST
    while True:
        yield pause
        pause = min(2 * pause, _SLEEP_MOST)


class Request(_torii.Request):
    """An operation that Team.start_... has started, or Team.prepare_... has prepared.

    wait() and `await request` return what the blocking form returns. The buffers of the operation are locked until it
    has ended: a bytearray, for example, cannot be resized. Nobody may write them meanwhile.

    An operation moves while this process is in a call of torii, on any team of the context. `await` tests the request
    again and again from the running event loop: at once at first, then every 20 us to 1 ms. If the task is cancelled
    meanwhile, a receive that has met no send is taken back, as by cancel(); other operations go on.
    """

    def __await__(self):
        return self._poll().__await__()

    async def _poll(self):
        try:
            for pause in _pauses():
                if self.test():
                    return self.wait()
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            # A receive that nobody awaits any more would take the next message from those that follow.
            with contextlib.suppress(ValueError, RuntimeError, Error):
                self.cancel()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.wait()


def wait_all(requests, timeout=None):
    """Waits for all requests and returns their results as a list.

    After `timeout` seconds it raises TimeoutError, and the operations go on. If operations fail, the others are waited
    for, and the first failure of the list is raised.
    """
    requests = list(requests)
    end = None if timeout is None else time.monotonic() + timeout
    results = []
    failure = None
    for request in requests:
        try:
            results.append(request.wait(None if end is None else max(0.0, end - time.monotonic())))
        except Error as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return results


def test_all(requests):
    """Whether all operations have ended. Raises what has failed."""
    return all([request.test() for request in requests])


def wait_any(requests, timeout=None):
    """Waits until one of the requests has ended and returns its place in the list. Requests may be of several teams.

    Its result, or its failure, is what its wait() gives. After `timeout` seconds it raises TimeoutError.
    """
    requests = list(requests)
    if not requests:
        raise ValueError("requests is empty; give at least one")
    end = None if timeout is None else time.monotonic() + timeout
    for pause in _pauses():
        place = test_any(requests)
        if place is not None:
            return place
        if end is not None and time.monotonic() >= end:
            raise TimeoutError(f"none of {len(requests)} operations has ended after {timeout} s; they go on")
        if pause:
            time.sleep(pause)


def test_any(requests):
    """The place of the first request in the list that has ended, whether it failed or not, or None."""
    for place, request in enumerate(requests):
        try:
            if request.test():
                return place
        except Error:
            return place
    return None
