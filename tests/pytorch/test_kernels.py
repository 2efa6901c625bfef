# SPDX-License-Identifier: Apache-2.0
# The calls that stand in for the kernels of vLLM, SGLang and DeepSpeed, and the program that replays their steps.
"""examples/torch_kernels.py and perf/replay_traces."""
import json
import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from ranks import job

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "examples"))
from torch_kernels import Kernels  # noqa: E402

PROGRAM = os.path.join(ROOT, "perf", "replay_traces")
TYPES = (torch.bfloat16, torch.float16, torch.float32)


def values(rank, shape, dtype):
    """Numbers whose sums over 8 ranks are exact in every type."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) + 3 * rank) % 7 - 3).reshape(shape).to(dtype)


@pytest.mark.parametrize("ranks", (2, 3, 4, 8))
def test_kernels(ranks):
    def check(rank):
        kernels = Kernels(list(range(ranks)))
        for dtype in TYPES:
            for shape in ((1, 5), (8, 4096), (3, 40, 41)):
                all_values = [values(other, shape, dtype) for other in range(ranks)]
                total = torch.stack(all_values).float().sum(0).to(dtype)
                mine = all_values[rank].clone()
                kernels.shm_allreduce(mine)
                assert torch.equal(mine, total), (dtype, shape)
                assert torch.equal(kernels.inference_all_reduce(all_values[rank].clone()), total), (dtype, shape)
                whole = torch.zeros((ranks * shape[0], *shape[1:]), dtype=dtype)
                kernels.shm_all_gather(all_values[rank], whole)
                assert torch.equal(whole, torch.cat(all_values)), (dtype, shape)
                for dim in (-1, 0, 1):
                    assert torch.equal(kernels.shm_allgather(all_values[rank], dim), torch.cat(all_values, dim))
                root = ranks - 1
                outputs = [torch.zeros(shape, dtype=dtype) for _ in range(ranks)] if rank == root else None
                kernels.shm_gather(all_values[rank], outputs, root)
                assert outputs is None or all(map(torch.equal, outputs, all_values)), (dtype, shape)

    job(check, ranks)


def test_lists_of_tensors_between_stages():
    def check(rank):
        kernels = Kernels([0, 2])
        sent = [torch.arange(6.0).reshape(2, 3), torch.ones(70000, dtype=torch.bfloat16), torch.tensor(5)]
        if rank == 0:
            kernels.shm_send_tensor_list(sent, 1)
        elif rank == 2:
            received = kernels.shm_recv_tensor_list(0)
            assert len(received) == len(sent) and all(map(torch.equal, received, sent))
        dist.barrier()

    job(check, 3)


def test_sums_that_are_rounded_once():
    """What the kernels give: bf16 is added in float, and rounded at the end."""
    def check(rank):
        kernels = Kernels([0, 1, 2, 3], settings={"WIRE": "f32"})
        rows = torch.randn(4, 5000, generator=torch.Generator().manual_seed(3)).bfloat16()
        mine = rows[rank].clone()
        kernels.shm_allreduce(mine)
        total = rows.double().sum(0)
        nearest = total.bfloat16()
        # The float sum may be on the other side of the middle between two bf16 only if it is that close to it.
        wrong = mine.ne(nearest) & ((total - mine.double()).abs() > (total - nearest.double()).abs() + 1e-5)
        assert not wrong.any(), (mine[wrong], nearest[wrong])

    job(check, 4)


def replay(*options):
    return subprocess.run([sys.executable, PROGRAM, *options], capture_output=True, text=True)


def test_replay(tmp_path):
    path = tmp_path / "steps"
    done = replay("--ranks", "2,3", "--layers", "1", "--rounds", "1", "--milliseconds", "1", "--steps", "decode",
                  "--types", "bf16,fp32", "--json", str(path))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 2 * 2 * len(os.listdir(os.path.join(ROOT, "perf", "traces"))), done.stdout
    assert all(row["torii_us"][0] > 0 and row["gloo_us"][0] > 0 for row in rows)
    calls = {row["trace"]: (row["calls"], row["bytes"]) for row in rows if row["ranks"] == 3 and row["type"] == "fp32"}
    # Three allreduces of 8 tokens, and a third of 32000 logits, rounded up.
    assert calls["vllm-llama2-7b"] == (4, 4 * (3 * 8 * 4096 + 8 * 10667))
    assert calls["deepspeed-llama3-8b"] == (3, 4 * (2 * 8 * 4096 + 8 * 128256))


def test_whole_steps_have_two_allreduces_a_layer(tmp_path):
    path = tmp_path / "steps"
    trace = tmp_path / "small.txt"
    trace.write_text("type fp32\nlet layers 5\nstep decode tokens 2\n1 all_gather tokens x 3 the first\n"
                     "layers all_reduce tokens\nlayers all_reduce 7\n")
    done = replay(str(trace), "--steps", "decode", "--rounds", "1", "--milliseconds", "1", "--json", str(path))
    assert done.returncode == 0, done.stderr
    row = json.loads(path.read_text())
    assert row["calls"] == 11 and row["bytes"] == 4 * (6 + 5 * 2 + 5 * 7) and row["trace"] == "small"


def test_bad_traces_and_command_lines(tmp_path):
    good = "type fp32\nstep decode tokens 2\n1 all_reduce tokens\n"
    for text, said in ((good + "1 reduce_all tokens\n", ":4: '1 reduce_all tokens' is neither"),
                       (good.replace("fp32", "fp8"), ":1: type 'fp8'"),
                       (good + "1 all_reduce tokens x hidden\n", "'hidden' is not a number"),
                       (good + "1 all_reduce tokens/2\n", "'tokens/2' is not a number"),
                       (good + "let hidden\n", ":4:"), ("type fp32\n", "a trace has a type, steps and calls")):
        path = tmp_path / "trace.txt"
        path.write_text(text)
        done = replay(str(path), "--steps", "decode")
        assert done.returncode == 2 and said in done.stderr, (text, done.stderr)
    for options in (["--ranks", "two"], ["--types", "int8"], ["--steps", "none"], ["--rounds", "0"],
                    [str(tmp_path / "none")]):
        done = replay(*options)
        assert done.returncode == 2 and "error" in done.stderr, options
