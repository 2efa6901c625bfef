# SPDX-License-Identifier: Apache-2.0
# The step synchronisation of a serving loop. Run: python3 torch_serving.py (4 ranks), or by torchrun.
"""A layer of a model is divided over the ranks. Each step, rank 0 says which requests are served, every rank computes
its part, and the parts are summed: two short collectives per step, whose time adds to each token."""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
import torii.torch  # noqa: F401, registers the backend

STEPS, WIDTH, BATCH_MOST = 300, 256, 8


def run_rank(rank=-1, ranks=-1, init_method=None):
    dist.init_process_group("torii", init_method, rank=rank, world_size=ranks)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    weights = torch.randn(WIDTH, WIDTH) / WIDTH**0.5
    mine = slice(rank * WIDTH // ranks, (rank + 1) * WIDTH // ranks)
    requests = torch.zeros(BATCH_MOST + 1, dtype=torch.int64)  # how many, and which
    hidden = torch.randn(BATCH_MOST, WIDTH).bfloat16()
    synchronised = 0.0
    for step in range(STEPS):
        if rank == 0:
            count = 1 + step % BATCH_MOST
            requests[0] = count
            requests[1:count + 1] = torch.arange(count) + step
        begin = time.perf_counter()
        dist.broadcast(requests, 0)
        synchronised += time.perf_counter() - begin
        batch = hidden[:int(requests[0])]
        part = (batch[:, mine].float() @ weights[mine]).bfloat16()
        begin = time.perf_counter()
        dist.all_reduce(part)
        synchronised += time.perf_counter() - begin
        batch.copy_(torch.tanh(part))
    sums = [torch.zeros(1) for _ in range(ranks)]
    dist.all_gather(sums, hidden.float().sum().reshape(1))
    if any(not torch.equal(one, sums[0]) for one in sums):
        sys.exit(f"rank {rank}: the ranks computed different tokens: {sums}")
    if rank == 0:
        print(f"{STEPS} steps, {synchronised / STEPS * 1e6:.0f} us of each in collectives; equal results on all ranks")
    dist.destroy_process_group()


def main():
    if "RANK" in os.environ:
        run_rank()
    else:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(run_rank, (4, f"file://{folder}/store"), 4)


if __name__ == "__main__":
    main()
