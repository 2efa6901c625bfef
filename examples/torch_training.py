# SPDX-License-Identifier: Apache-2.0
# Training with DistributedDataParallel. Run: python3 torch_training.py (4 ranks), or by torchrun.
"""A small model, trained by PyTorch as with any other backend; only the two lines with torii are special.

With determinism "canonical" the bits of the gradients' sums depend on inputs, number and order of ranks only.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing
import torii.torch
from torch.nn.parallel import DistributedDataParallel

STEPS, SAMPLES, FEATURES = 60, 512, 16


def run_rank(rank=-1, ranks=-1, init_method=None):
    options = torii.torch.Options(determinism="canonical")
    dist.init_process_group("torii", init_method, rank=rank, world_size=ranks, pg_options=options)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    inputs = torch.randn(SAMPLES, FEATURES)
    targets = (inputs @ torch.randn(FEATURES, 1)).relu()
    mine = slice(rank * SAMPLES // ranks, (rank + 1) * SAMPLES // ranks)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    trained = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(trained.parameters(), 0.02)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = (trained(inputs[mine]) - targets[mine]).square().mean()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            dist.reduce(loss.detach(), 0, dist.ReduceOp.AVG)
            if rank == 0:
                print(f"step {step:2}  loss {loss.item():.4f}")
    for parameter in model.parameters():
        of_rank_0 = parameter.detach().clone()
        dist.broadcast(of_rank_0, 0)
        if not torch.equal(of_rank_0, parameter):
            sys.exit(f"rank {rank}: the weights differ")
    dist.barrier()
    if rank == 0:
        print("weights are equal on all ranks")
    dist.destroy_process_group()


def main():
    if "RANK" in os.environ:
        run_rank()
    else:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(run_rank, (4, f"file://{folder}/store"), 4)


if __name__ == "__main__":
    main()
