# SPDX-License-Identifier: Apache-2.0
# perf/compare_torch: every cell runs, and bad command lines are refused.
"""The program that times torii beside Gloo."""
import json
import os
import subprocess
import sys

PROGRAM = os.path.join(os.path.dirname(__file__), "..", "..", "perf", "compare_torch")


def run(*options):
    return subprocess.run([sys.executable, PROGRAM, *options], capture_output=True, text=True)


def test_all_cells(tmp_path):
    path = str(tmp_path / "cells")
    done = run("--rounds", "1", "--milliseconds", "1", "--all", "--json", path)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        cells = [json.loads(line) for line in file]
    names = {cell["operation"] for cell in cells}
    assert {"all_reduce", "all_reduce async", "all_gather", "barrier", "training step", "send and back"} <= names
    assert all(len(cell["torii_us"]) == len(cell["gloo_us"]) == 1 and cell["torii_us"][0] > 0 for cell in cells)
    assert len(done.stdout.splitlines()) == len(cells) + 2


def test_bad_command_lines():
    for options in (["--ranks", "1"], ["--rounds", "x"], ["--none-such"], ["--torch-threads", "0"]):
        done = run(*options)
        assert done.returncode == 2 and "error" in done.stderr, options
