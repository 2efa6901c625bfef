# SPDX-License-Identifier: Apache-2.0
# Groups come and go in any order, with threads only where operations ask for one, and beside forked workers.
"""The life of groups of the backend of PyTorch."""
import datetime
import gc
import os
import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist
import torii.torch
from ranks import FULL, failure, job
from torch.nn.parallel import DistributedDataParallel


def threads():
    return len(os.listdir("/proc/self/task"))


def the_group():
    return dist.distributed_c10d._get_default_group()


def check_sum(group=None, ranks=2):
    tensor = torch.ones(3)
    dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [ranks] * 3


def test_blocking_operations_start_no_thread():
    def check(rank):
        before = threads()
        check_sum()
        dist.broadcast(torch.ones(1000), 0)
        dist.all_gather([torch.zeros(1), torch.zeros(1)], torch.ones(1))
        dist.barrier()
        if rank == 0:
            dist.send(torch.ones(100000), 1)
        else:
            dist.recv(torch.ones(100000), 0)
        torii.torch.monitored_barrier()
        dist.all_gather_object([None, None], {"rank": rank})
        assert threads() == before and not the_group()._has_thread()
        dist.all_reduce(torch.ones(1), async_op=True).wait()
        assert threads() == before + 1 and the_group()._has_thread()
        dist.destroy_process_group()
        gc.collect()
        assert threads() == before

    job(check)


def test_an_operation_moves_while_nobody_waits():
    def check(rank):
        tensor = torch.ones(1 << 20)
        work = dist.all_reduce(tensor, async_op=True)
        end = time.monotonic() + 20
        # Neither rank calls torii: is_completed() of the base class would, so the flag of the future is asked.
        future = work.get_future()
        while not future.done() and time.monotonic() < end:
            time.sleep(0.01)
        assert future.done() and tensor[-1].item() == 2
        assert work.is_completed() and work.is_success()
        assert torch.equal(future.value()[0], tensor) and torch.equal(work.result()[0], tensor)

    job(check)


def test_waits_in_another_order():
    def check(rank):
        tensors = [torch.full((size,), float(size)) for size in (1, 100000, 7, 3000, 1 << 18, 2)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for index in (5, 0, 3, 4, 1, 2) if rank == 0 else (2, 4, 0, 1, 5, 3):
            works[index].wait()
            assert tensors[index][-1].item() == 2 * len(tensors[index])

    job(check)


def test_polling():
    def check(rank):
        works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(20)]
        while not all(work.is_completed() for work in works):
            pass
        if rank == 0:
            work = dist.irecv(torch.zeros(1), 1)
            assert not work.is_completed()
            dist.barrier()
            work.wait()
        else:
            dist.barrier()
            dist.send(torch.ones(1), 0)

    job(check)


def test_callbacks_in_the_progress_thread():
    def check(rank):
        seen = []
        futures = []
        for step in range(10):
            work = dist.all_reduce(torch.full((2,), float(step)), async_op=True)
            futures.append(work.get_future().then(lambda done: seen.append(done.value()[0][0].item())))
        torch.futures.wait_all(futures)
        assert sorted(seen) == [2.0 * step for step in range(10)]

    job(check)


def test_two_threads_use_two_groups():
    def check(rank):
        groups = [dist.new_group([0, 1]) for _ in range(2)]
        errors = []

        def work(group, steps):
            try:
                for _ in range(steps):
                    check_sum(group)
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(group, 300)) for group in groups]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not errors, errors

    job(check)


def test_sends_of_one_thread_beside_collectives_of_another():
    def check(rank):
        def exchange():
            for step in range(200):
                tensor = torch.full((5,), step)
                if rank == 0:
                    dist.send(tensor, 1)
                else:
                    dist.recv(tensor, 0)
                    assert tensor[0].item() == step

        worker = threading.Thread(target=exchange)
        worker.start()
        for _ in range(200):
            check_sum()
        worker.join()

    job(check)


def test_a_barrier_comes_after_earlier_operations():
    def check(rank):
        tensor = torch.ones(1 << 20)
        work = dist.all_reduce(tensor, async_op=True)
        dist.barrier()
        assert work.is_completed() and tensor[0].item() == 2

    job(check)


def test_subgroups():
    def check(rank):
        pairs = [dist.new_group([0, 1]), dist.new_group([1, 2]), dist.new_group([2, 0])]
        alone = [dist.new_group([one]) for one in range(3)]
        for first, group in enumerate(pairs):
            if rank in (first, (first + 1) % 3):
                check_sum(group)
        check_sum(alone[rank], 1)
        check_sum(None, 3)
        source = torch.tensor([rank])
        if rank in (1, 2):
            dist.broadcast(source, 2, group=pairs[1])
            assert source.item() == 2

    job(check, 3)


@pytest.mark.parametrize("order", ((0, 1, 2), (2, 1, 0), (1, 0, 2)))
def test_groups_are_destroyed_in_any_order(order):
    def check(rank):
        groups = [dist.new_group([0, 1]) for _ in range(3)]
        for group in groups:
            dist.all_reduce(torch.ones(1), group=group, async_op=True).wait()
        for index in order if rank == 0 else reversed(order):
            check_sum(None)
            dist.destroy_process_group(groups[index])
            groups[index] = None
            gc.collect()
            check_sum(None)

    job(check)


def test_destroyed_and_made_again(tmp_path):
    def check(rank):
        for step in range(3):
            dist.destroy_process_group()
            gc.collect()
            dist.init_process_group("torii", rank=rank, world_size=2, init_method=f"file://{tmp_path}/store{step}")
            check_sum()

    job(check)


def test_group_that_is_destroyed_with_operations_under_way():
    def check(rank):
        dist.barrier()
        if rank == 0:
            works = [dist.irecv(torch.zeros(1), 1), dist.all_reduce(torch.ones(3), async_op=True)]
            begin = time.monotonic()
            dist.destroy_process_group()
            gc.collect()
            assert time.monotonic() - begin < 20
            del works
        else:
            time.sleep(0.2)
            check_sum()

    job(check)


def test_work_that_is_dropped_runs_on():
    def check(rank):
        tensor = torch.ones(50000)
        dist.all_reduce(tensor, async_op=True)
        gc.collect()
        dist.barrier()
        assert tensor[-1].item() == 2

    job(check)


# Children of the fork go on to the end of the program, so that their interpreters end as those of programs do; one
# import of PyTorch serves all of them.
ENDS = '''
import os, sys, time, torch, torch.distributed, torii.torch
destroy = "torch.distributed.destroy_process_group()"
left = f"""torch.distributed.all_reduce(torch.ones(1), async_op=True).get_future().then(
    lambda done: ({destroy}, time.sleep(0.2), torch.ones(3).sum()))
while torch.distributed.is_initialized():
    time.sleep(0.001)"""
# Of two ranks with a group, of two without, and of two whose callback still runs.
ends = ["pass", "sys.exit(0)", destroy, destroy, left, left]
children, number = [], None
for place in range(len(ends)):
    child = os.fork()
    if child == 0:
        number, children = place, []
        break
    children.append(child)
if number is not None:
    rank = number % 2
    store = f"file://{sys.argv[1]}/store{number // 2}"
    torch.distributed.init_process_group("torii", rank=rank, world_size=2, init_method=store)
    future = torch.distributed.all_reduce(torch.ones(1000), async_op=True).get_future().then(lambda done: done.value())
    torch.distributed.all_reduce(torch.ones(3))
    open(f"{sys.argv[1]}/summed{number}", "w").close()
    exec(ends[number])
for child in children:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, code
'''


def test_interpreter_ends_with_a_group(tmp_path):
    done = subprocess.run([sys.executable, "-c", ENDS, str(tmp_path)], stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0 and b"terminate" not in done.stderr, done.stderr
    assert len(list(tmp_path.glob("summed*"))) == 6


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.full((4,), float(index))


def test_forked_workers_do_no_harm():
    def check(rank):
        dist.all_reduce(torch.ones(1), async_op=True).wait()
        for _ in range(2):
            loader = torch.utils.data.DataLoader(Numbers(), batch_size=5, num_workers=2)
            for batch in loader:
                dist.all_reduce(batch)
                dist.all_reduce(batch, async_op=True).wait()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                dist.all_reduce(torch.ones(1))
            except Exception as error:
                code = 0 if "forked" in str(error) or "parent" in str(error) else 2
            dist.destroy_process_group()
            gc.collect()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        check_sum()

    job(check)


def test_training_with_data_parallel():
    def check(rank):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1))
        trained = DistributedDataParallel(model, bucket_cap_mb=0.001)
        optimizer = torch.optim.SGD(trained.parameters(), 0.1)
        torch.manual_seed(rank)
        for _ in range(5):
            optimizer.zero_grad()
            trained(torch.randn(8, 10)).square().mean().backward()
            optimizer.step()
        for parameter in model.parameters():
            both = [torch.zeros_like(parameter) for _ in range(2)]
            dist.all_gather(both, parameter.data)
            assert torch.equal(*both)

    job(check)


def test_canonical_bits_do_not_depend_on_the_algorithm():
    def check(rank):
        torch.manual_seed(rank)
        values = torch.randn(5000)
        results = []
        for algorithm in ("", "recursive_doubling", "node"):
            options = torii.torch.Options(determinism="canonical", algorithm=algorithm)
            group = dist.new_group([0, 1, 2], pg_options=options)
            tensor = values.clone()
            dist.all_reduce(tensor, group=group)
            results.append(tensor)
        assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])

    job(check, 3)


def test_bad_options():
    def check(rank):
        with pytest.raises(TypeError, match="torii.torch.Options"):
            dist.new_group([0, 1], pg_options={"determinism": "canonical"})
        for options, text in ((torii.torch.Options(algorithm="none_such"), "none_such"),
                              (torii.torch.Options(settings={"NONE_SUCH": 1}), "NONE_SUCH")):
            with pytest.raises(RuntimeError, match=text):
                dist.new_group([0, 1], pg_options=options)
        with pytest.raises(ValueError, match="not torii"):
            torii.torch.lost(dist.new_group([0, 1], backend="gloo"))

    job(check)


def test_many_groups():
    def check(rank):
        for _ in range(60 if FULL else 12):
            check_sum(dist.new_group([0, 1]))

    job(check)


def test_profiler_names_operations():
    def check(rank):
        with torch.autograd.profiler.profile(record_shapes=True) as profile:
            dist.all_reduce(torch.ones(5))
            dist.all_reduce(torch.ones(6), async_op=True).wait()
            dist.broadcast(torch.ones(2), 0)
        names = {event.name for event in profile.function_events}
        assert {"torii:all_reduce", "torii:broadcast"} <= names, names
        shapes = [event.input_shapes for event in profile.function_events if event.name == "torii:all_reduce"]
        assert shapes == [[[5]], [[6]]], shapes

    job(check)


def test_the_library_needs_neither_python_nor_pytorch():
    library = os.path.join(os.path.dirname(torii.__file__), "..", "..", "lib", "libtorii.so")
    needs = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in needs and "python" not in needs and "torch" not in needs, needs


def test_timeout_of_a_group():
    def check(rank):
        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
        if rank == 0:
            error, seconds = failure(dist.barrier, group)
            assert isinstance(error, torii.torch.Timeout) and 0.9 < seconds < 8, error
        dist.barrier()

    job(check)
