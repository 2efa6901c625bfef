# SPDX-License-Identifier: Apache-2.0
# Data-parallel training with NumPy. Run: python3 -m torii.run -n 4 training.py
"""A linear model whose samples are dealt over the ranks; gradients are summed with allreduce.

Every number of ranks prints nearly the same losses, and every run with one number of ranks the same bits:

    step   0  loss 47.0655
    step  20  loss 0.7538
    step  40  loss 0.0241
    step  60  loss 0.0101
    step  80  loss 0.0098
    weights are equal on all ranks
"""
import sys

import numpy
import torii

SAMPLES, FEATURES, STEPS, RATE = 4096, 64, 100, 0.1


def make_samples(team):
    """This rank's share of samples that all ranks could make: inputs, and targets with a little noise."""
    random = numpy.random.default_rng(1)
    true_weights = random.normal(size=FEATURES).astype("float32")
    inputs = random.normal(size=(SAMPLES, FEATURES)).astype("float32")
    noise = random.normal(scale=0.1, size=SAMPLES).astype("float32")
    first, count = torii.split(SAMPLES, team.ranks, team.rank)
    share = slice(first, first + count)
    return inputs[share], (inputs @ true_weights + noise)[share]


def main():
    team = torii.world()
    inputs, targets = make_samples(team)
    weights = numpy.zeros(FEATURES, "float32")
    # Peers on this machine reduce this memory in place. The last element carries the loss.
    sums = torii.allocate(FEATURES + 1, "float32")
    step_sums = team.prepare_allreduce(sums, "sum", out=sums)
    loss = numpy.inf
    for step in range(STEPS):
        errors = inputs @ weights - targets
        sums[:FEATURES] = inputs.T @ errors
        sums[FEATURES] = errors @ errors
        step_sums.start().wait()
        weights -= RATE * sums[:FEATURES] / SAMPLES
        loss = sums[FEATURES] / SAMPLES
        if team.rank == 0 and step % 20 == 0:
            print(f"step {step:3}  loss {loss:.4f}")
    step_sums.free()

    weights_of_rank_0 = team.broadcast(weights.copy(), root=0)
    if not numpy.array_equal(weights, weights_of_rank_0) or loss > 0.02:
        sys.exit(f"rank {team.rank}: the weights differ, or the loss is {loss}")
    team.barrier()
    if team.rank == 0:
        print("weights are equal on all ranks")


if __name__ == "__main__":
    main()
