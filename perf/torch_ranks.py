# SPDX-License-Identifier: Apache-2.0
# The ranks of perf/compare_torch and perf/replay_traces: forked processes with a group of torii and one of Gloo.
"""Starts ranks that have both groups, and hands on what rank 0 has measured."""
import datetime
import multiprocessing
import os
import queue
import sys
import tempfile
import time

EXIT_OK, EXIT_FAILED, EXIT_BAD_COMMAND_LINE, EXIT_NOT_POSSIBLE = 0, 1, 2, 3
TIMEOUT = datetime.timedelta(seconds=120)


def can_import(program):
    """Imports PyTorch and the backend, so that forked ranks have them; says on stderr why not."""
    try:
        import torii.torch  # noqa: F401
    except ImportError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return False
    return True


def time_round(body, group, count):
    """The mean time of a call of body(group), in us."""
    import torch.distributed as dist
    dist.barrier(group)
    begin = time.perf_counter()
    for _ in range(count):
        body(group)
    return (time.perf_counter() - begin) / count * 1e6


def time_in_turn(body, groups, milliseconds, rounds, warm_up=3):
    """Times of rounds of so many milliseconds, alternating between the groups: {name: [us, ...]}. Collective."""
    import torch
    import torch.distributed as dist
    times = {name: [] for name in groups}
    counts = {}
    for name, group in groups.items():
        for _ in range(warm_up):
            body(group)
        count = torch.tensor([max(1, int(milliseconds * 1e3 / time_round(body, group, warm_up)))])
        dist.broadcast(count, 0)
        counts[name] = int(count)
    for _ in range(rounds):
        for name, group in groups.items():
            times[name].append(time_round(body, group, counts[name]))
    return times


def _run(rank, ranks, torch_threads, folder, measure, rows):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(torch_threads)
    dist.init_process_group("torii", rank=rank, world_size=ranks, timeout=TIMEOUT,
                            store=dist.FileStore(os.path.join(folder, "store"), ranks))
    measure({"torii": dist.new_group(), "gloo": dist.new_group(backend="gloo")}, rows if rank == 0 else None)
    dist.barrier()
    dist.destroy_process_group()


def run(ranks, torch_threads, measure, report):
    """measure(groups, rows) on every rank, where rows.put() is rank 0's; report(row) here. False: a rank failed."""
    context = multiprocessing.get_context("fork")
    rows = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_run, args=(rank, ranks, torch_threads, folder, measure, rows))
                     for rank in range(ranks)]
        for process in processes:
            process.start()
        while any(process.exitcode is None for process in processes) or not rows.empty():
            try:
                report(rows.get(timeout=0.2))
            except queue.Empty:
                if any(process.exitcode for process in processes):
                    break
        failed = any(process.exitcode for process in processes)
        for process in processes:
            if failed:
                process.kill()
            process.join()
    return not failed
