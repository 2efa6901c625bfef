# SPDX-License-Identifier: Apache-2.0
# Ranks as processes: a test names a function of its own file, which every rank of a job runs.
"""Helpers of the tests of the Python package."""
import os
import signal
import subprocess
import sys

import pytest

TIMEOUT_S = 60


def start(*command, **environment):
    """Runs a Python program with the package in its path; returns code, stdout and stderr."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=TIMEOUT_S,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout, done.stderr


def job(file, function, ranks=2, options=(), **environment):
    """Runs `function` of `file` on so many ranks. Returns stdout; a rank that fails fails the test."""
    code, out, errors = start("-m", "torii.run", "-n", str(ranks), *options, file, function, **environment)
    assert code == 0, f"{function} ended with {code}:\n{out}\n{errors}"
    return out


def job_of_nodes(file, function, ranks=2):
    """The same with each rank as a node of its own, over libfabric; the test is skipped where that is not built."""
    code, _, errors = start("-c", "import torii; torii.Context({'TRANSPORT': 'libfabric'})")
    if code != 0 and "torii.errors.Unsupported" in errors:
        pytest.skip(errors.splitlines()[-1])
    return job(file, function, ranks, TORII_TRANSPORT="libfabric")


def others_of(team):
    """The processes of ranks 1 and up, which can then await_go(). Collective."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    own = os.getpid().to_bytes(8, "little")
    numbers = bytes(team.all_gather(own))
    return [int.from_bytes(numbers[at:at + 8], "little") for at in range(8, len(numbers), 8)]


def tell_to_go(others):
    """Called by rank 0, when it has seen what it wanted to see before the others come to a call."""
    for other in others:
        os.kill(other, signal.SIGUSR1)


def await_go():
    """Waits for rank 0 to tell_to_go()."""
    assert signal.sigtimedwait({signal.SIGUSR1}, 30) is not None


def main(functions):
    """Called by a file of tests that runs as a rank."""
    functions[sys.argv[1]]()
