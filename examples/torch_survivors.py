# SPDX-License-Identifier: Apache-2.0
# Data-parallel training that goes on when a rank is killed. Run: python3 torch_survivors.py
"""Four ranks train; rank 2 is killed. The others get an error that names it, make a group of the survivors, agree on
the weights, and train on. torchrun would end them all, so this program starts its ranks itself."""
import os
import signal
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing
import torii.torch
from torch.nn.parallel import DistributedDataParallel

RANKS, STEPS, KILLED, KILLED_AT = 4, 40, 2, 15


def run_step(trained, optimizer, rank, step):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(32, 8, generator=generator)
    optimizer.zero_grad()
    loss = (trained(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def run_rank(rank, folder):
    dist.init_process_group("torii", rank=rank, world_size=RANKS, init_method=f"file://{folder}/store")
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    group, step, loss = dist.group.WORLD, 0, float("inf")
    while True:
        trained = DistributedDataParallel(model, process_group=group)  # also gives all ranks the first one's weights
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        try:
            while step < STEPS:
                if rank == KILLED and step == KILLED_AT:
                    os.kill(os.getpid(), signal.SIGKILL)
                loss = run_step(trained, optimizer, rank, step)
                step += 1
            break
        except torii.torch.Error as error:
            print(f"rank {rank}: {type(error).__name__}, rank {error.rank}")
            group = torii.torch.survivors(group)
            agreed = torch.tensor([step])
            dist.all_reduce(agreed, dist.ReduceOp.MIN, group=group)  # some may have ended the step that failed
            step = int(agreed)
            for parameter in model.parameters():
                parameter.grad = None
    print(f"rank {rank} of {group.size()} is through: loss {loss:.6f}")
    sys.exit(0 if loss < 0.01 and group.size() == RANKS - 1 else 1)


def main():
    context = torch.multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=run_rank, args=(rank, folder)) for rank in range(RANKS)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    codes = [process.exitcode for process in ranks]
    sys.exit(0 if codes == [-signal.SIGKILL if rank == KILLED else 0 for rank in range(RANKS)] else 1)


if __name__ == "__main__":
    main()
