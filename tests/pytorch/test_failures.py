# SPDX-License-Identifier: Apache-2.0
# Ranks that die, stop, come late or abort, as programs of PyTorch see them.
"""Failures under the backend of PyTorch."""
import datetime
import os
import signal
import tempfile
import threading
import time

import pytest
import torch
import torch.distributed as dist
import torii.torch
from ranks import failure, job
from torch.nn.parallel import DistributedDataParallel

NOTICED_S = 0.2  # within this time after a death on one node
BUSY_S = 1.0  # and what a machine that does other things may add


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def all_reduce_loop():
    tensor = torch.ones(1000)
    while True:
        dist.all_reduce(tensor)


def barrier_of(folder_file, rank, ranks):
    """Waits until all ranks have come, without a group."""
    open(f"{folder_file}.{rank}", "w").close()
    while not all(os.path.exists(f"{folder_file}.{other}") for other in range(ranks)):
        time.sleep(0.001)


CALLS = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(10)),
    "asynchronous": lambda: dist.all_reduce(torch.ones(10), async_op=True),
    "all_gather": lambda: dist.all_gather([torch.zeros(3) for _ in range(3)], torch.ones(3)),
    "barrier": lambda: dist.barrier(),
    "recv": lambda: dist.recv(torch.zeros(1), 2),
    "irecv": lambda: dist.irecv(torch.zeros(1), 2),
    "all_to_all": lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)),
}


@pytest.mark.parametrize("call", CALLS)
def test_killed_rank_is_named(call, tmp_path):
    def check(rank):
        dist.barrier()
        barrier_of(tmp_path / "ready", rank, 3)
        if rank == 2:
            time.sleep(0.1)  # the others wait by then
            (tmp_path / "time").write_text(str(time.time()))
            die()
        error, _ = failure(CALLS[call])
        seconds = time.time() - float((tmp_path / "time").read_text())
        assert isinstance(error, torii.torch.PeerLost) and isinstance(error, RuntimeError), error
        assert error.rank == 2 and torii.torch.lost() == [2], error
        assert f"on rank {rank} of 3" in str(error)
        assert call in ("asynchronous", "irecv") or call in str(error), error
        assert "rank 2" in torii.torch.health()
        barrier_of(tmp_path / "asked", rank, 2)  # a rank that has ended would be lost too
        return seconds

    seconds = [one for one in job(check, 3, dead={2}) if one is not None]
    assert max(seconds) < NOTICED_S + BUSY_S, seconds


def test_future_of_a_killed_rank():
    def check(rank):
        dist.barrier()
        if rank == 1:
            time.sleep(0.2)
            die()
        future = dist.all_reduce(torch.ones(2), async_op=True).get_future()
        with pytest.raises(RuntimeError, match="rank 1"):
            future.wait()

    job(check, 2, dead={1})


def test_later_calls_are_poisoned():
    def check(rank):
        dist.barrier()
        if rank == 1:
            die()
        failure(all_reduce_loop)
        error, seconds = failure(dist.all_reduce, torch.ones(1))
        assert isinstance(error, torii.torch.Poisoned) and seconds < 5, error

    job(check, 2, dead={1})


def wait_for_file(path):
    while not path.exists():
        time.sleep(0.005)


def test_rank_that_does_not_come(tmp_path):
    def check(rank):
        dist.barrier()
        if rank == 1:
            wait_for_file(tmp_path / "noticed")
            return
        error, seconds = failure(dist.all_reduce, torch.ones(1))
        assert isinstance(error, torii.torch.Timeout) and isinstance(error, TimeoutError), error
        (tmp_path / "noticed").touch()
        assert error.rank == 1 and "Timed out in all_reduce on rank 0 of 2" in str(error) and 0.9 < seconds < 2.9

    job(check, 2, timeout_s=1)


def test_stopped_rank(tmp_path):
    def check(rank):
        dist.barrier()
        barrier_of(tmp_path / "ready", rank, 3)
        if rank == 1:
            (tmp_path / "pid").write_text(str(os.getpid()))
            (tmp_path / "pid").rename(tmp_path / "stop")
            error, _ = failure(all_reduce_loop)
            assert isinstance(error, torii.torch.Timeout), error
            return
        if rank == 0:
            wait_for_file(tmp_path / "stop")
            pid = int((tmp_path / "stop").read_text())
            os.kill(pid, signal.SIGSTOP)
        error, seconds = failure(all_reduce_loop)
        barrier_of(tmp_path / "noticed", rank // 2, 2)  # ranks 0 and 2
        if rank == 0:
            os.kill(pid, signal.SIGCONT)
        assert isinstance(error, torii.torch.Timeout) and error.rank == 1 and seconds < 4, error

    job(check, 3, timeout_s=1)


def test_slow_ranks_are_waited_for():
    def check(rank):
        for step in range(4):
            time.sleep(0.4 if step % 2 == rank else 0)
            tensor = torch.ones(1)
            dist.all_reduce(tensor)
            assert tensor.item() == 2

    job(check, 2, timeout_s=1)


def test_wait_with_a_time_of_its_own():
    def check(rank):
        tensor = torch.ones(1)
        if rank == 0:
            work = dist.all_reduce(tensor, async_op=True)
            error, seconds = failure(work.wait, datetime.timedelta(milliseconds=200))
            assert isinstance(error, torii.torch.Timeout) and seconds < 1.5, error
            dist.send(torch.ones(1), 1)
            work.wait()
        else:
            dist.recv(torch.zeros(1), 0)
            dist.all_reduce(tensor)
        assert tensor.item() == 2

    job(check)


@pytest.mark.parametrize("timeout", (datetime.timedelta(days=30), datetime.timedelta(seconds=180000000),
                                     datetime.timedelta.max))
def test_timeouts_without_end(timeout, tmp_path):
    def check(rank):
        dist.destroy_process_group()
        dist.init_process_group("torii", rank=rank, world_size=2, init_method=f"file://{tmp_path}/store",
                                timeout=timeout)
        groups = [dist.group.WORLD, dist.new_group([0, 1], timeout=timeout)]
        for group in groups:
            time.sleep(0.05 if rank == 1 else 0)  # a wait without end has not ended by now
            tensor = torch.ones(1)
            dist.all_reduce(tensor, group=group)
            assert tensor.item() == 2
            time.sleep(0.05 if rank == 1 else 0)
            dist.all_reduce(tensor, group=group, async_op=True).wait(timeout)
            assert tensor.item() == 4
            time.sleep(0.05 if rank == 1 else 0)
            options = dist.AllreduceOptions()
            options.timeout = timeout
            group.allreduce([tensor], options).wait()
            assert tensor.item() == 8
            time.sleep(0.05 if rank == 1 else 0)
            torii.torch.monitored_barrier(group, timeout=timeout)

    job(check)


def test_abort():
    def check(rank):
        dist.barrier()
        if rank == 0:
            threading.Timer(0.2, torii.torch.abort, (None, "no more work")).start()
        error, seconds = failure(dist.recv, torch.zeros(1), 1 - rank)
        assert isinstance(error, torii.torch.Aborted) and "no more work" in str(error) and error.rank == 0, error
        assert seconds < 0.2 + NOTICED_S + BUSY_S

    job(check)


def test_abort_of_one_group_leaves_the_others():
    def check(rank):
        group = dist.new_group([0, 1])
        dist.barrier(group)
        dist.barrier()  # the other rank has left the barrier of the group before it is aborted
        if rank == 1:
            torii.torch.abort(group)
        error, _ = failure(dist.all_reduce, torch.ones(1), group=group)
        assert isinstance(error, torii.torch.Aborted), error
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == 2

    job(check)


def test_survivors_train_on():
    def check(rank):
        torch.manual_seed(1)
        model = torch.nn.Linear(3, 1)
        data = torch.arange(9.0).reshape(3, 3) / 9 + rank

        def step(trained):
            loss = trained(data).square().mean()
            loss.backward()
            with torch.no_grad():
                for parameter in trained.parameters():
                    parameter -= 0.01 * parameter.grad
                    parameter.grad = None

        trained = DistributedDataParallel(model)
        step(trained)
        if rank == 1:
            die()
        try:
            while True:
                step(trained)
        except RuntimeError as error:
            assert "rank 1" in str(error) or "poisoned" in str(error), error
        group = torii.torch.survivors()
        assert (group.rank(), group.size()) == (0 if rank == 0 else 1, 2)
        for parameter in model.parameters():
            parameter.grad = None
            dist.broadcast(parameter.data, 0, group=group)
        again = DistributedDataParallel(model, process_group=group)
        for _ in range(3):
            step(again)
        weights = [torch.zeros_like(model.weight.data) for _ in range(2)]
        dist.all_gather(weights, model.weight.data, group=group)
        assert torch.equal(*weights)

    job(check, 3, dead={1})


def test_survivors_leave_out_a_rank_that_hangs():
    def check(rank):
        dist.barrier()
        if rank == 1:
            time.sleep(4)
            with pytest.raises(torii.torch.PeerLost):
                torii.torch.survivors()
            return
        with pytest.raises(torii.torch.Timeout):
            dist.barrier()
        assert torii.torch.absent() == [1]
        with pytest.raises(torii.torch.InvalidArgument, match="which makes the call"):
            torii.torch.survivors(without=[2])
        group = torii.torch.survivors(without=torii.torch.absent())
        assert group.size() == 2 and torii.torch.lost() == [1]
        total = torch.ones(3)
        dist.all_reduce(total, group=group)
        assert total.tolist() == [2, 2, 2]
        time.sleep(4)

    job(check, 3, timeout_s=1.5)


def test_monitored_barrier_leaves_the_group_whole():
    def check(rank):
        torii.torch.monitored_barrier()
        time.sleep(0.8 if rank == 1 else 0)
        with pytest.raises(RuntimeError, match="Rank 1 failed to pass" if rank == 0 else "successfully reached"):
            torii.torch.monitored_barrier(timeout=datetime.timedelta(milliseconds=300))
        dist.barrier()
        torii.torch.monitored_barrier(timeout=datetime.timedelta(seconds=20), wait_all_ranks=True)

    job(check, 3)


def test_missing_rank_of_a_new_group(tmp_path):
    def check(rank):
        if rank == 1:
            wait_for_file(tmp_path / "noticed")
            return
        with pytest.raises(RuntimeError):
            dist.new_group([0, 1], timeout=datetime.timedelta(milliseconds=500))
        (tmp_path / "noticed").touch()

    job(check)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # of this test alone
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(os.listdir("/dev/shm"))

    def check(rank):
        dist.all_reduce(torch.ones(100000), async_op=True).wait()
        die()

    job(check, 2, dead={0, 1})
    assert os.listdir(tmp_path) == []
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "torii" in name]
