# SPDX-License-Identifier: Apache-2.0
# Ranks as forked processes: a test names a function, which every rank of a group runs.
"""Helpers of the tests of the backend of PyTorch."""
import datetime
import multiprocessing
import itertools
import os
import pathlib
import time
import traceback

import torch
import torch.distributed as dist
import torii.torch

TIMEOUT_S = 60
FULL = "TORII_TEST_FULL" in os.environ

# One store serves all jobs of a test program, each with keys of its own: it answers at once, while ranks that meet in a
# file look for each other every 10 ms. It lives in the process that forks the ranks, so it outlives any of them.
_server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False,
                        timeout=datetime.timedelta(seconds=TIMEOUT_S))
_numbers = itertools.count()


def new_store_name():
    """Another name for each job."""
    return f"job{next(_numbers)}"


def store_of(name):
    """A connection of this process to the keys of a job."""
    client = dist.TCPStore("127.0.0.1", _server.port, is_master=False, timeout=datetime.timedelta(seconds=TIMEOUT_S))
    return dist.PrefixStore(name, client)


def join(rank, ranks, store, backend="torii", timeout_s=TIMEOUT_S, **options):
    """Makes the default group."""
    dist.init_process_group(backend, rank=rank, world_size=ranks, store=store,
                            timeout=datetime.timedelta(seconds=timeout_s), **options)


def _run(function, rank, ranks, name, answers, options):
    torch.set_num_threads(1)
    answer, error = None, None
    try:
        store = store_of(name)  # kept, and with it its thread, which tests count
        join(rank, ranks, store, **options)
        answer = function(rank)
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:  # the parent shows it
        error = traceback.format_exc()
    answers.put((rank, answer, error))
    answers.close()
    answers.join_thread()


def job(function, ranks=2, dead=(), **options):
    """Runs function(rank) on so many ranks; returns what they return. Ranks in `dead` kill themselves."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    name = new_store_name()
    processes = [context.Process(target=_run, args=(function, rank, ranks, name, answers, options))
                 for rank in range(ranks)]
    for process in processes:
        process.start()
    try:
        results = {}
        end = time.monotonic() + TIMEOUT_S
        while len(results) < ranks - len(dead):
            rank, answer, error = answers.get(timeout=max(0.1, end - time.monotonic()))
            assert error is None, f"rank {rank}:\n{error}"
            results[rank] = answer
        for rank, process in enumerate(processes):
            process.join(TIMEOUT_S)
            assert rank in dead or process.exitcode == 0, f"rank {rank} ended with {process.exitcode}"
    finally:
        for process in processes:
            process.kill()
            process.join()
    return [results.get(rank) for rank in range(ranks)]


def failure(function, *arguments, **keywords):
    """The error that the call raises, and the seconds that it took."""
    begin = time.monotonic()
    try:
        result = function(*arguments, **keywords)
        if hasattr(result, "wait"):
            result.wait()
    except torii.torch.Error as error:
        return error, time.monotonic() - begin
    raise AssertionError("no error was raised")


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def in_progress_thread(callback, groups, place=0):
    """The future of a callback that runs in the thread of the group at this place of the list; of two ranks. A callback
    of an operation that has ended would run in the caller. Nothing refers to the group when it runs but the list."""
    peer, has_returned = 1 - dist.get_rank(), []

    def run(done):
        wait_until(lambda: has_returned)
        return callback(done)

    future = dist.irecv(torch.zeros(1), peer, group=groups[place]).get_future().then(run)
    torii.torch.monitored_barrier()
    dist.send(torch.ones(1), peer, group=groups[place])
    has_returned.append(True)
    return future


def seeds(test):
    """TORII_TEST_SEED, or else the seeds of the test in tests/seeds.txt and that of this run: 1 + TORII_TEST_RUN."""
    only = os.environ.get("TORII_TEST_SEED")
    if only is not None:
        return [int(only)]
    lines = (pathlib.Path(__file__).parent.parent / "seeds.txt").read_text().splitlines()
    listed = [int(line.split()[1]) for line in lines if line.split()[:1] == [test]]
    return listed + [1 + int(os.environ.get("TORII_TEST_RUN", 0))]
