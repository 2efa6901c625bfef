# SPDX-License-Identifier: Apache-2.0
# perf/python_calls: every way and size runs, and bad command lines are refused.
"""The program that times Python beside C."""
import json
import os

import ranks

PROGRAM = os.path.join(os.path.dirname(__file__), "..", "..", "perf", "python_calls")


def test_all_ways(tmp_path):
    path = str(tmp_path / "cells")
    code, out, errors = ranks.start(PROGRAM, "--rounds", "2", "--milliseconds", "0.5", "--json", path)
    assert code == 0, errors
    with open(path, encoding="utf-8") as file:
        cells = [json.loads(line) for line in file]
    assert {cell["way"] for cell in cells} == {"blocking", "request", "prepared"}
    assert {8, 16 << 20} <= {cell["bytes"] for cell in cells} and len(cells) == 3 * 8
    assert all(len(cell[times]) == 2 and min(cell[times]) > 0 for cell in cells for times in ("python_us", "c_us"))
    assert len(out.splitlines()) == len(cells) + 2


def test_chosen_cells():
    code, out, errors = ranks.start(PROGRAM, "--rounds", "1", "--milliseconds", "0.5", "--ranks", "3", "--ways",
                                    "request", "--sizes", "12", "4K")
    assert code == 0, errors
    assert [line.split()[:2] for line in out.splitlines()[2:]] == [["request", "12"], ["request", "4096"]]


def test_bad_command_lines():
    for options in (["--ranks", "0"], ["--rounds", "x"], ["--none-such"], ["--sizes", "6"], ["--sizes", "4G"],
                    ["--ways", "slow"], ["--milliseconds", "0"], ["--milliseconds", "nan"], ["--milliseconds", "inf"],
                    ["--json", "no_such_folder/cells"]):
        code, _, errors = ranks.start(PROGRAM, *options)
        assert code == 2 and "error" in errors and "torii-run" not in errors, options


def test_failures(tmp_path):
    """Without the module of loops, and on ranks that cannot join."""
    (tmp_path / "torii_c_calls.py").write_text("raise ImportError('no such module here')")
    path = f"{tmp_path}:{os.environ['PYTHONPATH']}"
    code, _, errors = ranks.start(PROGRAM, PYTHONPATH=path)
    assert code == 3 and "python_calls: no such module here" in errors
    code, _, errors = ranks.start(PROGRAM, TORII_SEGMENT="nonsense")
    assert code == 1 and "invalid_argument" in errors
