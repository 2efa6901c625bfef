# SPDX-License-Identifier: Apache-2.0
# The calls of torch.distributed that stand in for the shared-memory kernels of vLLM, SGLang and DeepSpeed on CPUs.
"""Functions with the names and arguments of those kernels, over a group of torii, for any number of ranks.

Import this file beside an engine, or copy the lines. tests/pytorch/test_kernels.py runs all of them."""
import pickle

import torch
import torch.distributed as dist
import torii.torch  # noqa: F401, registers the backend


class Kernels:
    """Every rank of the job makes one with equal lists of global ranks. Ranks in arguments are those in the group."""

    def __init__(self, ranks, **options):
        self.group = dist.new_group(ranks, backend="torii", pg_options=torii.torch.Options(**options))

    # torch.ops._C.shm_... of vLLM; its first argument, a handle, is this object.

    def shm_allreduce(self, data):
        dist.all_reduce(data, group=self.group)

    def shm_all_gather(self, data, output):
        dist.all_gather_into_tensor(output, data, group=self.group)

    def shm_gather(self, data, outputs, dst):
        dist.gather(data, outputs, dist.get_global_rank(self.group, dst), group=self.group)

    def shm_send_tensor_list(self, tensors, dst):
        to = dist.get_global_rank(self.group, dst)
        kinds = torch.frombuffer(bytearray(pickle.dumps([(tensor.shape, tensor.dtype) for tensor in tensors])),
                                 dtype=torch.uint8)
        for tensor in (torch.tensor([len(kinds)]), kinds, *tensors):
            dist.send(tensor, to, group=self.group)

    def shm_recv_tensor_list(self, src):
        source = dist.get_global_rank(self.group, src)
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, group=self.group)
        kinds = torch.empty(int(length), dtype=torch.uint8)
        dist.recv(kinds, source, group=self.group)
        tensors = [torch.empty(shape, dtype=dtype) for shape, dtype in pickle.loads(kinds.numpy().tobytes())]
        for tensor in tensors:
            dist.recv(tensor, source, group=self.group)
        return tensors

    # torch.ops.sgl_kernel of SGLang; shm_allreduce is that of vLLM with an operation, which must be SUM.

    def shm_allgather(self, data, dim):
        whole = torch.empty((dist.get_world_size(self.group), *data.shape), dtype=data.dtype)
        dist.all_gather_into_tensor(whole, data, group=self.group)
        return torch.cat(whole.unbind(), dim)

    # deepspeed.comm

    def inference_all_reduce(self, tensor, op=dist.ReduceOp.SUM):
        dist.all_reduce(tensor, op, group=self.group)
        return tensor
