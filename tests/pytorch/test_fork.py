# SPDX-License-Identifier: Apache-2.0
# Forked children of a rank get errors from its groups, at once, whatever its progress thread was doing.
"""Forked children under the backend of PyTorch."""
import datetime
import gc
import os
import signal
import time

import torch
import torch.distributed as dist
import torii.torch
from ranks import in_progress_thread, job, wait_until

LIMIT_S = 10


def in_child(action):
    """Runs the action in a forked child, which has to end within a time."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + LIMIT_S
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done == child:
            assert status == 0, f"the child ended with {status}"
            return
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.001)


def refused(call):
    try:
        call()
    except torii.torch.InvalidArgument as error:
        assert "forked" in str(error), error
    else:
        raise AssertionError("no error was raised")


def wait_for_last_fork():
    """Comes before a send to a receive that a child must find open: a rank that is slow may not have forked yet. A
    barrier would wait for the receive too."""
    dist.all_reduce(torch.ones(1))


def ones(count=1):
    return [torch.ones(1) for _ in range(count)]


COLLECTIVES = (
    lambda **how: dist.all_reduce(torch.ones(1), **how),
    lambda **how: dist.all_reduce(torch.ones(4, 4).t(), **how),
    lambda **how: dist.all_reduce(torch.ones(3).to_sparse(), **how),
    lambda **how: dist.all_reduce_coalesced(ones(2), **how),
    lambda **how: dist.broadcast(torch.ones(1), 0, **how),
    lambda **how: dist.reduce(torch.ones(1), 0, **how),
    lambda **how: dist.all_gather(ones(2), torch.ones(1), **how),
    lambda **how: dist.all_gather(ones(3), torch.ones(1), **how),  # refused anyway
    lambda **how: dist.all_gather_into_tensor(torch.ones(2), torch.ones(1), **how),
    lambda **how: dist.reduce_scatter(torch.ones(1), ones(2), **how),
    lambda **how: dist.reduce_scatter_tensor(torch.ones(1), torch.ones(2), **how),
    lambda **how: dist.gather(torch.ones(1), ones(2) if dist.get_rank() == 0 else None, 0, **how),
    lambda **how: dist.scatter(torch.ones(1), ones(2) if dist.get_rank() == 0 else None, 0, **how),
    lambda **how: dist.all_to_all(ones(2), ones(2), **how),
    lambda **how: dist.all_to_all_single(torch.ones(2), torch.ones(2), **how),
    lambda **how: dist.barrier(**how),
)
OTHERS = (
    lambda: dist.send(torch.ones(1), 0),
    lambda: dist.recv(torch.ones(1), 0),
    lambda: dist.recv(torch.ones(1)),
    lambda: dist.isend(torch.ones(1), 0),
    lambda: dist.irecv(torch.ones(1), 0),
    lambda: dist.batch_isend_irecv([dist.P2POp(dist.irecv, torch.ones(1), 0)]),
    lambda: torii.torch.monitored_barrier(timeout=datetime.timedelta(seconds=5)),
    lambda: torii.torch.survivors(),
    lambda: torii.torch.abort(),
)


def everything_is_refused(works):
    for call in COLLECTIVES:
        refused(call)
        refused(lambda call=call: call(async_op=True))
    for call in OTHERS:
        refused(call)
    for work in works:
        for call in (work.wait, lambda: work.wait(datetime.timedelta(seconds=1)), work.is_completed, work.get_future):
            refused(call)
    torii.torch._rest()  # as at the end of an interpreter
    dist.destroy_process_group()
    works.clear()
    gc.collect()


def whatever_was_locked_is_refused(work):
    for call in (COLLECTIVES[-1], COLLECTIVES[0]):
        refused(call)
        refused(lambda call=call: call(async_op=True))
    for call in (work.wait, work.is_completed, work.get_future):
        refused(call)
    torii.torch._rest()
    dist.destroy_process_group()


def test_operations_raise_when_they_start():
    def check(rank):
        refused_at_first = COLLECTIVES[0]
        in_child(lambda: refused(refused_at_first))  # without a progress thread
        works = [dist.irecv(torch.ones(1), 1 - rank) for _ in range(2)]
        in_child(lambda: everything_is_refused(works))
        wait_for_last_fork()
        for work in works:
            dist.send(torch.ones(1), 1 - rank)
        for work in works:
            work.wait()
        ended = dist.all_reduce(torch.ones(1), async_op=True)
        ended.wait()
        in_child(lambda: ended.wait() and ended.is_completed() and ended.result())
        torii.torch.monitored_barrier()
        dist.all_reduce(torch.ones(1))

    job(check)


def test_fork_while_the_progress_thread_is_inside():
    """No callback runs, and no tensor is dropped: CPython 3.11 may hang in a fork while a thread enters Python."""
    def check(rank):
        received = dist.irecv(torch.zeros(1), 1 - rank)
        kept = []  # else the progress thread, late with a step, may drop its tensors during the fork of the next one
        for step in range(20):
            tensors = [torch.ones(1 << 14) for _ in range(4)]
            works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
            futures = [work.get_future() for work in works]
            kept.append((tensors, works, futures))
            time.sleep(step * 2e-5)
            in_child(lambda: whatever_was_locked_is_refused(received))
            torch.futures.wait_all(futures)
            assert all(tensor[-1].item() == 2 for tensor in tensors)
        wait_for_last_fork()
        dist.send(torch.ones(1), 1 - rank)
        received.wait()

    job(check)


def test_children_may_have_groups_of_their_own(tmp_path):
    def check(rank):
        tensor = torch.ones(1)
        dist.all_reduce(tensor, async_op=True).wait()

        def own():
            dist.destroy_process_group()
            dist.init_process_group("torii", rank=rank, world_size=2, init_method=f"file://{tmp_path}/store")
            future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
            doubled = future.then(lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0])
            assert doubled.wait().item() == 4
            torii.torch._rest()

        in_child(own)

    job(check)


def test_child_ends_while_a_group_is_left_to_its_thread():
    """The group was destroyed in a callback that still runs, in a thread that the child has not."""
    def check(rank):
        groups = [dist.new_group([0, 1])]
        destroyed, ends = [], []

        def callback(done):
            dist.destroy_process_group(groups.pop())
            destroyed.append(1)
            wait_until(lambda: ends)

        future = in_progress_thread(callback, groups)
        wait_until(lambda: destroyed)
        in_child(torii.torch._rest)
        ends.append(1)
        future.wait()

    job(check)
