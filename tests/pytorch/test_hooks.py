# SPDX-License-Identifier: Apache-2.0
# PyTorch's own communication hooks and optimizers that communicate; Gloo is the reference.
"""Training with the hooks of PyTorch over the backend."""
import types

import pytest
import torch
import torch.distributed as dist
import torii.torch
from ranks import job
from torch.distributed.algorithms.ddp_comm_hooks import (DDPCommHookType, default_hooks, post_localSGD_hook,
                                                         powerSGD_hook, quantization_hooks, register_ddp_comm_hook)
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

STEPS = 6


def new_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.ReLU(), torch.nn.Linear(40, 20), torch.nn.ReLU(),
                               torch.nn.Linear(20, 3))


class Stacked:
    """An all_gather whose future has the form that the quantization hooks expect, that of NCCL."""

    def __init__(self, *arguments, **options):
        self.work = dist.all_gather(*arguments, **options)

    def get_future(self):
        return self.work.get_future().then(lambda done: [torch.stack(done.value())])


def train(rank, group, prepare):
    """The parameters after some steps. `prepare` registers a hook, and may return an optimizer."""
    trained = DistributedDataParallel(new_model(), process_group=group)
    optimizer = prepare(trained, group) or torch.optim.SGD(trained.parameters(), 0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        trained.zero_grad()
        trained(torch.randn(8, 30, generator=generator)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in trained.parameters()]


def compare(prepare, ranks=2):
    def check(rank):
        # The quantization hooks call it even for the CPU.
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, device=None: self
        quantization_hooks.dist = types.SimpleNamespace(**{**vars(dist), "all_gather": Stacked})
        ours, theirs = (train(rank, dist.new_group(list(range(ranks)), backend=backend), prepare)
                        for backend in ("torii", "gloo"))
        for mine, other, first in zip(ours, theirs, new_model().parameters()):
            assert torch.allclose(mine, other, rtol=1e-3, atol=1e-5) and not torch.equal(mine, first)
            gathered = [torch.zeros_like(mine) for _ in range(ranks)]
            dist.all_gather(gathered, mine)
            assert all(torch.equal(mine, other) for other in gathered)

    job(check, ranks)


def power_sgd(**options):
    def prepare(trained, group):
        state = powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=2, **options)
        trained.register_comm_hook(state, powerSGD_hook.powerSGD_hook)

    return prepare


def wrapped_fp16(trained, group):
    trained.register_comm_hook(group, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))


def of_type(kind):
    return lambda trained, group: register_ddp_comm_hook(kind, trained, group)


def built_in(kind):
    return lambda trained, group: trained._register_builtin_comm_hook(kind)


def local_sgd(trained, group):
    state = post_localSGD_hook.PostLocalSGDState(group, group, start_localSGD_iter=2)
    trained.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)


HOOKS = {
    "all_reduce": of_type(DDPCommHookType.ALLREDUCE),
    "fp16": of_type(DDPCommHookType.FP16_COMPRESS),
    "built_in_all_reduce": built_in(dist.BuiltinCommHookType.ALLREDUCE),
    "built_in_fp16": built_in(dist.BuiltinCommHookType.FP16_COMPRESS),
    "per_tensor": of_type(DDPCommHookType.QUANTIZE_PER_TENSOR),
    "per_channel": of_type(DDPCommHookType.QUANTIZE_PER_CHANNEL),
    "power_sgd": power_sgd(matrix_approximation_rank=2, min_compression_rate=1),
    "power_sgd_cold": power_sgd(warm_start=False, use_error_feedback=False),
    "wrapped_fp16": wrapped_fp16,
    "local_sgd": local_sgd,
}


@pytest.mark.parametrize("hook", HOOKS)
def test_hook(hook):
    compare(HOOKS[hook])


def test_hook_on_three_ranks():
    compare(HOOKS["power_sgd"], 3)


def zero(trained, group):
    return ZeroRedundancyOptimizer(trained.parameters(), torch.optim.Adam, process_group=group, lr=0.01)


def test_zero_redundancy_optimizer():
    compare(zero)
