# SPDX-License-Identifier: Apache-2.0
# Random operations over torii and over Gloo, side by side, with threads and waits in other orders on each rank.
"""Stress of the backend of PyTorch; Gloo is the reference."""
import random
import sys
import threading

import pytest
import torch
import torch.distributed as dist
from ranks import FULL, job, seeds
from torch.distributed import ReduceOp

STEPS = 3000 if FULL else 120
SIZES = (1, 3, 16, 1000, 4097, 20000)
TYPES = (torch.int32, torch.int64, torch.uint8, torch.float32, torch.float64)


class Pair:
    """One operation, begun over both backends; `check` compares when both have ended."""

    def __init__(self, works, results):
        self.works = works
        self.results = results

    def check(self, order):
        for index in order:
            self.works[index].wait()
        for ours, theirs in zip(*self.results):
            assert torch.allclose(ours, theirs, rtol=1e-5), (ours, theirs)


def new_tensor(common, rank, count=None):
    dtype = common.choice(TYPES)
    size = common.choice(SIZES) if count is None else count
    generator = torch.Generator().manual_seed(common.randrange(1 << 30) + rank)
    return torch.randint(0, 9, (size,), generator=generator).to(dtype)


def begin(common, rank, ranks, groups):
    """Begins a random operation, equal on all ranks, over both groups."""
    kind = common.choice(("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "pass_on"))
    root = common.randrange(ranks)
    tensor = new_tensor(common, rank)
    op = common.choice((ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN))
    works, results = [], []
    for group in groups:
        mine = tensor.clone()
        lists = [torch.zeros_like(mine) for _ in range(ranks)]
        if kind == "all_reduce":
            works.append(dist.all_reduce(mine, op, group=group, async_op=True))
            results.append([mine])
        elif kind == "broadcast":
            works.append(dist.broadcast(mine, root, group=group, async_op=True))
            results.append([mine])
        elif kind == "reduce":
            works.append(dist.reduce(mine, root, op, group=group, async_op=True))
            results.append([mine] if rank == root else [])
        elif kind == "all_gather":
            works.append(dist.all_gather(lists, mine, group=group, async_op=True))
            results.append(lists)
        elif kind == "gather":
            works.append(dist.gather(mine, lists if rank == root else None, root, group=group, async_op=True))
            results.append(lists)
        elif kind == "scatter":
            lists = [mine + index for index in range(ranks)] if rank == root else None
            into = torch.zeros_like(mine)
            works.append(dist.scatter(into, lists, root, group=group, async_op=True))
            results.append([into])
        else:
            into = torch.zeros_like(mine)
            sent = dist.isend(mine, (rank + 1) % ranks, group=group)
            works.append(dist.irecv(into, (rank - 1) % ranks, group=group))
            sent.wait()
            results.append([into])
    return Pair(works, results)


def run(number, rank, ranks, groups, errors, steps):
    common = random.Random(number)
    own = random.Random(number + rank + 1)
    pending = []
    try:
        for _ in range(steps):
            pending.append(begin(common, rank, ranks, groups))
            while pending and (len(pending) > 8 or own.random() < 0.3):
                pending.pop(own.randrange(len(pending))).check(own.sample((0, 1), 2))
        for pair in pending:
            pair.check((0, 1))
    except BaseException as error:
        errors.append(error)


@pytest.mark.parametrize("number", seeds("pytorch_test_stress"))
@pytest.mark.parametrize("ranks", (2, 3, 4) if FULL else (2, 3))
def test_random_operations(ranks, number):
    print(f"seed {number} of pytorch_test_stress: replay it with TORII_TEST_SEED={number}, then add the line "
          f"'pytorch_test_stress {number} WHAT IT FOUND' to tests/seeds.txt", file=sys.stderr)

    def check(rank):
        errors = []
        pairs = [(dist.new_group(list(range(ranks))), dist.new_group(list(range(ranks)), backend="gloo"))
                 for _ in range(2)]
        workers = [threading.Thread(target=run, args=(number + 100 * index, rank, ranks, pair, errors, STEPS))
                   for index, pair in enumerate(pairs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if errors:
            raise errors[0]

    job(check, ranks)
