# SPDX-License-Identifier: Apache-2.0
# Every operation of a group, its types, and tensors that do not fit.
"""Operations of the backend of PyTorch."""
import itertools

import pytest
import torch
import torch.distributed as dist
import torii.torch
from ranks import failure, job
from torch.distributed import ReduceOp

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)


def values(rank, dtype, count=7, start=1):
    return (torch.arange(count) % 3 + rank + start).to(dtype)


def expected(op, dtype, ranks, count=7):
    rows = torch.stack([values(rank, dtype, count) for rank in range(ranks)])
    wide = rows.to(torch.float64) if dtype in FLOATS else rows
    if op == ReduceOp.SUM:
        return wide.sum(0).to(dtype)
    if op == ReduceOp.PRODUCT:
        return wide.prod(0).to(dtype)
    if op == ReduceOp.MIN:
        return rows.min(0).values
    if op == ReduceOp.MAX:
        return rows.max(0).values
    if op == ReduceOp.AVG:
        return (wide.sum(0) / ranks).to(dtype) if dtype in FLOATS + COMPLEX else wide.sum(0).to(dtype) // ranks
    result = rows[0]
    for row in rows[1:]:
        result = {ReduceOp.BAND: result & row, ReduceOp.BOR: result | row, ReduceOp.BXOR: result ^ row}[op]
    return result


def kinds():
    # PyTorch itself refuses the product of complex numbers.
    yield from itertools.product((ReduceOp.SUM, ReduceOp.AVG), INTEGERS + FLOATS + COMPLEX)
    yield from itertools.product((ReduceOp.PRODUCT,), INTEGERS + FLOATS)
    yield from itertools.product((ReduceOp.MIN, ReduceOp.MAX), INTEGERS + FLOATS)
    yield from itertools.product((ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR), INTEGERS)


@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_types_and_operations(ranks):
    def check(rank):
        for op, dtype in kinds():
            want = expected(op, dtype, ranks)
            tensor = values(rank, dtype)
            dist.all_reduce(tensor, op)
            assert torch.equal(tensor, want), (op, dtype, tensor, want)
            tensor = values(rank, dtype)
            dist.reduce(tensor, ranks - 1, op)
            assert torch.equal(tensor, want if rank == ranks - 1 else values(rank, dtype)), (op, dtype)
            parts = [values(rank, dtype) for _ in range(ranks)]
            tensor = torch.zeros(7, dtype=dtype)
            dist.reduce_scatter(tensor, parts, op)
            assert torch.equal(tensor, want), (op, dtype)

    job(check, ranks)


def test_truth_values():
    def check(rank):
        for op, want in ((ReduceOp.MAX, [True, True, False]), (ReduceOp.MIN, [True, False, False]),
                         (ReduceOp.SUM, [True, True, False]), (ReduceOp.BXOR, [False, True, False])):
            tensor = torch.tensor([True, rank == 0, False])
            dist.all_reduce(tensor, op)
            assert tensor.tolist() == want, op

    job(check)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + (torch.int16,))
def test_scaled_sum(dtype):
    def check(rank):
        group = dist.distributed_c10d._get_default_group()
        whole = dtype == torch.int16
        want = expected(ReduceOp.SUM, dtype, 2) * 2 if whole else (expected(ReduceOp.SUM, dtype, 2) / 2).to(dtype)
        for factor in (2.0, torch.tensor([2.0])) if whole else (0.5, torch.tensor([0.5]), torch.tensor(0.5)):
            op = dist._make_nccl_premul_sum([factor] if torch.is_tensor(factor) else factor)
            tensor = values(rank, dtype)
            dist.all_reduce(tensor, op)
            assert torch.equal(tensor, want), (tensor, want)
            options = dist.ReduceOptions()
            options.reduceOp, options.rootRank = op, 1
            tensor = values(rank, dtype)
            group.reduce([tensor], options).wait()
            assert torch.equal(tensor, want if rank == 1 else values(rank, dtype))
            options = dist.ReduceScatterOptions()
            options.reduceOp = op
            tensor = torch.zeros(7, dtype=dtype)
            group.reduce_scatter([tensor], [[values(rank, dtype)] * 2], options).wait()
            assert torch.equal(tensor, want)

    job(check)


def test_each_rank_has_its_own_factor():
    def check(rank):
        tensor = torch.full((5000,), 2.0).t()
        dist.all_reduce(tensor, dist._make_nccl_premul_sum([torch.tensor([10.0 ** rank])]))
        assert tensor.eq(222.0).all(), tensor

    job(check, 3)


def test_factors_that_do_not_fit():
    def check(rank):
        for factor, dtype in ((0.5, torch.int32), ([torch.tensor([0.5, 0.5])], torch.float32), (300.0, torch.int8)):
            with pytest.raises(ValueError, match="the factor of ReduceOp.PREMUL_SUM"):
                dist.all_reduce(torch.ones(2, dtype=dtype), dist._make_nccl_premul_sum(factor))
        dist.barrier()  # the group goes on

    job(check)


@pytest.mark.parametrize("ranks", (2, 3))
def test_blocks(ranks):
    def check(rank):
        for dtype in INTEGERS + FLOATS + COMPLEX + (torch.bool,):
            mine = values(rank, dtype)
            all_values = [values(other, dtype) for other in range(ranks)]
            lists = [torch.zeros(7, dtype=dtype) for _ in range(ranks)]
            dist.all_gather(lists, mine)
            assert all(map(torch.equal, lists, all_values)), dtype
            whole = torch.zeros(ranks, 7, dtype=dtype)
            dist.all_gather(list(whole.unbind()), mine)  # one stretch of memory
            assert torch.equal(whole, torch.stack(all_values)), dtype
            whole = torch.zeros(7 * ranks, dtype=dtype)
            dist.all_gather_into_tensor(whole, mine)
            assert torch.equal(whole, torch.cat(all_values)), dtype
            lists = [torch.zeros(7, dtype=dtype) for _ in range(ranks)] if rank == 0 else None
            dist.gather(mine, lists, 0)
            assert rank != 0 or all(map(torch.equal, lists, all_values)), dtype
            part = torch.zeros(7, dtype=dtype)
            dist.scatter(part, all_values if rank == 1 else None, 1)
            assert torch.equal(part, mine), dtype
            dist.broadcast(part, 1)
            assert torch.equal(part, all_values[1]), dtype
            pieces = [torch.zeros(7, dtype=dtype) for _ in range(ranks)]
            dist.all_to_all(pieces, [mine] * ranks)
            assert all(map(torch.equal, pieces, all_values)), dtype

    job(check, ranks)


def test_reduce_scatter_tensor_and_unequal_blocks():
    def check(rank):
        part = torch.zeros(3)
        dist.reduce_scatter_tensor(part, torch.arange(9.0) + rank)
        assert part.tolist() == [9.0 * rank + 3 + 3 * i for i in range(3)]
        outputs = torch.zeros(rank + 1)
        dist.reduce_scatter(outputs, [torch.full((other + 1,), float(other)) for other in range(3)])
        assert outputs.tolist() == [3.0 * rank] * (rank + 1)
        received = torch.zeros(3 * (rank + 1), 2)
        dist.all_to_all_single(received, torch.full((6, 2), float(rank)), [rank + 1] * 3, [1, 2, 3])
        assert received[:, 0].tolist() == [float(other) for other in range(3) for _ in range(rank + 1)]

    job(check, 3)


def test_coalesced():
    def check(rank):
        tensors = [torch.full((count,), float(rank + count)) for count in (1, 100, 3)]
        dist.all_reduce_coalesced(tensors)
        assert [tensor[0].item() for tensor in tensors] == [3.0, 201.0, 7.0]
        lists = [[torch.zeros(2), torch.zeros(3)] for _ in range(2)]
        dist.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.full((3,), float(rank + 10))])
        assert [[tensor[0].item() for tensor in of_rank] for of_rank in lists] == [[0.0, 10.0], [1.0, 11.0]]

    job(check)


def test_tensors_with_holes():
    def check(rank):
        matrix = torch.arange(12.0).reshape(3, 4) + rank
        dist.all_reduce(matrix.t())
        assert torch.equal(matrix, 2 * torch.arange(12.0).reshape(3, 4) + 1)
        column = torch.zeros(4, 2)
        dist.broadcast(column[:, 1] if rank == 1 else torch.arange(4.0), 0)
        assert rank == 0 or column[:, 1].tolist() == [0.0, 1.0, 2.0, 3.0]
        whole = torch.zeros(4, 4)
        dist.all_gather_into_tensor(whole.t(), (torch.arange(8.0) + 8 * rank).reshape(4, 2).t())
        rows = torch.stack([(torch.arange(8.0) + 8 * other).reshape(4, 2).t() for other in range(2)]).reshape(4, 4)
        assert torch.equal(whole.t(), rows)
        if rank == 0:
            dist.send(matrix[:, 2], 1)
        else:
            into = torch.zeros(3, 5)
            dist.recv(into[:, 3], 0)
            assert torch.equal(into[:, 3], matrix[:, 2]) and into.sum() == matrix[:, 2].sum()

    job(check)


def test_overlapping_operands():
    def check(rank):
        whole = torch.zeros(4)
        whole[2 * rank:2 * rank + 2] = rank + 1.0
        dist.all_gather_into_tensor(whole, whole[2 * rank:2 * rank + 2])  # in place
        assert whole.tolist() == [1.0, 1.0, 2.0, 2.0]
        whole[:2] = rank + 5.0
        dist.all_gather_into_tensor(whole, whole[:2])  # in place on rank 0 only
        assert whole.tolist() == [5.0, 5.0, 6.0, 6.0]
        whole = torch.arange(4.0)
        dist.reduce_scatter_tensor(whole[1:3], whole)
        assert whole.tolist() == ([0.0, 0.0, 2.0, 3.0] if rank == 0 else [0.0, 4.0, 6.0, 3.0])
        tensor = torch.arange(2.0) + 10 * rank
        dist.all_to_all_single(tensor, tensor)
        assert tensor.tolist() == [float(rank), 10.0 + rank]

    job(check)


def test_sparse():
    def check(rank):
        for dtype in (torch.float32, torch.int64):
            places = torch.tensor([[0, rank + 1], [1, 2]])
            tensor = torch.sparse_coo_tensor(places, torch.tensor([1, 10 * (rank + 1)], dtype=dtype), (5, 3))
            dense = sum(
                torch.sparse_coo_tensor(torch.tensor([[0, other + 1], [1, 2]]),
                                        torch.tensor([1, 10 * (other + 1)], dtype=dtype), (5, 3)).to_dense()
                for other in range(3))
            dist.all_reduce(tensor)
            assert torch.equal(tensor.to_dense(), dense)
        hybrid = torch.sparse_coo_tensor([[rank]], [[1.0, 2.0]], (3, 2))
        dist.all_reduce(hybrid)
        assert hybrid.to_dense().tolist() == [[1.0, 2.0]] * 3
        different = torch.sparse_coo_tensor([[0]], [1.0], (4 + rank % 2,))
        with pytest.raises(ValueError, match="different shapes"):
            dist.all_reduce(different)
        with pytest.raises(ValueError, match="summed only"):
            dist.all_reduce(hybrid, ReduceOp.MAX)
        dist.barrier()  # the group goes on

    job(check, 3)


def test_empty_tensors():
    def check(rank):
        tensor = torch.zeros(0)
        dist.all_reduce(tensor)
        dist.all_gather([torch.zeros(0), torch.zeros(0)], tensor)
        dist.all_to_all_single(torch.zeros(0), torch.zeros(2 - 2 * rank)[:0], [0, 0], [0, 0])
        if rank == 0:
            dist.send(tensor, 1)
        else:
            assert dist.recv(tensor) == 0

    job(check)


def test_sends_from_any_rank():
    def check(rank):
        if rank == 0:
            seen = set()
            for _ in range(2):
                tensor = torch.zeros(70000, dtype=torch.int32)
                source = dist.recv(tensor)
                assert tensor.eq(source).all()
                seen.add(source)
            assert seen == {1, 2}
            work = dist.irecv(tensor, tag=1)  # the other receives must not take it
            work.wait()
            assert work.source_rank() == 2 and tensor[0] == 5
        else:
            dist.send(torch.full((70000,), rank, dtype=torch.int32), 0)
            if rank == 2:
                dist.send(torch.full((1,), 5, dtype=torch.int32), 0, tag=1)

    job(check, 3)


def test_a_barrier_does_not_wait_for_receives():
    def check(rank):
        tensor = torch.zeros(1)
        summed = torch.ones(1 << 16)
        received = dist.irecv(tensor, 1 - rank)
        work = dist.all_reduce(summed, async_op=True)
        dist.barrier()
        assert work.is_completed() and summed[0] == 2  # but for collectives
        dist.send(torch.ones(1), 1 - rank)
        received.wait()
        assert tensor[0] == 1

    job(check)


def test_quantized_and_other_types_are_moved():
    def check(rank):
        tensor = torch.quantize_per_tensor(torch.arange(4.0) * rank, 0.5, 0, torch.qint8)
        dist.broadcast(tensor, 1)
        assert tensor.int_repr().tolist() == [0, 2, 4, 6]

    job(check)


WRONG = {
    "an operation for integers": lambda rank: dist.all_reduce(torch.zeros(2), ReduceOp.BAND),
    "sizes": lambda rank: dist.all_gather_into_tensor(torch.zeros(5), torch.zeros(2)),
    "types": lambda rank: dist.distributed_c10d._get_default_group().allgather(
        [[torch.zeros(2), torch.zeros(2, dtype=torch.int32)]], [torch.zeros(2)]),
    "splits": lambda rank: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [1, 1], [2, 2]),
    "rows": lambda rank: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)),
    "two tensors": lambda rank: dist.distributed_c10d._get_default_group().allreduce([torch.zeros(1)] * 2),
    "a complex minimum": lambda rank: dist.reduce(torch.zeros(2, dtype=torch.complex64), 0, ReduceOp.MIN),
    "a sparse tensor": lambda rank: dist.broadcast(torch.zeros(2).to_sparse(), 0),
}


def test_refused_by_all():
    def check(rank):
        for call in WRONG.values():
            with pytest.raises((ValueError, RuntimeError)):
                call(rank)
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == 2

    job(check)


@pytest.mark.parametrize("case", WRONG)
def test_refused_by_one(case):
    def check(rank):
        if rank == 1:
            with pytest.raises((ValueError, RuntimeError)):
                WRONG[case](rank)
            return
        error, seconds = failure(dist.all_reduce, torch.zeros(2))
        assert isinstance(error, torii.torch.Mismatch) and error.rank == 1 and seconds < 20, error

    job(check)


def test_tags():
    def check(rank):
        group = dist.distributed_c10d._get_default_group()
        for tag in (-1, 1 << 30):
            with pytest.raises(ValueError, match="tag"):
                group.send([torch.zeros(1)], 1 - rank, tag)
        if rank == 0:
            for tag in (3, 1, 2):
                dist.send(torch.tensor([tag]), 1, tag=tag)
        else:
            for tag in (1, 2, 3):
                tensor = torch.zeros(1, dtype=torch.int64)
                dist.recv(tensor, 0, tag=tag)
                assert tensor.item() == tag

    job(check)
