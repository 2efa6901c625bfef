# SPDX-License-Identifier: Apache-2.0
# Callbacks of futures start and wait for other operations, and destroy their group, as with Gloo.
"""Callbacks in the threads of the backend of PyTorch."""
import gc
import os
import time

import pytest
import torch
import torch.distributed as dist
import torii.torch
from ranks import in_progress_thread, job, wait_until


def threads():
    return len(os.listdir("/proc/self/task"))


def future_of(tensor, group=None):
    return dist.all_reduce(tensor, group=group, async_op=True).get_future()


def nested(value, depth, group=None):
    """A future whose callback waits for another one, and so on."""
    future = future_of(torch.full((5,), value), group)
    if depth == 0:
        return future.then(lambda done: done.value()[0])
    return future.then(lambda done: nested(done.value()[0][0].item(), depth - 1, group).wait())


def blocking(tensor):
    dist.all_reduce(tensor)
    return tensor


def after_wait(tensor):
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    return tensor


def after_barrier(tensor):
    work = dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    assert work.is_completed()
    return tensor


def after_polling(tensor):
    future = future_of(tensor)
    wait_until(future.done)
    return future.value()[0]


def from_neighbour(tensor):
    other = torch.zeros_like(tensor)
    works = [dist.isend(tensor, 1 - dist.get_rank()), dist.irecv(other, 1 - dist.get_rank())]
    torch.futures.wait_all([work.get_future() for work in works])
    return tensor + other


WAYS = (lambda tensor: future_of(tensor).wait()[0], blocking, after_wait, after_barrier, after_polling, from_neighbour)


def test_callbacks_wait():
    def check(rank):
        before = threads()
        assert future_of(torch.ones(5)).then(lambda done: done.value()[0][0].item()).wait() == 2
        assert threads() == before + 1  # nothing else was under way
        for depth in range(1, 6):
            for _ in range(3):
                assert nested(1.0, depth).wait().tolist() == [2.0 ** (depth + 1)] * 5
        assert threads() <= before + 7  # one for each depth
        for way in WAYS:
            future = future_of(torch.ones(3)).then(lambda done, way=way: way(done.value()[0]))
            assert future.wait().tolist() == [4, 4, 4], way
            work = dist.all_reduce(torch.ones(3), async_op=True)
            future = work.get_future().then(lambda done, way=way: way(done.value()[0]))
            work.wait()  # the callback may run here
            assert future.wait().tolist() == [4, 4, 4], way

    job(check)


def test_callbacks_wait_in_chains_and_in_both_groups():
    def check(rank):
        groups = [dist.new_group([0, 1, 2]) for _ in range(2)]

        def later(done):
            tensor = done.value()[0]
            return [future_of(tensor.clone(), group).wait()[0][0].item() for group in groups]

        for group in groups:
            chain = future_of(torch.ones(2), group).then(later).then(lambda done: nested(done.value()[0], 1).wait())
            assert chain.wait().tolist() == [81] * 5

    job(check, 3)


def test_callbacks_wait_for_what_began_before():
    """No call tells torii that these callbacks wait."""
    def check(rank):
        received = [dist.irecv(torch.zeros(1), 1 - rank, tag=step + 1).get_future() for step in range(4)]
        chain = [received[step].then(lambda done, step=step: received[step + 1].wait()[0].item()) for step in range(3)]
        first = in_progress_thread(lambda done: received[0].wait()[0].item(), [dist.group.WORLD])
        for step in range(4):
            time.sleep(0.03)  # the callback before waits by now
            dist.send(torch.full((1,), float(step)), 1 - rank, tag=step + 1)
        assert [future.wait() for future in [first, *chain]] == [0, 1, 2, 3]

    job(check)


def test_short_callbacks_make_no_crowd():
    def check(rank):
        before = threads()
        torch.futures.wait_all([future_of(torch.ones(100)).then(lambda done: None) for _ in range(200)])
        assert threads() < before + 10

    job(check)


def test_deadline_of_an_operation_that_a_callback_waits_for(tmp_path):
    def check(rank):
        def callback(done):
            if rank == 1:
                wait_until((tmp_path / "noticed").exists)
            else:
                future_of(torch.ones(1)).wait()

        begin = time.monotonic()
        future = future_of(torch.ones(1)).then(callback)
        if rank == 1:
            return future.wait()
        with pytest.raises(RuntimeError, match="Timed out in all_reduce"):
            future.wait()
        assert 0.9 < time.monotonic() - begin < 10
        (tmp_path / "noticed").touch()

    job(check, timeout_s=1)


def test_killed_rank_in_a_callback():
    def check(rank):
        def callback(done):
            if rank == 1:
                os.kill(os.getpid(), 9)
            return future_of(torch.ones(1)).wait()

        with pytest.raises(RuntimeError, match="rank 1"):
            future_of(torch.ones(1)).then(callback).wait()

    job(check, dead={1})


@pytest.mark.parametrize("under_way", (False, True))
def test_callback_destroys_its_group(under_way):
    def check(rank):
        before = threads()
        groups = [dist.new_group([0, 1])]
        nested(1.0, 2, groups[0]).wait()
        received = dist.irecv(torch.zeros(1), 1 - rank, group=groups[0], tag=1) if under_way else None

        def callback(done):
            group = groups.pop()
            dist.destroy_process_group(group)
            del group
            gc.collect()
            return future_of(torch.ones(2)).wait()[0]

        future = in_progress_thread(callback, groups)
        begin = time.monotonic()
        assert future.wait().tolist() == [2, 2]
        assert time.monotonic() - begin < 4  # nothing was waited for in vain
        if under_way:
            with pytest.raises(RuntimeError, match="destroyed"):
                received.wait()
        dist.destroy_process_group()
        gc.collect()
        wait_until(lambda: threads() == before)

    job(check)


def test_callbacks_destroy_each_others_group():
    def check(rank):
        groups = [dist.new_group([0, 1]) for _ in range(2)]
        begun = []

        def callback(other):
            begun.append(other)
            wait_until(lambda: len(begun) == 2)
            group, groups[other] = groups[other], None
            dist.destroy_process_group(group)

        futures = [in_progress_thread(lambda done, place=place: callback(1 - place), groups, place)
                   for place in range(2)]
        torch.futures.wait_all(futures)
        dist.barrier()

    job(check)


def test_group_is_destroyed_while_a_callback_waits():
    def check(rank):
        groups = [dist.new_group([0, 1])]
        begun = []

        def callback(done):
            future = dist.irecv(torch.zeros(1), 1 - rank, group=groups[0], tag=1).get_future()
            begun.append(future)
            return future.wait()

        future = in_progress_thread(callback, groups)
        wait_until(lambda: begun)
        dist.barrier()
        begin = time.monotonic()
        dist.destroy_process_group(groups.pop())
        gc.collect()
        with pytest.raises(RuntimeError, match="destroyed"):
            future.wait()
        assert time.monotonic() - begin < 4

    job(check)
