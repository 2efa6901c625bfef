# SPDX-License-Identifier: Apache-2.0
# Lists of long blocks, which travel from and to their own addresses, and coalesced operations on many tensors.
"""Lists of tensors in the backend of PyTorch."""
import pytest
import torch
import torch.distributed as dist
from ranks import job

LONG = 20000  # elements of blocks that travel from and to their own addresses


def lists_of(ranks):
    """Lists of blocks: apart in memory, one after the other, and some with holes."""
    apart = [torch.zeros(LONG) for _ in range(ranks)]
    yield apart
    yield list(torch.zeros(ranks, LONG).unbind())
    yield list(torch.zeros(LONG, ranks).unbind(1))
    yield [apart[0].clone(), *(torch.zeros(LONG, 2)[:, 1] for _ in range(ranks - 1))]


@pytest.mark.parametrize("ranks", (2, 3))
def test_long_blocks(ranks):
    """Ranks may have lists of different kinds."""
    def check(rank):
        mine = torch.arange(float(LONG)) + rank
        want = [torch.arange(float(LONG)) + other for other in range(ranks)]
        kinds = list(lists_of(ranks))
        for number in range(len(kinds)):
            lists = kinds[(number + rank) % len(kinds)]
            dist.all_gather(lists, mine)
            assert all(map(torch.equal, lists, want)), number
            for tensor in lists:
                tensor.zero_()
            dist.gather(mine, lists if rank == 1 else None, 1)
            assert rank != 1 or all(map(torch.equal, lists, want)), number
            for tensor, source in zip(lists, want):
                tensor.copy_(source)
            part = torch.zeros(LONG)
            dist.scatter(part, lists if rank == 0 else None, 0)
            assert torch.equal(part, mine), number
            pieces = [torch.zeros_like(tensor) for tensor in reversed(lists)]
            dist.all_to_all(pieces, lists)
            assert all(torch.equal(piece, mine) for piece in pieces), number
            works = [dist.all_gather(lists, mine, async_op=True), dist.gather(mine, lists if rank == 0 else None, 0)]
            works[0].wait()
            assert all(map(torch.equal, lists, want)), number

    job(check, ranks)


def test_long_blocks_that_overlap():
    def check(rank):
        whole = torch.zeros(2, LONG)
        other = torch.zeros(LONG)
        lists = [whole[1], other] if rank == 0 else [other, whole[1]]
        lists[rank].fill_(rank + 1.0)
        dist.all_gather(lists, lists[rank])  # in place
        assert lists[0].eq(1).all() and lists[1].eq(2).all()
        lists[0].fill_(rank + 5.0)
        dist.all_gather(lists, lists[0])  # in place on rank 0 only
        assert lists[0].eq(5).all() and lists[1].eq(6).all()
        lists = [torch.full((LONG,), 10.0 * rank + to) for to in range(2)]
        dist.all_to_all(lists, lists)
        assert [tensor[-1].item() for tensor in lists] == [rank, 10.0 + rank]
        dist.all_to_all(lists, [other.fill_(rank)] * 2)  # one input for all
        assert [tensor[-1].item() for tensor in lists] == [0.0, 1.0]
        lists = [torch.full((LONG,), float(to)) for to in range(2)]
        dist.scatter(lists[0] if rank == 0 else other, lists if rank == 0 else None, 0)  # in place
        assert rank == 0 or other.eq(1).all()
        dist.scatter(lists[1] if rank == 0 else other, lists if rank == 0 else None, 0)  # onto the other block
        assert (other if rank else lists[1]).eq(rank).all()
        twice = torch.zeros(LONG)
        dist.all_gather([twice, twice], mine := torch.full((LONG,), rank + 1.0))
        assert twice.eq(2).all() and mine.eq(rank + 1).all()

    job(check)


def test_lazily_conjugated_and_negated_tensors():
    def check(rank):
        group = dist.distributed_c10d._get_default_group()
        for count in (5, LONG):
            mine = torch.complex(torch.arange(float(count)), torch.full((count,), rank + 1.0))
            lists = [torch.zeros(count, dtype=torch.complex64) for _ in range(2)]
            group.gather([lists] if rank == 0 else [], [mine.conj()]).wait()
            want = [torch.complex(torch.arange(float(count)), torch.full((count,), -other - 1.0)) for other in range(2)]
            assert rank != 0 or all(map(torch.equal, lists, want)), lists
            group.allgather([[lists[0].conj(), lists[1]]], [mine]).wait()  # results, too
            assert torch.equal(lists[0], want[0]) and torch.equal(lists[1], want[1].conj())
            negated = torch.zeros(count)
            group.scatter([negated], [[mine.conj().imag] * 2] if rank == 0 else []).wait()
            assert negated.eq(-1).all(), negated

    job(check)


def copies_of(call):
    """PyTorch's functions for memory and copies that a call uses."""
    with torch.autograd.profiler.profile() as profile:
        call()
    return {event.name for event in profile.function_events} & {"aten::empty", "aten::copy_", "aten::clone"}


def test_long_contiguous_blocks_are_not_copied():
    def check(rank):
        mine, apart = torch.ones(LONG), [torch.zeros(LONG) for _ in range(2)]
        for call in (lambda: dist.all_gather(apart, mine), lambda: dist.gather(mine, apart if rank == 0 else None, 0),
                     lambda: dist.scatter(mine, apart if rank == 0 else None, 0),
                     lambda: dist.all_to_all(apart, [mine, mine])):
            assert copies_of(call) == set()
        with_holes = [torch.zeros(LONG, 2)[:, 1] for _ in range(2)]
        assert copies_of(lambda: dist.all_gather(with_holes, mine)) == {"aten::empty", "aten::copy_"}
        assert copies_of(lambda: dist.all_reduce_coalesced([mine, apart[0]])) == set()
        short = [torch.ones(4), torch.ones(5)]
        assert copies_of(lambda: dist.all_reduce_coalesced(short)) == {"aten::empty"}  # one vector for both
        assert copies_of(lambda: dist.all_reduce_coalesced(short[:1])) == set()

    job(check)


@pytest.mark.parametrize("ranks", (2, 3))
def test_coalesced_tensors_of_all_lengths(ranks):
    """Short neighbours travel together, whether ranks wait at once or not."""
    counts = (1, 7, 1024, 1025, 5, 0, 6, 40000, 3, 3, *[900] * 60)

    def check(rank):
        tensors = [torch.full((count,), float(rank + 1 + i % 5)) for i, count in enumerate(counts)]
        tensors[1] = torch.stack([tensors[1]] * 2, 1)[:, 1]  # with holes
        for step in range(4):
            work = dist.all_reduce_coalesced(tensors, async_op=(rank + step) % 2 == 0)
            if work:
                work.wait()
            dist.barrier()
        total = ranks * (ranks + 1) // 2
        for i, tensor in enumerate(tensors):
            assert tensor.eq((total + ranks * (i % 5)) * ranks**3).all(), (i, tensor)
        inputs = [torch.full((count,), float(10 * rank + i)) for i, count in enumerate(counts)]
        lists = [[torch.zeros_like(tensor) for tensor in inputs] for _ in range(ranks)]
        work = dist.all_gather_coalesced(lists, inputs, async_op=rank == 0)
        if work:
            work.wait()
        for other, of_rank in enumerate(lists):
            assert all(tensor.eq(10 * other + i).all() for i, tensor in enumerate(of_rank)), other

    job(check, ranks)


def test_coalesced_tensors_of_several_types():
    def check(rank):
        group = dist.distributed_c10d._get_default_group()
        tensors = [torch.full((5,), rank + i).to(dtype) for i, dtype in
                   enumerate((torch.float32, torch.float32, torch.int64, torch.bfloat16, torch.bfloat16))]
        group.allreduce_coalesced(tensors).wait()
        assert [tensor[0].item() for tensor in tensors] == [2 * i + 1 for i in range(5)]
        lists = [[torch.zeros_like(tensor) for tensor in tensors] for _ in range(2)]
        group.allgather_coalesced(lists, [tensor + rank for tensor in tensors]).wait()
        assert all(tensor.eq(2 * i + 1 + other).all() for other in range(2) for i, tensor in enumerate(lists[other]))
        options = dist.AllreduceCoalescedOptions()
        options.reduceOp = dist._make_nccl_premul_sum(2.0)
        group.allreduce_coalesced(tensors, options).wait()
        assert [tensor[0].item() for tensor in tensors] == [4 * (2 * i + 1) for i in range(5)]

    job(check)
